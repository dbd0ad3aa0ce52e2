"""The hot modules as machine code, where `headway compile` has made it of them.

The sources are the same, and so is what they do. A build counts only as long as the
sources that it was made of are there, unchanged: otherwise they are interpreted.
`HEADWAY_COMPILED=0` leaves every build aside; a folder there names another build.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final
from zlib import crc32

CORE: Final = (
    "ahead",
    "book",
    "delivery",
    "dispatch",
    "durations",
    "empties",
    "entitlement",
    "fairness",
    "fetched",
    "gate",
    "gauge_book",
    "held",
    "idempotency",
    "intake",
    "job",
    "lane",
    "leases",
    "life",
    "limits",
    "memory",
    "odd",
    "order",
    "parking",
    "part",
    "partition",
    "promise",
    "publishing",
    "queue",
    "register",
    "restore",
    "rules",
    "rulings",
    "schedules",
    "shares",
    "shelf",
    "spec_check",
    "states",
    "strand",
    "sweeps",
    "timers",
    "turn",
    "untouched",
    "urgency",
    "usage",
    "use_book",
    "waits",
)
MODULES: Final = (
    *(f"headway.core.{name}" for name in CORE),
    "headway.runtime.alike",
    "headway.runtime.handing",
    "headway.runtime.journal",
    "headway.runtime.meter",
    "headway.runtime.records",
    "headway.server.answers",
    "headway.server.app",
    "headway.server.bodies",
    "headway.server.desk",
    "headway.server.guard",
    "headway.server.http.connection",
    "headway.server.http.reader",
    "headway.search.batch",
    "headway.search.happening",
    "headway.search.lives",
    "headway.search.puts",
    "headway.server.ids",
    "headway.server.shapes",
    "headway.sim.scan_board",
    "headway.store.sqlite.bundles",
    "headway.store.sqlite.bundling",
    "headway.store.sqlite.known",
    "headway.store.sqlite.merged",
    "headway.store.sqlite.pending",
    "headway.store.sqlite.places",
)
"""None of them defines a record of msgspec: a compiled class loses what its base was told."""
LIBRARY: Final = "headway__mypyc"
"""What they all are; the modules themselves are but names in it."""
BY_HAND: Final = ("headway.core.prefetch", "headway.runtime.arenas")
"""Those that are C already, beside a source in Python that does nothing: that stands in
for them where a compiler can't make them, as they rest on an interpreter or a system."""
STAMP: Final = "made-of"
SOURCES: Final = Path(__file__).parent.parent.parent
SWITCH: Final = "HEADWAY_COMPILED"


class Finder:
    """Modules of a build, found before their sources are."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            name: folder / file_of(name) for name in (LIBRARY, *BY_HAND, *MODULES)
        }

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        if file is None or (name in BY_HAND and not file.exists()):
            return None
        return spec_from_file_location(name, file)


def folder() -> Path | None:
    """Where this interpreter's build is, or would be; None where there is to be none."""
    named = os.environ.get(SWITCH, "")
    if named == "0":
        return None
    if named:
        return Path(named).absolute()
    return Path(__file__).parent / "built" / sys.implementation.cache_tag


def file_of(module: str) -> str:
    return f"{module}{EXTENSION_SUFFIXES[0]}"


def stamp() -> str:
    """What the sources are, whenever they were written: images forget that."""
    lines = [EXTENSION_SUFFIXES[0]]
    sources = [(module, ".py") for module in MODULES]
    sources += [(module, ".c") for module in BY_HAND]
    for module, suffix in sources:
        source = SOURCES.joinpath(*module.split(".")).with_suffix(suffix)
        lines.append(f"{module} {crc32(source.read_bytes()):08x}")
    return "\n".join(lines)


def is_fresh(place: Path) -> bool:
    """Whether there is a build, of the sources as they are."""
    try:
        return (place / STAMP).read_text() == stamp()
    except OSError:
        return False


def is_used() -> bool:
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


def use() -> None:
    """From here on modules are imported from the build, if there is a fresh one."""
    place = folder()
    if place is not None and is_fresh(place) and not is_used():
        sys.meta_path.insert(0, Finder(place))
