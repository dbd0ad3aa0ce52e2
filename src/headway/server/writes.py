"""Writes: staged in chunks, published as a whole, known by their name.

Every call blocks, in a thread of its own. One write has one caller at a time, whatever
becomes of the client that asked.
"""

import errno
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

import msgspec

from headway.core.commands import Configure, PublishWrite, WritePart
from headway.core.config import QueueConfig
from headway.core.errors import RuleBroken, UnknownWrite
from headway.core.publishing import QUEUES_MAX, RUNNING_MAX
from headway.core.spec import JobSpec
from headway.core.write import WriteState, WriteView
from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask
from headway.runtime.writes import ShowWrite
from headway.server.problems import Refused
from headway.server.staging import Chunk, Place, Staged, Staging, chosen
from headway.wire.writes import Publication, WriteShown

LOCKS: Final = 64
ANSWER_S: Final = 60.0
Permit = Callable[[list[str]], None]
"""Raises unless the caller may do it on all of these queues."""


class Bounds(msgspec.Struct, frozen=True):
    """How much may be staged."""

    writes: int = 100
    """That are not published, at once."""
    chunks: int = 10_000
    """Of one write."""
    bytes: int = 8 << 30
    """Of all writes together, until they were taken in."""
    age_s: float = 24 * 3_600.0
    """How long after its last chunk a write is kept that nobody publishes."""


class Submits(Protocol):
    def submit(self, ask: Ask) -> Future[Any]: ...


class Writes:
    """All writes of a server, from their first chunk until they are taken in."""

    def __init__(
        self,
        folder: Path,
        owner: Submits,
        bounds: Bounds | None = None,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self.staging = Staging(folder)
        self._owner = owner
        self._bounds = bounds or Bounds()
        self._wall_s = wall_s
        self._locks = [Lock() for _ in range(LOCKS)]
        self.published: Callable[[], object] = bool
        """Told in any thread that there is something to be taken in."""

    def put(
        self, name: str, place: Place, queue: str, specs: list[JobSpec]
    ) -> WriteShown:
        """Stages a chunk. One that is there already is not written again."""
        with self._lock(name):
            known = self._known(name)
            if known is not None:
                return shown(known)
            self._check_room(name, place)
        try:
            # The longest part, and beside others: the disk writes several at a time.
            chunk = self.staging.put(name, place, queue, specs)
        except OSError as error:
            raise _disk(error) from error
        with self._lock(name):
            known = self._known(name)
            staged = self.staging.find(name)
            there = None if staged is None else staged.chunks.get(chunk.file)
            if known is not None or there is not None:
                self.staging.forget(name, chunk)
            if known is not None:
                return shown(known)
            if there is None:
                self._keep(name, chunk)
            elif there != chunk:
                raise Refused("write_conflict", f"chunk {chunk.file} has other jobs")
            return self._staged(name)

    def publish(self, name: str, asked: Publication, permit: Permit) -> WriteShown:
        """All jobs of the winners, or none; once for a name."""
        series = asked.series or ""
        with self._lock(name):
            known = self._ask_known(name, series, asked.number)
            if known is not None:
                permit(list(known.queues))
                if known.id != name:
                    self.staging.remove(name)
                return shown(known)
            staged = self.staging.find(name) or Staged({})
            chunks = _winning(staged, asked)
            parts = _parts(chunks)
            permit([part.queue for part in parts])
            try:
                digest = self.staging.seal(name, chunks)
            except OSError as error:
                raise _disk(error) from error
            # From here on it may be published, whatever is heard of it.
            staged.is_known_new = False
            configs = [QueueConfig(name=part.queue) for part in parts]
            makes = [Configure(config, is_new_only=True) for config in configs]
            command = PublishWrite(name, digest, parts, series, asked.number)
            view: WriteView = self._ask(*makes, command)
            with suppress(OSError):  # what is left over goes with the rest
                self.staging.drop_others(name, chunks)
            if view.state is WriteState.TAKEN_IN:
                self.staging.remove(name)
        self.published()
        return shown(view)

    def discard(self, name: str, permit: Permit) -> WriteShown:
        """Unless it was published: then it stays, and its state is told."""
        with self._lock(name):
            known = self._ask_known(name)
            if known is not None:
                permit(list(known.queues))
                return shown(known)
            found = self._staged(name)
            permit(list(found.queues))
            self.staging.remove(name)
            found.state = WriteState.DISCARDED.value
            return found

    def show(self, name: str, permit: Permit) -> WriteShown:
        with self._lock(name):
            known = self._ask_known(name)
            found = self._staged(name) if known is None else shown(known)
        found.is_repeated = False
        permit(list(found.queues))
        return found

    def tidy(self) -> int:
        """Removes what was taken in, and what nobody has published for long."""
        oldest_s = self._wall_s() - self._bounds.age_s
        removed = 0
        for name in self.staging.names():
            with self._lock(name):
                staged = self.staging.find(name)
                known = self._ask_known(name)
                if known is None:
                    is_over = staged is not None and staged.touched_s < oldest_s
                else:
                    is_over = known.state is WriteState.TAKEN_IN
                if is_over:
                    removed += self.staging.remove(name)
        return removed

    def taken_in(self, name: str) -> None:
        """Its files have served their purpose."""
        with self._lock(name):
            self.staging.remove(name)

    def _known(self, name: str) -> WriteView | None:
        """The owner is asked once: what is published later is published here."""
        staged = self.staging.find(name)
        if staged is not None and staged.is_known_new:
            return None
        return self._ask_known(name)

    def _ask_known(
        self, name: str, series: str = "", number: int = 0
    ) -> WriteView | None:
        try:
            view: WriteView = self._ask(ShowWrite(name, series, number))
        except UnknownWrite:
            return None
        return view

    def _ask(self, *asks: Ask) -> Any:
        """The last answer; the first that says no is raised."""
        futures = [self._owner.submit(ask) for ask in asks]
        try:
            answers = [future.result(ANSWER_S) for future in futures]
        except TimeoutError as error:
            raise OwnerStopped("the owner does not answer") from error
        for answer in answers:
            if isinstance(answer, RuleBroken):
                raise answer
        return answers[-1]

    def _check_room(self, name: str, place: Place) -> None:
        bounds = self._bounds
        staged = self.staging.find(name)
        if staged is None and len(self.staging.names()) >= bounds.writes + RUNNING_MAX:
            text = f"{bounds.writes} writes are staged already"
            raise Refused("staging_full", text)
        if staged is not None and place.file in staged.chunks:
            return
        if staged is not None and len(staged.chunks) >= bounds.chunks:
            raise Refused("staging_full", f"a write has at most {bounds.chunks} chunks")
        if self.staging.bytes >= bounds.bytes:
            raise Refused("staging_full", f"{bounds.bytes} bytes are staged already")

    def _keep(self, name: str, chunk: Chunk) -> None:
        try:
            staged = self.staging.keep(name, chunk, self._wall_s())
        except OSError as error:
            raise _disk(error) from error
        staged.is_known_new = True

    def _staged(self, name: str) -> WriteShown:
        staged = self.staging.find(name)
        if staged is None:
            raise UnknownWrite(f"there is no write {name!r}")
        queues: Counter[str] = Counter()
        for chunk in staged.chunks.values():
            queues[chunk.queue] += chunk.jobs
        return WriteShown(
            id=name,
            state=WriteState.STAGED.value,
            jobs=queues.total(),
            queues=dict(queues),
            chunks=len(staged.chunks),
            bytes=staged.bytes,
        )

    def _lock(self, name: str) -> Lock:
        return self._locks[hash(name) % LOCKS]


def shown(view: WriteView) -> WriteShown:
    return WriteShown(
        id=view.id,
        state=view.state.value,
        jobs=view.jobs,
        queues=view.queues,
        taken=view.taken,
        duplicates=view.duplicates,
        conflicts=view.conflicts,
        published_ms=view.published_ms,
        ended_ms=view.ended_ms,
        is_repeated=view.is_repeated,
    )


def _winning(staged: Staged, asked: Publication) -> list[Chunk]:
    """The chunks that are to be published, if they are what the caller thinks."""
    partitions = [winner.partition for winner in asked.winners]
    if len(set(partitions)) != len(partitions):
        raise Refused("bad_value", "a partition has one winner", "winners")
    chunks: list[Chunk] = []
    for found in chosen(staged, asked.winners):
        if isinstance(found, Place):
            raise Refused("write_conflict", f"chunk {found.file} is not there")
        chunks.append(found)
    jobs = sum(chunk.jobs for chunk in chunks)
    if jobs != asked.count:
        text = f"the winners have {jobs} jobs, not {asked.count}"
        raise Refused("write_conflict", text)
    return chunks


def _parts(chunks: list[Chunk]) -> list[WritePart]:
    jobs: Counter[str] = Counter()
    slos_ms: dict[str, int] = {}
    for chunk in chunks:
        jobs[chunk.queue] += chunk.jobs
        if chunk.least_slo_ms is not None:
            known_ms = slos_ms.get(chunk.queue, chunk.least_slo_ms)
            slos_ms[chunk.queue] = min(known_ms, chunk.least_slo_ms)
    if len(jobs) > QUEUES_MAX:
        raise Refused("bad_value", f"at most {QUEUES_MAX} queues", "queue")
    return [WritePart(name, count, slos_ms.get(name)) for name, count in jobs.items()]


def _disk(error: OSError) -> Exception:
    """A full disk is for others to see to; anything else is a bug, and told as one."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused("staging_full", "the disk is full")
    if error.errno == errno.ENOENT:
        return Refused("write_conflict", "the write was discarded meanwhile")
    return error
