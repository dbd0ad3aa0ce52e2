"""Bodies as JSON, read strictly: what two readers could read differently is refused."""

import json
import re
from contextlib import suppress
from typing import Any, Final

import msgspec

from headway.server.plain import is_plain
from headway.server.problems import Refused

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
DIGITS_MAX: Final = 308
"""Of a whole number: every double has room for so many."""
_AS_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_FIELD: Final = re.compile(r"field `(.*)`$", re.DOTALL)
_LONG: Final = b"0" * (DIGITS_MAX + 1)
_STEP: Final = 16
_LONG_BY_STEPS: Final = b"0" * ((DIGITS_MAX + 1) // _STEP)
"""So many digits in a row are seen by whoever looks at one byte of so many only."""


def check(body: bytes) -> None:
    """Refuses what is no JSON, says a key twice, or has a number beyond any double.

    There one reader would see infinity and the next something else.
    """
    try:
        value = _decode(body)
        again = _encode(value)
    except RecursionError as error:
        raise Refused("bad_json", "it is nested too deep") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused("bad_json", str(error)) from error
    # A key that is said twice was read once: it is missing now, with what it named.
    if again != body and _quotes(body) != _quotes(again):
        raise Refused("bad_json", "a key is given twice")
    if len(body) > DIGITS_MAX and _has_long(body):
        _check_numbers(body)


def read(
    body: bytes,
    decoder: "msgspec.json.Decoder[Any]",
    plain: "msgspec.json.Decoder[Any] | None" = None,
) -> Any:
    """The body as its type; the answer to what it is not names the place.

    Plain text is read by `plain`, if there is such a decoder: it leaves out what holds
    of plain text anyway.
    """
    check(body)
    if plain is not None and is_plain(body):
        # What is wrong is told by the decoder that knows all rules.
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return plain.decode(body)
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise refused(error) from error


def convert(values: dict[str, str], kind: Any) -> Any:
    """Values of a query as their type."""
    try:
        found = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise refused(error) from error
    for name in values:
        if getattr(found, name) is None:
            # Text is not null, whatever it says.
            raise Refused("bad_value", "is none of what it may be", name)
    return found


def refused(error: Exception) -> Refused:
    """What a body, a query or a rule is not, and the place where it is not."""
    text, _, place = str(error).partition(" - at `")
    place = place.removeprefix("key` in `").removesuffix("`")
    place = place.removeprefix("$").removeprefix(".")
    if found := _FIELD.search(text):
        # Missing or unknown: the place is the object, and not its key.
        place = f"{place}.{found[1]}" if place else found[1]
    return Refused("bad_value", text, place)


def _has_long(body: bytes) -> bool:
    """Whether there is a row of more digits than a number may have."""
    few = body[_STEP - 1 :: _STEP].translate(_AS_ZEROS)
    return _LONG_BY_STEPS in few and _LONG in body.translate(_AS_ZEROS)


def _check_numbers(body: bytes) -> None:
    """So many digits in a row may well be a text, or a fraction."""
    try:
        json.loads(body.decode(), parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise Refused("bad_json", str(error)) from error


def _whole(digits: str) -> int:
    if len(digits.removeprefix("-")) > DIGITS_MAX:
        raise ValueError(f"a whole number has more than {DIGITS_MAX} digits")
    return 0


def _quotes(text: bytes) -> int:
    """Quotation marks around strings; those within are escaped, one way or another."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')
