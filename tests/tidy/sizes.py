"""Limits of size: beyond them a reader loses the thread."""

import ast
from collections.abc import Iterator

from tests.tidy.source import Finding, Source

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
PUBLIC_METHODS_MAX = 12
PARAMETERS_MAX = 7
KEYWORD_ONLY_MAX = 12
INIT_NAMES_MAX = 25
LINE_LENGTH_MAX = 100

NOT_AN_API = {"property", "rule", "invariant", "initialize", "precondition", "overload"}
"""Decorators of methods that nobody calls by name."""


def module_length(source: Source) -> Iterator[Finding]:
    length = len(source.lines)
    if source.tree is not None and length > MODULE_LINES_MAX:
        yield source.finding(1, "module-length", f"{length} lines")


def function_length(source: Source) -> Iterator[Finding]:
    for function in source.functions():
        length = (function.end_lineno or function.lineno) - function.lineno
        if length > FUNCTION_LINES_MAX:
            text = f"{function.name} has {length} lines"
            yield source.finding(function.lineno, "function-length", text)


def public_methods(source: Source) -> Iterator[Finding]:
    for node in source.nodes():
        if isinstance(node, ast.ClassDef):
            names = [name for name in map(public_method, node.body) if name]
            if len(names) > PUBLIC_METHODS_MAX:
                text = f"{node.name} has {len(names)} public methods"
                yield source.finding(node.lineno, "public-methods", text)


def public_method(node: ast.stmt) -> str:
    """The name of a method that others call, or nothing."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    if node.name.startswith(("_", "test_")):
        return ""
    is_called = NOT_AN_API.isdisjoint(map(decorator_name, node.decorator_list))
    return node.name if is_called else ""


def decorator_name(decorator: ast.expr) -> str:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = ast.unparse(target)
    return "property" if name.endswith(".setter") else name.rpartition(".")[2]


def parameters(source: Source) -> Iterator[Finding]:
    for function in source.functions():
        arguments = function.args
        names = [part.arg for part in (*arguments.posonlyargs, *arguments.args)]
        count = len([name for name in names if name not in {"self", "cls"}])
        if count > PARAMETERS_MAX:
            text = f"{function.name} takes {count} by position"
            yield source.finding(function.lineno, "parameters", text)
        if len(arguments.kwonlyargs) > KEYWORD_ONLY_MAX:
            text = f"{function.name} takes {len(arguments.kwonlyargs)} by keyword"
            yield source.finding(function.lineno, "parameters", text)


def init_names(source: Source) -> Iterator[Finding]:
    if source.path.name != "__init__.py" or source.tree is None:
        return
    names = {name for node in source.tree.body for name in bound_names(node)}
    public = {name for name in names if not name.startswith("_")}
    if len(public) > INIT_NAMES_MAX:
        yield source.finding(1, "init-names", f"{len(public)} public names")


def bound_names(node: ast.stmt) -> list[str]:
    """The names that a statement puts into its module."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name for alias in node.names]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            return [name.id for name in node.targets if isinstance(name, ast.Name)]
        case ast.AnnAssign(target=ast.Name()):
            return [ast.unparse(node.target)]
    return []


def line_length(source: Source) -> Iterator[Finding]:
    if source.tree is None:
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > LINE_LENGTH_MAX:
            yield source.finding(number, "line-length", f"{len(line)} characters")
