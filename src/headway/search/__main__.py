"""`python -m headway.search STORE INDEX`: keeps an index of a store up to date.

STORE is a file; with --partition it is nothing, and the partition of that name is in the
database that $HEADWAY_STORE names.

Ends when its input is closed or its parent is gone. On its output it tells how far it
is, as lines of JSON: at most one a second.
"""

import argparse
import gc
import json
import os
import sys
from pathlib import Path
from typing import Final

import apsw
import msgspec

from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.runtime.patience import give_way
from headway.search import schema
from headway.search.errors import SearchFailed
from headway.search.follow import (
    DatabaseSource,
    FileSource,
    Lifeline,
    Source,
    follow,
)
from headway.search.indexer import Indexer
from headway.search.keep import Keep
from headway.store.errors import StoreError

FAILURES: Final = (
    StoreError,
    SearchFailed,
    apsw.Error,
    OSError,
    msgspec.MsgspecError,
)
"""What ends it with a word of why. Begun again, it goes on where it was."""
GARBAGE: Final = 1_000_000
"""So many objects more than there were are looked through for cycles. A batch has many
tuples for a moment, and no cycles: to look for them takes as long as to play it."""


def main() -> int:
    given = _arguments()
    give_way(os.getpid())
    gc.freeze()
    gc.set_threshold(GARBAGE)
    keep = Keep(given.age, given.dead_age, given.jobs)
    lifeline = Lifeline(sys.stdin.fileno())
    try:
        indexer = Indexer(given.index, keep)
        try:
            follow(_source(given, indexer), indexer, _tell, lifeline.is_cut)
        finally:
            indexer.close()
    except BrokenPipeError:
        # Whoever listened is gone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except FAILURES as error:
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            schema.remove(given.index)
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def _source(given: argparse.Namespace, indexer: Indexer) -> Source:
    if given.partition is None:
        return FileSource(Path(given.store), indexer)
    return DatabaseSource(os.environ["HEADWAY_STORE"], given.partition, indexer)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m headway.search")
    parser.add_argument("store")
    parser.add_argument("index", type=Path)
    parser.add_argument("--partition")
    parser.add_argument("--age", type=_duration, default=Keep().age_ms)
    parser.add_argument("--dead-age", type=_duration, default=Keep().dead_age_ms)
    parser.add_argument("--jobs", type=_number, default=Keep().ended_max)
    return parser.parse_args()


def _duration(text: str) -> int:
    try:
        return parse_ms(text, "age")
    except BadValue as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of jobs")
    return int(text)


def _tell(indexer: Indexer) -> None:
    """`keep` is the first event of the last commit: by it the store is known again."""
    place = indexer.place
    told = {
        "next": place.next,
        "at_ms": place.at_ms,
        "keep": place.segment or place.next,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
