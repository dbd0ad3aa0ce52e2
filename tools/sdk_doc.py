"""Writes docs/sdk-reference.md from the signatures and docstrings of the SDK."""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path("docs/sdk-reference.md")
HEAD = """# SDK reference

Written by `make docs` from the code's own signatures and docstrings. [The SDK](sdk.md) is the
guide to it.
"""
SECTIONS: dict[str, tuple[str, ...]] = {
    "Apps and handlers": (
        "headway.App",
        "headway.worker.options.AnyOptions",
        "headway.worker.options.JobOptions",
        "headway.worker.options.EnqueueOptions",
        "headway.worker.handler.Handler",
        "headway.worker.handler.Bound",
        "headway.worker.results.Enqueued",
        "headway.current_job",
        "headway.wait_for",
        "headway.worker.hooks.Middleware",
    ),
    "The embedded queue": (
        "headway.open",
        "headway.open_async",
        "headway.Headway",
        "headway.spec",
        "headway.LeasedJob",
    ),
    "Rules of a queue": (
        "headway.QueueConfig",
        "headway.Concurrency",
        "headway.Rate",
        "headway.Shares",
        "headway.Window",
        "headway.WindowSet",
        "headway.Schedule",
    ),
    "Throttlers": (
        "headway.throttling.ThrottledJob",
        "headway.throttling.LimitInUse",
        "headway.throttling.Running",
        "headway.throttling.Start",
        "headway.throttling.Later",
        "headway.throttling.Refuse",
    ),
    "What follows a failure": (
        "headway.Exponential",
        "headway.Fixed",
        "headway.Delays",
        "headway.GiveUp",
        "headway.Retry",
        "headway.Bury",
    ),
    "Errors": (
        "headway.RuleBroken",
        "headway.Unreachable",
        "headway.OwnerStopped",
        "headway.worker.many.EnqueueFailed",
        "headway.worker.results.NoValue",
    ),
    "Testing": (
        "headway.testing.recording",
        "headway.testing.inline",
        "headway.testing.virtual_time",
        "headway.testing.in_memory",
        "headway.testing.Recorder",
        "headway.testing.VirtualQueue",
    ),
    "Integrations": (
        "headway.integrations.otel.Telemetry",
        "headway.integrations.starlette.lifespan",
    ),
}
NOT_MADE = {
    "Bound",
    "Enqueued",
    "EnqueueFailed",
    "Handler",
    "Headway",
    "NoValue",
    "Recorder",
    "VirtualQueue",
}
"""Classes whose objects are given to users and never made by them."""
LINE_MAX = 84
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for name in names:
            parts += described(name)
    return "".join(parts)


def described(name: str) -> Iterator[str]:
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(module), last)
    node = parsed(thing)
    yield f"\n### {last}\n\n`{name}`\n"
    if isinstance(node, ast.ClassDef):
        yield from of_class(node)
    else:
        yield from of_function(node)


def parsed(thing: Any) -> ast.ClassDef | Function:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.ClassDef | Function), thing
    return node


def of_function(node: Function) -> Iterator[str]:
    yield f"\n```python\n{signature(node, node.name)}\n```\n"
    yield from said(node)


def of_class(node: ast.ClassDef) -> Iterator[str]:
    methods = [one for one in node.body if isinstance(one, Function)]
    for method in methods:
        if method.name == "__init__" and node.name not in NOT_MADE:
            made = textwrap.indent(signature(method, "__init__"), "    ")
            yield f"\n```python\nclass {node.name}:\n{made}\n```\n"
    yield from said(node)
    rows = list(fields(node))
    if rows:
        yield "\n| field | type | default | |\n|---|---|---|---|\n" + "".join(rows)
    yield from told(methods)


def told(methods: list[Function]) -> Iterator[str]:
    seen = set()
    for method in methods:
        names = [ast.unparse(one) for one in method.decorator_list]
        if method.name.startswith("_") or "overload" in names or method.name in seen:
            continue
        seen.add(method.name)
        if "property" in names:
            kind = ast.unparse(method.returns) if method.returns else ""
            yield f"\n**`{method.name}`**: `{kind}`. {ast.get_docstring(method) or ''}\n"
            continue
        yield f"\n```python\n{signature(method, method.name)}\n```\n"
        yield from said(method)


def said(node: ast.ClassDef | Function) -> Iterator[str]:
    text = ast.get_docstring(node)
    if text:
        yield f"\n{text}\n"


def fields(node: ast.ClassDef) -> Iterator[str]:
    """Annotated names of a struct, each with the docstring that follows it."""
    for one, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        if one.target.id.startswith("_"):
            continue
        about = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            about = " ".join(inspect.cleandoc(str(after.value.value)).split())
        kind = ast.unparse(one.annotation).replace("|", "\\|")
        default = f"`{ast.unparse(one.value)}`" if one.value else ""
        yield f"| `{one.target.id}` | `{kind}` | {default} | {about} |\n"


def signature(node: Function, name: str) -> str:
    """As it is written, without self and a body."""
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    end = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    parts = list(parameters(node.args))
    line = f"{start} {name}({', '.join(parts)}){end}: ..."
    if len(line) <= LINE_MAX:
        return line
    spread = "".join(f"    {part},\n" for part in parts)
    return f"{start} {name}(\n{spread}){end}: ..."


def parameters(given: ast.arguments) -> Iterator[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
    for one, default in zip(plain, defaults, strict=True):
        if one.arg not in {"self", "cls"}:
            yield parameter(one, default)
        if given.posonlyargs and one is given.posonlyargs[-1] and one.arg != "self":
            yield "/"
    if given.vararg:
        yield f"*{parameter(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield parameter(one, default)
    if given.kwarg:
        yield f"**{parameter(given.kwarg, None)}"


def parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
    return f"{one.arg}{kind}" + (f" = {ast.unparse(default)}" if default else "")


def main() -> None:
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
