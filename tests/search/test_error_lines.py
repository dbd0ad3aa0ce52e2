"""Errors that differ only in what varies are one error."""

import pytest

from headway.search.error_lines import LINE_LENGTH_MAX, first_line

CASES = {
    "job 17 failed after 3.5 s": "job <number> failed after <number>.<number> s",
    "\n\n  no  route\tto host\nmore": "no route to host",
    "id 6f1c2b3a-0000-4abc-9def-0123456789ab gone": "id <uuid> gone",
    "at 0xDEADbeef": "at <hex>",
    "commit 9fceb02d0ae5": "commit <hex>",
    "order 20240101120000": "order <number>",
    "defaced beefcafe": "defaced beefcafe",
    "": "",
    " \n ": "",
}


@pytest.mark.parametrize("text", CASES)
def test_what_varies_gives_way_to_placeholders(text: str) -> None:
    assert first_line(text) == CASES[text]


def test_lines_are_cut() -> None:
    assert len(first_line("x" * 100_000)) == LINE_LENGTH_MAX
    assert first_line(first_line("a1 " * 100_000)).startswith("a<number>")
