"""Runs the Python of one page, block by block, in one namespace: a process of its own."""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import sys
import traceback
import types


def run(code: str, name: str, line: int, names: dict[str, object]) -> str:
    """What the block prints."""
    said = io.StringIO()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    # Newlines before it let a traceback name the line of the page.
    compiled = compile("\n" * line + code, name, "exec", flags=flags)
    with contextlib.redirect_stdout(said):
        if compiled.co_flags & inspect.CO_COROUTINE:
            asyncio.run(types.FunctionType(compiled, names)())
        else:
            exec(compiled, names)
    return said.getvalue()


def main() -> None:
    module = types.ModuleType("page")
    sys.modules["page"] = module
    sys.path.insert(0, "")
    for request in sys.stdin:
        asked = json.loads(request)
        answer = {"said": "", "error": ""}
        try:
            answer["said"] = run(
                asked["code"], asked["name"], asked["line"], vars(module)
            )
        except BaseException:
            answer["error"] = traceback.format_exc()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
