"""Code must parse; tests must be able to fail, and may not wait for a wall clock."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.source import Finding, Source

ASSERTING = re.compile(
    r"assert|raises|warns|check|verify|expect|run_state_machine|fail"
)
SLEEPS = {"sleep", "time.sleep", "asyncio.sleep", "anyio.sleep"}


def syntax(source: Source) -> Iterator[Finding]:
    if source.error is not None:
        yield source.finding(source.error.lineno or 1, "syntax", source.error.msg)


def assertions(source: Source) -> Iterator[Finding]:
    if source.folder != "tests":
        return
    for function in source.functions():
        if function.name.startswith("test") and not can_fail(function):
            yield source.finding(function.lineno, "assertion", function.name)


def can_fail(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and ASSERTING.search(ast.unparse(node.func)))
        for node in ast.walk(function)
    )


def sleeps(source: Source) -> Iterator[Finding]:
    if source.folder != "tests":
        return
    for node in source.nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SLEEPS:
            waits = [ast.unparse(argument) for argument in node.args]
            if waits != ["0"]:
                yield source.finding(node.lineno, "sleep", ast.unparse(node))
