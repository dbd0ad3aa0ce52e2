"""Bodies as JSON, read strictly: what two readers could read differently is refused."""

import json
from typing import Any, Final

import msgspec

from headway.server.problems import Refused

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_minify: Final = msgspec.json.format


def check(body: bytes) -> None:
    """Refuses what is no JSON, or says a key twice.

    What comes out of decoding and encoding as it went in, but for white space, holds no
    key twice: that takes a microsecond. Only the rest is read by a slow reader.
    """
    try:
        value = _decode(body)
        plain = _minify(body, indent=-1)
    except RecursionError as error:
        raise Refused("bad_json", "it is nested too deep") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused("bad_json", str(error)) from error
    try:
        if _encode(value) == plain:
            return
    except (msgspec.MsgspecError, OverflowError, TypeError):
        pass  # a number that can be read and not written
    try:
        json.loads(body, object_pairs_hook=_distinct)
    except RecursionError as error:
        raise Refused("bad_json", "it is nested too deep") from error
    except ValueError as error:
        raise Refused("bad_json", str(error)) from error


def read(body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """The body as its type; the answer to what it is not names the place."""
    check(body)
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(error) from error


def convert(values: dict[str, str], kind: Any) -> Any:
    """Values of a query as their type."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _refused(error) from error


def _refused(error: Exception) -> Refused:
    text, _, place = str(error).partition(" - at `")
    return Refused("bad_value", text, place.removesuffix("`").removeprefix("$."))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
