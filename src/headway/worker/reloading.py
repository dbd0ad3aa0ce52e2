"""For development: a worker whose code has changed ends, and its fleet starts it anew."""

import logging
import os
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

log: Final = logging.getLogger("headway.worker")
CHANGED_STATUS: Final = 75
"""With which a process ends whose code is not the newest."""
LOOK_S: Final = 0.3


class Watch:
    """Looks at files, by the time of their last change."""

    def __init__(self, files: Callable[[], Iterable[str]]) -> None:
        """`files` is asked each time: modules may be loaded later."""
        self._files = files
        self._changes_ns: dict[str, int] = {}
        self.changed()

    def changed(self) -> str | None:
        """A file that is another than at the first look; one that is gone is not."""
        for name in self._files():
            try:
                change_ns = Path(name).stat().st_mtime_ns
            except OSError:
                continue
            if self._changes_ns.setdefault(name, change_ns) != change_ns:
                return name
        return None


class Reloading:
    """Stops this process as SIGTERM does when code that it has loaded is changed."""

    def __init__(self) -> None:
        self.has_changed = False
        self._watch = Watch(project_files)

    def start(self) -> None:
        threading.Thread(target=self._look, name="headway-reload", daemon=True).start()

    def _look(self) -> None:
        pause = threading.Event()
        while (name := self._watch.changed()) is None:
            pause.wait(LOOK_S)
        log.info("%s has changed: the worker starts anew", name)
        self.has_changed = True
        os.kill(os.getpid(), signal.SIGTERM)


def wait_for_change(error: BaseException) -> bool:
    """Until a file that the error came from, or any that is loaded, is changed.

    False at once if there is none.
    """
    names = {*files_of(error), *project_files()}
    if not names:
        return False
    watch = Watch(lambda: names)
    pause = threading.Event()
    while watch.changed() is None:
        pause.wait(LOOK_S)
    return True


def project_files() -> set[str]:
    """Of all modules that are loaded and not installed."""
    named = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {name for name in named if name is not None and _is_ours(name)}


def files_of(error: BaseException) -> set[str]:
    """Where an import failed; such modules are not among those that are loaded."""
    names = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    if isinstance(error, SyntaxError) and error.filename:
        names.add(error.filename)
    return {name for name in names if _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name.endswith(".py") and not name.startswith(_INSTALLED)


def _installed() -> tuple[str, ...]:
    """Folders of Python, of packages and of Headway itself."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    places = [Path(sysconfig.get_path(name)) for name in names]
    places.append(Path(__file__).parents[1])
    resolved = [place.resolve() for place in places]
    return tuple({f"{place}{os.sep}" for place in [*places, *resolved]})


_INSTALLED: Final = _installed()
