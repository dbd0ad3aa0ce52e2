"""Handlers in a process of their own, which can be killed and may die.

The child imports the handler's module anew, is given the job as JSON and answers in
JSON; nothing is shared but what the module says.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any, Final

import msgspec

from headway.core.errors import BadValue
from headway.wire.work import Leased, ResultBody
from headway.worker.handler import Handler
from headway.worker.outcomes import TimedOut, WaitFor, too_long

CHILD: Final = "headway.worker.isolated"


class Answer(msgspec.Struct, omit_defaults=True):
    """What the child tells when its handler has ended."""

    error: str | None = None
    wait: WaitFor | None = None
    result: ResultBody | None = None


class IsolatedFailure(Exception):
    """The handler raised, or its process died. The text says all that is known."""


async def run_isolated(
    handler: Handler[..., Any], job: Leased
) -> WaitFor | ResultBody | None:
    """Runs the job in a child; kills it at the timeout, or if we are cancelled."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        CHILD,
        *place_of(handler),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    timeout_s = handler.timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            written, _ = await child.communicate(msgspec.json.encode(job))
    except TimeoutError as error:
        assert timeout_s is not None
        text = f"{too_long(timeout_s)}; its process was killed"
        raise TimedOut(text) from error
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    if not written:
        raise IsolatedFailure(f"its process died: {_status(child.returncode)}")
    answer = msgspec.json.decode(written, type=Answer)
    if answer.error is not None:
        raise IsolatedFailure(answer.error)
    return answer.wait or answer.result


def place_of(handler: Handler[..., Any]) -> tuple[str, str]:
    """Where a child finds the handler: its module, and its name there."""
    module = handler.function.__module__
    name = handler.function.__qualname__
    if module == "__main__" or "<locals>" in name:
        rule = "only a handler that can be imported runs in a process of its own"
        raise BadValue("isolate", name, rule)
    return module, name


def _status(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit status {code}"
