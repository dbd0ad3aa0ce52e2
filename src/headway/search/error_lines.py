"""Errors that differ only in numbers and names of things are the same error."""

import re
from typing import Final

LINE_LENGTH_MAX: Final = 200
READ_MAX: Final = 1_000
"""Characters that are looked at."""

_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_HEX: Final = r"0[xX][0-9a-fA-F]+|(?<![0-9A-Za-z])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}"
_PARTS: Final = re.compile(
    rf"(?P<uuid>(?<![0-9A-Za-z]){_UUID})|(?P<hex>(?:{_HEX})(?![0-9A-Za-z]))"
    r"|(?P<number>[0-9]+)"
)
_SPACE: Final = re.compile(r"\s+")


def first_line(text: str) -> str:
    """The first line that says anything, with placeholders for what varies."""
    for line in text[:READ_MAX].splitlines():
        said = _SPACE.sub(" ", line).strip()
        if said:
            return _PARTS.sub(_placeholder, said)[:LINE_LENGTH_MAX]
    return ""


def _placeholder(found: re.Match[str]) -> str:
    kind = found.lastgroup
    # A long row of digits is a number, and no less one for being hex as well.
    if kind == "hex" and found[0].isdigit():
        kind = "number"
    return f"<{kind}>"
