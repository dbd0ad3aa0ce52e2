"""Jobs that were read from the tables: they are there until they are over.

Of bundles that are whole this is known bundle by bundle, and of all others job by job.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

Member = tuple[Any, Any, bytes]
"""A job of a bundle: seq, second key, what it was enqueued as. Compiled code would make
numbers of its own of the first two, and then objects again."""

KNOWN_MAX: Final = 100_000
"""Bundles, and jobs on their own, that are remembered to be there."""
STRANGER: Final = -1
"""In place of the bundle of a job of which nothing is known."""
_seq: Final = itemgetter(0)


class Known:
    """In which bundle a job is, or 0 if it has a row of its own."""

    __slots__ = ("_alone", "_first", "_firsts", "_last", "_lasts", "_thinned")

    def __init__(self) -> None:
        self._first = 0
        self._last = -1
        """The whole bundle that was asked for last: mostly it is the next one, too."""
        self._firsts: list[Any] = []
        self._lasts: dict[Any, Any] = {}
        """First and last jobs of whole bundles, with every seq between them."""
        self._alone: dict[Any, Any] = {}
        """All others, with their bundle."""
        self._thinned: set[Any] = set()
        """Bundles that are not whole: what of them is known is among the others."""

    def __len__(self) -> int:
        """What has to be remembered for this."""
        return len(self._alone) + len(self._lasts) + len(self._thinned)

    def read(self, seqs: Collection[Any]) -> None:
        """They have rows of their own."""
        self._make_room(len(seqs))
        self._alone.update(dict.fromkeys(seqs, 0))

    def know(self, members: Sequence[Member], bundle: int, *, is_whole: bool) -> None:
        """All that stand in a bundle, in order; `is_whole` if nobody has left it."""
        if not members or bundle in self._lasts:
            return
        self._make_room(len(members))
        last: int = members[-1][0]
        has_all = is_whole and last - bundle + 1 == len(members)
        if has_all and bundle not in self._thinned:
            insort(self._firsts, bundle)
            self._lasts[bundle] = last
            return
        self._thinned.add(bundle)
        self._alone.update(dict.fromkeys(map(_seq, members), bundle))

    def bundle_of(self, seq: int) -> int:
        if self._first <= seq <= self._last:
            return self._first
        if self._alone:
            bundle = self._alone.get(seq)
            if bundle is not None:
                found: int = bundle
                return found
        if not self._firsts:
            return STRANGER
        place = bisect_right(self._firsts, seq)
        if place:
            first: int = self._firsts[place - 1]
            last: int = self._lasts[first]
            if seq <= last:
                self._first, self._last = first, last
                return first
        return STRANGER

    def strangers(self, seqs: Iterable[Any]) -> set[Any]:
        """Those of which nothing is known."""
        if not self._firsts:
            return set(seqs).difference(self._alone)
        return {seq for seq in seqs if self.bundle_of(seq) < 0}

    def forget(self, seqs: Iterable[Any]) -> None:
        """Whoever wants to know where these are must look; they have rows."""
        alone = self._alone
        for seq in seqs:
            if seq in alone:
                del alone[seq]

    def leave(self, bundle: int, seqs: Collection[Any]) -> None:
        """The same for members of one bundle."""
        last = self._lasts.pop(bundle, None)
        if last is None:
            self.forget(seqs)
            return
        self._last = -1
        firsts = self._firsts
        del firsts[bisect_left(firsts, bundle)]
        if last - bundle + 1 > len(seqs):
            self._thinned.add(bundle)
            gone = set(seqs)
            for seq in range(bundle, last + 1):
                if seq not in gone:
                    self._alone[seq] = bundle

    def _make_room(self, more: int) -> None:
        if len(self) + more > KNOWN_MAX:
            self._alone.clear()
            self._firsts.clear()
            self._lasts.clear()
            self._thinned.clear()
            self._last = -1
