"""The pages say what the code does: states, defaults, minutes, and links that lead."""

import re
from pathlib import Path

import pytest

from headway.core import defaults
from tests.docs.blocks import PAGES, ROOT
from tools import cli_doc, states_doc, tables_doc

UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
UNIT_NAMES = {"SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS"}
CI_MINUTES_MAX = 15


def rows(page: str, columns: int) -> list[list[str]]:
    """The cells of every table row with so many columns, headings included."""
    lines = (ROOT / "docs" / page).read_text().splitlines()
    tables = (line.strip("| ").split(" | ") for line in lines if line.startswith("| "))
    return [cells for cells in tables if len(cells) == columns]


def number(text: str) -> float:
    """`30 s` in milliseconds, `1,000` as it is."""
    amount, _, unit = text.replace(",", "").partition(" ")
    return float(amount) * UNITS_MS[unit] if unit else float(amount)


def test_states_page_is_current() -> None:
    page = (ROOT / states_doc.PAGE).read_text()
    assert page == states_doc.page(), "run make docs"


def test_command_line_page_is_current() -> None:
    page = (ROOT / cli_doc.PAGE).read_text()
    assert page == cli_doc.page(), "run make docs"


def test_tables_page_is_current() -> None:
    page = (ROOT / tables_doc.PAGE).read_text()
    assert page == tables_doc.page(), "run make docs"


def test_defaults_page_has_every_default_with_its_value() -> None:
    in_code = {
        name: float(value)
        for name, value in vars(defaults).items()
        if name.isupper() and name not in UNIT_NAMES
    }
    in_docs = {
        name.strip("`"): number(value)
        for name, value, _ in rows("defaults.md", 3)
        if name.startswith("`")
    }
    assert in_docs == in_code


def test_durations_on_the_defaults_page_have_units() -> None:
    for name, value, _ in rows("defaults.md", 3):
        if name.startswith("`"):
            assert name.endswith("_MS`") == (" " in value), name


def test_ci_minutes_stay_below_their_limit() -> None:
    table = rows("testing.md", 2)
    minutes = [float(cell) for _, cell in table if re.fullmatch(r"[\d.]+", cell)]
    assert len(minutes) >= 5
    assert sum(minutes) < CI_MINUTES_MAX


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    missing = [name for name in targets if not (page.parent / name).exists()]
    assert missing == []
