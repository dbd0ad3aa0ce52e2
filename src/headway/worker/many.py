"""Many calls on their way to the queue: a batch at a time, however many there are."""

import re
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar, overload

import msgspec

from headway.core.errors import BadValue, RuleBroken
from headway.core.spec import JobSpec
from headway.wire.values import BATCH_MAX
from headway.worker.results import Enqueued

R = TypeVar("R")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Call = tuple[Any, ...] | Mapping[str, Any]
"""The arguments of one call, by position or by name."""
Progress = bool | Callable[[int], object]
"""A bar on a terminal; or whoever is told how many jobs are accepted so far."""
BATCH_BYTES: Final = 4 << 20
"""Of payloads in one request."""
_NUMBERED: Final = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})", re.DOTALL | re.ASCII)


class EnqueuedMany(Sequence[Enqueued[R]]):
    """The jobs, in the order of their calls. Runs of ids take the room of one."""

    def __init__(self, made: Callable[[str], Enqueued[R]]) -> None:
        self._made = made
        self._firsts: list[int] = []
        """The place of the first job of each run."""
        self._runs: list[tuple[str, int | None]] = []
        """What its ids begin with, and its first number; None where there is none."""
        self._count = 0

    def add(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            found = _NUMBERED.fullmatch(id_)
            name, number = (id_, None) if found is None else (found[1], int(found[2]))
            if number is None or not self._goes_on(name, number):
                self._firsts.append(self._count)
                self._runs.append((name, number))
            self._count += 1

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Enqueued[R]: ...
    @overload
    def __getitem__(self, place: slice) -> list[Enqueued[R]]: ...
    def __getitem__(self, place: int | slice) -> Enqueued[R] | list[Enqueued[R]]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._count))]
        at = place + self._count if place < 0 else place
        if not 0 <= at < self._count:
            raise IndexError(f"{place} of {self._count} jobs")
        run = bisect_right(self._firsts, at) - 1
        name, number = self._runs[run]
        text = name if number is None else f"{name}{number + at - self._firsts[run]}"
        return self._made(text)

    def _goes_on(self, name: str, number: int) -> bool:
        if not self._runs:
            return False
        last_name, first = self._runs[-1]
        if first is None or last_name != name:
            return False
        return number == first + self._count - self._firsts[-1]


class EnqueueFailed(Exception):
    """Some calls were enqueued, and then one batch was not, or nobody knows.

    The same calls with `resume=` this error go on where it ended; what was accepted
    unheard is known by its key, as long as the queue remembers keys.
    """

    def __init__(self, accepted: EnqueuedMany[Any], key: str, error: object) -> None:
        self.accepted = accepted
        self.count = len(accepted)
        """How many calls, from the first on, have become jobs for sure."""
        self.key = key
        """What the idempotency keys of the jobs begin with."""
        super().__init__(f"{self.count} jobs were accepted, and then: {error}")


class Caller(Protocol[R_co]):
    """Whose calls they are."""

    def spec(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JobSpec: ...
    def enqueued(self, job: str) -> Enqueued[R_co]: ...


class Sending(Generic[R]):
    """One errand: calls go in, batches come out, ids are noted."""

    def __init__(
        self, caller: Caller[R], key: object, resume: EnqueueFailed | None
    ) -> None:
        """`key` is what the idempotency keys begin with, if it is text."""
        self._caller = caller
        self._skipped = 0
        self.jobs: EnqueuedMany[R] = EnqueuedMany(caller.enqueued)
        self._is_numbered = isinstance(key, str)
        """One name was given for all of them."""
        self._key = key if isinstance(key, str) else secrets.token_hex(12)
        if resume is not None:
            self._skipped, self._key = resume.count, resume.key
            self.jobs = resume.accepted
        self._number = 0
        self._batch: list[JobSpec] = []
        self._size = 0
        self._has_sent = False
        self.advance: Callable[[int], object] = _nobody

    def add(self, call: Call) -> list[JobSpec]:
        """A batch that is full, or nothing yet."""
        number = self._number
        self._number += 1
        if number < self._skipped:
            return []
        spec = self._spec(call)
        if self._is_numbered or spec.idempotency_key is None:
            key = f"{self._key}.{number}"
            spec = msgspec.structs.replace(spec, idempotency_key=key)
        full: list[JobSpec] = []
        if len(self._batch) == BATCH_MAX or self._size > BATCH_BYTES:
            full = self.rest()
        self._batch.append(spec)
        self._size += len(spec.payload)
        return full

    def rest(self) -> list[JobSpec]:
        """What is left when there are no more calls."""
        batch, self._batch, self._size = self._batch, [], 0
        return batch

    def by(self, put: Callable[[str, list[JobSpec]], T]) -> Callable[..., T]:
        """Sends by this port; from then on nobody knows, until it has answered."""

        def sent(queue: str, specs: list[JobSpec]) -> T:
            self._has_sent = True
            return put(queue, specs)

        return sent

    def accepted(self, ids: Sequence[str]) -> None:
        self.jobs.add(ids)
        self.advance(len(self.jobs))

    @contextmanager
    def under_way(self, what: str, calls: object, progress: Progress) -> Iterator[None]:
        """Shows how far it is; tells how far it came if it fails."""
        try:
            with _advancing(what, calls, progress) as self.advance:
                yield
        except Exception as error:
            is_known = isinstance(error, RuleBroken) or not self._has_sent
            if is_known and not len(self.jobs):
                raise  # Nothing came of it, and that is sure.
            raise EnqueueFailed(self.jobs, self._key, error) from error

    def _spec(self, call: Call) -> JobSpec:
        if isinstance(call, Mapping):
            return self._caller.spec((), call)
        return self._caller.spec(_by_position(call), {})


def _by_position(call: object) -> tuple[Any, ...]:
    if isinstance(call, tuple):
        return call
    rule = "a call is a tuple of arguments, or a mapping of them by name"
    raise BadValue("calls", call, rule)


@contextmanager
def _advancing(
    what: str, calls: object, progress: Progress
) -> Iterator[Callable[[int], object]]:
    """Whom to tell; a bar on stderr if that is a terminal, and quiet if not."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield _nobody
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _nobody
        return
    total = len(calls) if isinstance(calls, Sized) else None
    columns = (*Bar.get_default_columns(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def _nobody(_: int) -> None:
    return None
