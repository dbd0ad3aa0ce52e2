"""Recorded load: a CSV file with the number of jobs in each minute."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from headway.core.errors import BadValue

STEPS_MAX: Final = 1_000_000
JOBS_MAX: Final = 10_000_000


def read_trace(folder: Path, file: str, scale: float, key: str) -> tuple[int, ...]:
    """Jobs by minute, scaled; minutes that are left out have none."""
    try:
        with (folder / file).open(encoding="utf-8", newline="") as lines:
            return _scaled(list(_rows(lines)), scale)
    except (OSError, ValueError, csv.Error) as error:
        # One line, whatever the system or the codec had to say.
        reason = getattr(error, "strerror", None) or str(error)
        raise BadValue(key, file, " ".join(reason.split())) from error


def _rows(lines: Iterator[str]) -> Iterator[tuple[int, int]]:
    reader = csv.DictReader(lines, strict=True)
    for column in ("minute", "jobs"):
        if column not in (reader.fieldnames or ()):
            raise ValueError(f"has no column {column}")
    last = -1
    for row in reader:
        minute = _whole(row["minute"], "minute", reader.line_num, STEPS_MAX)
        if minute <= last:
            raise ValueError(f"line {reader.line_num}: minutes must ascend")
        last = minute
        yield minute, _whole(row["jobs"], "jobs", reader.line_num, JOBS_MAX)


def _whole(text: str | None, column: str, line: int, high: int) -> int:
    shown = (text or "").strip()
    if not (shown.isascii() and shown.isdigit() and len(shown) < 20):
        raise ValueError(f"line {line}: {column} = {shown[:40]!r} is no whole number")
    if int(shown) > high:
        raise ValueError(f"line {line}: {column} = {shown}: must be at most {high}")
    return int(shown)


def _scaled(rows: list[tuple[int, int]], scale: float) -> tuple[int, ...]:
    if not rows:
        raise ValueError("has no rows")
    jobs = [0] * (rows[-1][0] + 1)
    exact = 0.0
    given = 0
    for minute, count in rows:
        # Rounds the running sum, so that small scales lose no jobs to rounding.
        exact += count * scale
        jobs[minute] = round(exact) - given
        given += jobs[minute]
    return tuple(jobs)
