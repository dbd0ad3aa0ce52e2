"""The blocks of code on our pages, and what is said about each of them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
FENCE = re.compile(r"^```(.*)$")
LONG = re.compile(r"^<!-- in make test-long: (.+) -->$")
TITLE = re.compile(r'title="([^"]+)"')
PROMPT = "$ "


class Block(NamedTuple):
    """One fenced block."""

    page: str
    line: int
    language: str
    title: str
    """A file that it is, or the request that it is the body of."""
    text: str
    long: str = ""
    """Why `make test` leaves it to `make test-long`; empty for all others."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


class Step(NamedTuple):
    """A command of a console, and what it prints."""

    command: str
    output: str


def blocks(page: Path) -> list[Block]:
    return list(_found(page))


def _found(page: Path) -> Iterator[Block]:
    name = page.relative_to(ROOT).as_posix()
    inside: tuple[int, str, str] | None = None
    before, text = "", list[str]()
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if fence and inside is None:
            long = LONG.match(before)
            inside, text = (number, fence[1], long[1] if long else ""), []
        elif line == "```" and inside is not None:
            start, info, why = inside
            title = TITLE.search(info)
            language = info.partition(" ")[0]
            found = "\n".join(text) + "\n"
            yield Block(name, start, language, title[1] if title else "", found, why)
            inside = None
        elif inside is not None:
            text.append(line)
        before = line
    assert inside is None, f"{name}: a block has no end"


def steps(block: Block) -> Iterator[Step]:
    """What a console shows: `$ command`, its further lines, and what it prints."""
    command, output = list[str](), list[str]()
    for line in block.text.splitlines():
        goes_on = bool(command) and not output and command[-1].endswith("\\")
        if line.startswith(PROMPT):
            if command:
                yield Step("\n".join(command), "\n".join(output))
            command, output = [line.removeprefix(PROMPT)], []
        elif goes_on:
            command.append(line)
        else:
            assert command, f"{block}: begins without a prompt"
            output.append(line)
    yield Step("\n".join(command), "\n".join(output))


def is_like(said: str, shown: str) -> bool:
    """Whether that was printed; `…` stands for anything, spaces do not matter."""
    parts = [re.escape(part) for part in "".join(shown.split()).split("…")]
    return re.fullmatch(".*".join(parts), "".join(said.split())) is not None


def commands(block: Block) -> list[list[str]]:
    """The words of each command in a block of shell, as far as they are plain."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith(PROMPT)]
    found = []
    for line in lines:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        if words:
            found.append(words)
    return found
