"""The core takes time, chance and input as arguments, and imports nothing that has them."""

import ast
from collections.abc import Iterator

from tests.tidy.source import Finding, Source

IMPURE = {
    "asyncio",
    "importlib",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "time",
    "uuid",
}
CLOCK_METHODS = {"now", "utcnow", "today"}
CLOCK_CLASSES = {"datetime", "date"}
IMPURE_CALLS = {"open", "input", "print", "__import__"}


def is_core(source: Source) -> bool:
    return source.path.parts[:3] == ("src", "headway", "core")


def core_imports(source: Source) -> Iterator[Finding]:
    if not is_core(source):
        return
    for node in source.nodes():
        for module in imported(node):
            if module.partition(".")[0] in IMPURE:
                yield source.finding(lineno(node), "core-import", module)


def imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def core_clock(source: Source) -> Iterator[Finding]:
    """Reads of the clock that need no import of their own, and input or output."""
    if not is_core(source):
        return
    for node in source.nodes():
        match node:
            case ast.Attribute(value=owner, attr=attribute):
                owner_name = ast.unparse(owner).rpartition(".")[2]
                if attribute in CLOCK_METHODS and owner_name in CLOCK_CLASSES:
                    text = f"{owner_name}.{attribute}"
                    yield source.finding(node.lineno, "core-clock", text)
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield source.finding(node.lineno, "core-clock", f"{name}()")


def lineno(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))
