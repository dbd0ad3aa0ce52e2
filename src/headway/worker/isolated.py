"""The child in which one attempt runs: MODULE NAME, the job on stdin."""

import asyncio
import importlib
import inspect
import os
import sys
from functools import reduce

import msgspec

from headway.wire.work import Leased
from headway.worker.attempt import called, error_text
from headway.worker.isolation import Answer
from headway.worker.outcomes import WaitFor, current
from headway.worker.payloads import returned


def main() -> None:
    # What handlers print goes where errors go: our stdout is for the answer alone.
    channel = os.dup(1)
    os.dup2(2, 1)
    module, name = sys.argv[1:]
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Leased)
    try:
        handler = reduce(getattr, name.split("."), importlib.import_module(module))
        function, args, kwargs = called(handler, job)  # type: ignore[arg-type]
        current.set(job)
        value = function(*args, **kwargs)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        if isinstance(value, WaitFor):
            answer = Answer(wait=value)
        elif job.wants_result is True:
            answer = Answer(result=returned(value))
        else:
            answer = Answer()
    except Exception as error:  # told to the parent
        answer = Answer(error=error_text(error))
    os.write(channel, msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
