"""The owner of a file in a process of its own, and the way to it.

Two processes have two interpreters: where there are two cores, one reads requests while
the other decides. What is asked and answered crosses a Unix socket, which costs a little.
"""

import logging
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from headway.runtime import arenas
from headway.runtime.collector import settle
from headway.runtime.door import Door
from headway.runtime.errors import OwnerStopped
from headway.runtime.service import Service
from headway.runtime.sharing import Host
from headway.runtime.throttler import NONE, Throttling
from headway.store import errors
from headway.store.errors import StoreError, StoreFailed, StoreLocked
from headway.store.sqlite.store import SqliteStore
from headway.wire.logline import log_line

READY: Final = "ready"
END_S: Final = 30.0
"""How long it may take to finish what it has begun."""
SETTLED_S: Final = 0.5
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Throttling).decode


class Apart(Door):
    """Speaks to an owner that it has started; starts another when that one dies."""

    _child: subprocess.Popen[str] | None = None

    def close(self) -> None:
        super().close()
        self._end()

    def _own(self) -> None:
        self._end()
        # In a session of its own: a Ctrl-C at the terminal is for the server, which
        # ends it in time.
        self._child = child = subprocess.Popen(  # noqa: S603  # our own program
            (
                *(sys.executable, "-m", "headway.runtime.apart", str(self._path)),
                _encode(self._throttling).decode(),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert child.stdout is not None
        said = child.stdout.readline().strip()
        if said != READY:
            self._end()
            raise _error(said)
        try:
            self._guest = self._visit()
        except OSError as error:
            raise OwnerStopped("the owner ended as soon as it was there") from error

    def _end(self) -> None:
        """It ends by itself when nobody speaks to it any more."""
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(OSError):
            child.stdin.close()
        try:
            child.wait(END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def own(path: Path, throttling: Throttling) -> int:
    """Owns the file until nobody holds the other end of stdin, or it must stop."""
    # Whoever stops all processes of a service means the server: it ends this one last.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    arenas.use()
    try:
        service = Service(SqliteStore(path), throttling)
    except StoreError as error:
        _say(f"{type(error).__name__}: {error}")
        return 1
    host = Host(service, path)
    _say(READY)
    threading.Thread(target=_watch, args=(service, host), daemon=True).start()
    settling = threading.Timer(SETTLED_S, settle)
    settling.daemon = True
    settling.start()
    service.wait()
    return 0


class _Lines(logging.Formatter):
    """As the server writes its log, to which these lines are added."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {"event": "library", "logger": record.name})
        return log_line(record.created, record.levelname, fields)


def _log() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.getLogger().addHandler(handler)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _watch(service: Service, host: Host) -> None:
    sys.stdin.read()
    # Nobody comes in any more: the next owner may be waiting at the same address.
    host.close()
    service.close()


def _error(said: str) -> StoreError:
    """What the process has told before it ended."""
    name, _, text = said.partition(": ")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, StoreFailed | StoreLocked):
        return kind(text)
    if isinstance(kind, type) and issubclass(kind, StoreError):
        error = kind.__new__(kind, text)
        Exception.__init__(error, text)
        return error
    return StoreFailed(said or "the owner's process ended before it was ready")


if __name__ == "__main__":
    _log()
    _path, *_given = sys.argv[1:]
    sys.exit(own(Path(_path), _decode(_given[0]) if _given else NONE))
