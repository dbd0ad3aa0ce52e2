"""Jobs by a number that rises: their seqs, or the tokens of their leases.

What is in here has come lately, mostly, so its numbers lie close together: each has a
place of its own in a list, and no dictionary has to keep a key for it.
"""

from collections.abc import Iterator
from typing import Final

from headway.core.job import Job

PLACES_MIN: Final = 64
PLACES_EACH: Final = 2
"""So many places for each job. Numbers in a row never meet there, others seldom."""
SPARSE: Final = 8
"""With more places than this for each job, most of them are given back."""


class Register:
    """Jobs by seq. The list grows and shrinks without ever being built anew at one go.

    A number's place is its remainder by the number of places, were that a power of two.
    What is between two of them is being split: a place of the lower half at a time.
    """

    __slots__ = ("_half", "_others", "_places", "_size", "_split")

    def __init__(self) -> None:
        self._places: list[Job | None] = [None] * PLACES_MIN
        self._half = PLACES_MIN
        self._split = 0
        """Places of the lower half whose other half is there already."""
        self._others: dict[int, Job] = {}
        """Jobs that came when their place was taken."""
        self._size = 0

    def number_of(self, job: Job) -> int:
        """By what the job is known."""
        return job.seq

    def add(self, job: Job) -> None:
        """The job, of which no other has the number."""
        number = self.number_of(job)
        self._size += 1
        if PLACES_EACH * self._size > len(self._places):
            self._grow()
            self._grow()
        half = self._half
        place = number & (half - 1)
        if place < self._split:
            place = number & (half + half - 1)
        if self._places[place] is None:
            self._places[place] = job
        else:
            self._others[number] = job

    def drop(self, job: Job) -> None:
        """The job is there, and known by the same number as when it came."""
        number = self.number_of(job)
        half = self._half
        place = number & (half - 1)
        if place < self._split:
            place = number & (half + half - 1)
        places = self._places
        if places[place] is job:
            places[place] = None
        else:
            del self._others[number]
        self._size -= 1
        if SPARSE * self._size < len(places) > PLACES_MIN:
            self._shrink()

    def get(self, number: int) -> Job | None:
        half = self._half
        place = number & (half - 1)
        if place < self._split:
            place = number & (half + half - 1)
        job = self._places[place]
        if job is not None and self.number_of(job) == number:
            return job
        return self._others.get(number) if self._others else None

    def values(self) -> list[Job]:
        """In the order of their numbers."""
        jobs = [job for job in self._places if job is not None]
        jobs += self._others.values()
        jobs.sort(key=self.number_of)
        return jobs

    def keys(self) -> list[int]:
        return [self.number_of(job) for job in self.values()]

    def items(self) -> list[tuple[int, Job]]:
        return [(self.number_of(job), job) for job in self.values()]

    def __getitem__(self, number: int) -> Job:
        job = self.get(number)
        if job is None:
            raise KeyError(number)
        return job

    def __contains__(self, number: int) -> bool:
        return self.get(number) is not None

    def __iter__(self) -> Iterator[int]:
        return iter(self.keys())

    def __len__(self) -> int:
        return self._size

    def _grow(self) -> None:
        """One place more: the next of the lower half is split."""
        half, split = self._half, self._split
        job = self._places[split]
        if job is not None and self.number_of(job) & half:
            self._places[split] = None
            self._places.append(job)
        else:
            self._places.append(None)
        self._split = split + 1
        if self._split == half:
            self._half = half + half
            self._split = 0

    def _shrink(self) -> None:
        """Few are left: they take places in a list as long as they need."""
        jobs = self.values()
        self._places = [None] * PLACES_MIN
        self._half = PLACES_MIN
        self._split = self._size = 0
        self._others = {}
        for job in jobs:
            self.add(job)


class LeaseRegister(Register):
    """Jobs by the token of their lease."""

    def number_of(self, job: Job) -> int:
        return job.token
