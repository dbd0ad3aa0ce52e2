"""What the tidy rules look at: the files of a checkout, read once, and their findings."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

NOT_OURS = {"__pycache__", "out", "build", "dist", "site"}
SIZE_MAX_BYTES = 500_000


class Finding(NamedTuple):
    """One broken rule, at one place."""

    path: PurePosixPath
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


class Source(NamedTuple):
    """A text file; `tree` is there for Python that parses, else `error` says why not."""

    path: PurePosixPath
    text: str
    tree: ast.Module | None = None
    error: SyntaxError | None = None

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def folder(self) -> str:
        """The first folder of its path: src, tests, docs."""
        return self.path.parts[0] if len(self.path.parts) > 1 else ""

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.nodes():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def nodes(self) -> Iterator[ast.AST]:
        if self.tree is not None:
            yield from ast.walk(self.tree)

    def finding(self, line: int, rule: str, text: str) -> Finding:
        return Finding(self.path, line, rule, text)


def read(root: Path) -> list[Source]:
    """Every text file of the checkout, those not added yet included."""
    sources = []
    for path in sorted(listed(root)):
        file = root / path
        if not file.is_file() or file.stat().st_size > SIZE_MAX_BYTES:
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        sources.append(parse(path, text))
    return sources


def parse(path: PurePosixPath, text: str) -> Source:
    if path.suffix != ".py":
        return Source(path, text)
    try:
        return Source(path, text, ast.parse(text))
    except SyntaxError as error:
        return Source(path, text, error=error)


def listed(root: Path) -> list[PurePosixPath]:
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        result = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return walked(root)
    return [PurePosixPath(name) for name in result.stdout.split("\0") if name]


def walked(root: Path) -> list[PurePosixPath]:
    """Without git: every file outside the folders that tools make or hide."""
    paths = (file.relative_to(root) for file in root.rglob("*") if file.is_file())
    return [
        PurePosixPath(path) for path in paths if not any(map(is_made, path.parents))
    ]


def is_made(folder: Path) -> bool:
    return folder.name in NOT_OURS or (
        folder.name.startswith(".") and folder.name != ".ci"
    )
