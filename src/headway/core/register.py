"""Jobs by a number that rises: their seqs, or the tokens of their leases.

What is in here has come lately, mostly, so its numbers lie close together: each has a
place of its own in a list, and no dictionary has to keep a key for it.
"""

from collections.abc import Iterator
from typing import Any, Final

from headway.core.job import Job

PLACES_MIN: Final = 1_024
PLACES_EACH: Final = 2
"""So many places for each job. Numbers in a row seldom meet there..."""
WAYS: Final = 4
"""...and then the others of this many places, side by side, are as good; a power of two."""
SPREAD: Final = 3
"""Places of numbers in a row are so far apart: others fit in between while those stay."""
SPARSE: Final = 8
"""With more places than this for each job, most of them are given back."""


class Register:
    """Jobs by seq. The list grows without ever being built anew at one go.

    A number's place is what remains of its multiple by the number of places, where that
    is a power of two. On the way to the next one, places of the lower half are split, few
    at a time.
    """

    __slots__ = ("_half", "_mask", "_others", "_places", "_size")

    def __init__(self) -> None:
        # Jobs, or None. Compiled code would look at whoever is there to see that it is
        # a job, and those are in no cache.
        self._places: list[Any] = [None] * PLACES_MIN
        self._half = PLACES_MIN
        self._mask = 2 * PLACES_MIN - 1
        self._others: dict[int, Job] = {}
        """Jobs that came when all of their places were taken."""
        self._size = 0

    def number_of(self, job: Job) -> int:
        """By what the job is known."""
        return job.seq

    def place_of(self, job: Job) -> int:
        """Where it is; below 0 if it has no place of its own."""
        return job.seq_place

    def put(self, job: Job, place: int) -> None:
        """It knows its place: others that may be there are in no cache."""
        job.seq_place = place

    def add(self, number: int, job: Job) -> None:
        """A job, and its number, which no other has."""
        self._size += 1
        places = self._places
        if PLACES_EACH * self._size > len(places):
            self._grow()
        place = number * SPREAD & self._mask
        if place >= len(places):
            place -= self._half
        if places[place] is None:
            places[place] = job
            self.put(job, place)
            return
        for way in range(1, WAYS):
            if places[place ^ way] is None:
                places[place ^ way] = job
                self.put(job, place ^ way)
                return
        self._others[number] = job

    def drop(self, number: int, job: Job) -> None:
        """The job is there, by the same number as when it came."""
        place = self.place_of(job)
        if place < 0:
            del self._others[number]
        else:
            self._places[place] = None
            self.put(job, -1)
        self._size -= 1
        if SPARSE * self._size < len(self._places) > PLACES_MIN:
            self._shrink()

    def get(self, number: int) -> Job | None:
        places = self._places
        place = number * SPREAD & self._mask
        if place >= len(places):
            place -= self._half
        job: Job | None = places[place]
        if job is not None and job.seq == number:
            return job
        for way in range(1, WAYS):
            job = places[place ^ way]
            if job is not None and job.seq == number:
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
        """Some places more: the next of the lower half that go together are split."""
        places, half = self._places, self._half
        if len(places) == half + half:
            self._half = half = len(places)
            self._mask = half + half - 1
        split = len(places) - half
        for place in range(split, split + WAYS):
            job = places[place]
            if job is not None and self.number_of(job) * SPREAD & half:
                places[place] = None
                self.put(job, len(places))
                places.append(job)
            else:
                places.append(None)

    def _shrink(self) -> None:
        """Few are left: they take places in a list as long as they need."""
        jobs = self.values()
        self._places = [None] * PLACES_MIN
        self._half = PLACES_MIN
        self._mask = 2 * PLACES_MIN - 1
        self._size = 0
        self._others = {}
        for job in jobs:
            self.put(job, -1)
            self.add(self.number_of(job), job)


class LeaseRegister(Register):
    """Jobs by the token of their lease."""

    def number_of(self, job: Job) -> int:
        return job.token

    def place_of(self, job: Job) -> int:
        return job.token_place

    def put(self, job: Job, place: int) -> None:
        job.token_place = place

    def get(self, number: int) -> Job | None:
        # Spelled out: `number_of` would be one more call for each job that ends.
        places = self._places
        place = number * SPREAD & self._mask
        if place >= len(places):
            place -= self._half
        job: Job | None = places[place]
        if job is not None and job.token == number:
            return job
        for way in range(1, WAYS):
            job = places[place ^ way]
            if job is not None and job.token == number:
                return job
        return self._others.get(number) if self._others else None
