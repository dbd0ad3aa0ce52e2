"""What the demonstration's processes share: they report in lines, and end with it."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable

_lock = threading.Lock()


def report(*facts: object) -> None:
    """One line for the demonstration; several threads may report."""
    line = json.dumps(facts)
    with _lock:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def when_left(end: Callable[[], None]) -> None:
    """Calls `end` when the demonstration has closed its end of the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the demonstration's

    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)
        end()

    threading.Thread(target=watch, daemon=True).start()
