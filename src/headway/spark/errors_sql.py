"""Errors that differ only in numbers and names of things, told apart by Spark itself."""

from typing import TYPE_CHECKING, Final

from headway.search.error_lines import LINE_LENGTH_MAX, READ_MAX

if TYPE_CHECKING:
    from pyspark.sql import Column

_BREAK: Final = r"\n\x0B\f\r\x1C-\x1E\x85\u2028\u2029"
"""Ends of lines, as Python has them."""
_SPACE: Final = rf"{_BREAK}\t\x1F \xA0\u1680\u2000-\u200A\u202F\u205F\u3000"
_WORD: Final = "0-9A-Za-z"
# A pass for each kind, in the order of their rank. What a pass has found is a mark, not
# text, for those after it: no line has these characters, for they end lines.
_PASSES: Final = (
    (
        rf"(?<![{_WORD}])[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}",
        "\x1c",
        "<uuid>",
    ),
    # Behind a digit the 0 of an 0x belongs to a number; what is all digits is one.
    (
        rf"(?:(?<![0-9])0[xX][0-9a-fA-F]+|(?<![{_WORD}\x1C])(?![0-9]+(?![{_WORD}]))"
        rf"(?=[a-fA-F]*[0-9])[0-9a-fA-F]{{8,}})(?![{_WORD}])",
        "\x1d",
        "<hex>",
    ),
    ("[0-9]+", "\x1e", "<number>"),
)


def error_line(text: "Column") -> "Column":
    """What `headway.search.error_lines.first_line` says of the same text."""
    from pyspark.sql import functions as F

    read = F.substring(F.coalesce(text, F.lit("")), 1, READ_MAX)
    line = F.regexp_extract(read, rf"^[{_SPACE}]*([^{_BREAK}]*)", 1)
    line = F.trim(F.regexp_replace(line, f"[{_SPACE}]+", " "))
    for pattern, mark, _ in _PASSES:
        line = F.regexp_replace(line, pattern, mark)
    for _, mark, placeholder in _PASSES:
        line = F.replace(line, F.lit(mark), F.lit(placeholder))
    return F.substring(line, 1, LINE_LENGTH_MAX)
