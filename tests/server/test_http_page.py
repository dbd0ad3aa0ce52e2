"""docs/http.md says what the code does: limits and error codes."""

import re
from pathlib import Path

import msgspec
import pytest

from headway.server.http.limits import Limits
from headway.server.problems import CODES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text()
SIZES = {"": 1, "s": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def rows(first: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading this is, by their first cell."""
    lines = PAGE.partition(f"| {first} |")[2].splitlines()[2:]
    found = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        found[name.strip("`")] = cells
    return found


def test_limits_are_as_the_page_says() -> None:
    in_docs = {}
    for name, (value, _) in rows("limit").items():
        amount, _, unit = value.replace(",", "").partition(" ")
        in_docs[name] = float(amount) * SIZES[unit]
    in_code = {
        name: float(value) for name, value in msgspec.structs.asdict(Limits()).items()
    }
    assert in_docs == in_code


@pytest.mark.parametrize("name", rows("limit"))
def test_times_on_the_page_have_their_unit(name: str) -> None:
    value = rows("limit")[name][0]
    assert name.endswith("_s") == bool(re.fullmatch(r"[\d.]+ s", value))


def test_error_codes_are_as_the_page_says() -> None:
    in_docs = {name: (int(cells[0]), cells[1]) for name, cells in rows("code").items()}
    assert in_docs == {name: (code.status, code.title) for name, code in CODES.items()}
