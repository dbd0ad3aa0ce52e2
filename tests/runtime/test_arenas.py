"""Memory in large pages: had for the asking, given back, and had again."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from headway.compiled import SOURCES
from headway.runtime import arenas

SOURCE = SOURCES / "headway" / "runtime" / "arenas.c"
BEGIN = """
import mmap
import random
import arenas

def kb(name):
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

# Whether this system has large pages at all, and some left.
space = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
space.madvise(mmap.MADV_HUGEPAGE)
for place in range(0, len(space), 4_096):
    space[place] = 1
print(kb("AnonHugePages"))
space.close()

MANY = 1_000_000
old = [str(number) * 9 for number in range(MANY)]
assert arenas.use() and arenas.use()
"""
"""Objects of before are in arenas that others have supplied, and go back to them."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the module, made as `headway compile` makes it."""
    folder = tmp_path_factory.mktemp("arenas")
    include = Path(sysconfig.get_paths()["include"])
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not (include / "Python.h").exists():
        pytest.skip("no C compiler, or no headers of Python")
    if not sys.platform.startswith("linux"):
        pytest.skip("large pages are had for the asking on Linux only")
    made = folder / f"arenas{EXTENSION_SUFFIXES[0]}"
    flags = ["-O2", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(made)], check=True)
    return folder


def run(folder: Path, script: str) -> list[int]:
    """What the script prints; and before it, how much of 64 MB is in large pages."""
    told = subprocess.run(
        [sys.executable, "-c", BEGIN + script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return list(map(int, told.stdout.split()))


def test_it_says_whether_anything_is_done() -> None:
    is_compiled = not str(arenas.__file__).endswith(".py")
    assert arenas.use() is is_compiled


def test_objects_are_in_large_pages(built: Path) -> None:
    script = """
new = [str(number) * 9 for number in range(MANY)]
print(kb("AnonHugePages"))
"""
    there_kb, huge_kb = run(built, script)
    if there_kb < 60_000:
        pytest.skip("this system has no large pages to give")
    assert huge_kb > 30_000


def test_what_was_freed_goes_back_and_is_as_good_again(built: Path) -> None:
    script = """
for _ in range(3):
    less = kb("Rss")
    new = [str(number) * 9 for number in range(MANY)]
    print(kb("Rss") - less, kb("AnonHugePages"))
    del new
    print(kb("Rss") - less, kb("AnonHugePages"))
"""
    there_kb, *told = run(built, script)
    more, left = told[0::4], told[2::4]
    assert min(more) > 60_000
    assert max(left) < min(more) / 4
    huge = told[1::4]
    assert there_kb < 60_000 or min(huge) >= max(huge) / 2


def test_whoever_supplied_an_arena_has_it_back(built: Path) -> None:
    script = """
before = kb("Rss")
new = [str(number) * 9 for number in range(MANY)]
held = kb("Rss")
old.clear()
print(held - before, held - kb("Rss"))
"""
    _, taken, freed = run(built, script)
    assert freed > taken / 2


def test_objects_live_on_whatever_is_freed_around_them(built: Path) -> None:
    script = """
draw = random.Random(5)
kept = {}
for turn in range(40):
    for number in draw.sample(range(MANY), 20_000):
        kept[number] = [number, str(number) * draw.randrange(1, 40)]
    for number in draw.sample(sorted(kept), len(kept) * draw.randrange(1, 9) // 9):
        del kept[number]
    assert all(one[0] == key and one[1].startswith(str(key)) for key, one in kept.items())
print(len(kept))
"""
    _, count = run(built, script)
    assert count
