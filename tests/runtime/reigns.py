"""Owners of one place, one after another or side by side, asked by hand."""

from headway.core.bounds import Bounds
from headway.core.commands import Accepted, Ack, Configure, Enqueue, Lease
from headway.core.config import Limit, Order, QueueConfig
from headway.core.spec import JobSpec
from headway.core.turn import Turn
from headway.runtime.owner import Ask, Owner
from headway.runtime.views import Handed, LeasedJob
from headway.store.errors import StoreFailed
from headway.store.port import Batch, Position, Row, Store
from tests.runtime.written import FixedClock
from tests.store.places import Place

START_MS = 1_700_000_000_000
TINY = Bounds(jobs_max=8, turns_max=3, scheduled_max=4)
LONG_MS = 3_600_000
QUIET_STEPS = 12
"""So many steps without a job in a row: nothing more is to come."""


class Watched:
    """A real store that counts its reads, and fails when it is told to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0
        self.fails: str | None = None
        """When the next commit fails: "before" or "after" it is written."""
        self.take_over = store.take_over
        self.facts = store.facts
        self.jobs = store.jobs
        self.find_keys = store.find_keys
        self.history = store.history
        self.results = store.results
        self.first_over_ms = store.first_over_ms
        self.last_segment = store.last_segment
        self.close = store.close

    def commit(self, batch: Batch, epoch: int) -> None:
        if self.fails == "before":
            raise StoreFailed("on purpose")
        self._store.commit(batch, epoch)
        if self.fails == "after":
            raise StoreFailed("on purpose")

    def rows(self, lane: int, turn: bytes, after: Position, limit: int) -> list[Row]:
        self.reads += 1
        return self._store.rows(lane, turn, after, limit)

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        self.reads += 1
        return self._store.turns(lane, after, limit, each)


class Reigns:
    """The newest owner of a place; those before it may live on."""

    def __init__(self, place: Place, bounds: Bounds = TINY) -> None:
        self._place = place
        self._bounds = bounds
        self.now_ms = START_MS
        self.take_over()
        self.configure()

    def take_over(self) -> None:
        """A new owner, whatever the one before does."""
        self.store = Watched(self._place.open_beside())
        self.owner = Owner(self.store, self._bounds)
        self.owner.take_over(FixedClock(self.now_ms))
        self.book = self.owner.partition.book

    def say(self, *asks: Ask) -> list[LeasedJob]:
        """Answers the jobs that were handed out."""
        answers = self.owner.step(asks, self.now_ms)
        handed = [reply for _, reply in answers if isinstance(reply, Handed)]
        return [job for reply in handed for job in reply.jobs]

    def configure(self, *limits: Limit, order: Order = Order.FAIR) -> None:
        self.say(Configure(QueueConfig(name="q", limits=limits, order=order)))

    def put(self, count: int, **fields: object) -> list[int]:
        specs = [JobSpec(**fields) for _ in range(count)]  # type: ignore[arg-type]
        return self.enqueue(*specs)

    def enqueue(self, *specs: JobSpec) -> list[int]:
        ((_, reply),) = self.owner.step([Enqueue("q", list(specs))], self.now_ms)
        assert isinstance(reply, Accepted)
        return reply.seqs

    def lease(self, most: int) -> list[LeasedJob]:
        return self.say(Lease(max=most, lease_ms=LONG_MS))

    def drain(self, most: int = 10) -> list[int]:
        """Leases and acks until nothing comes any more; answers what came, in order."""
        came: list[int] = []
        tokens: list[int] = []
        quiet = 0
        while quiet < QUIET_STEPS:
            self.now_ms += 1
            # One that waits for a read is answered in a later step.
            jobs = self.say(Ack(tokens), Lease(max=most, lease_ms=LONG_MS))
            tokens = [job.token for job in jobs]
            came += [job.seq for job in jobs]
            quiet = 0 if jobs else quiet + 1
        return came

    def turn(self, tenant: str = "") -> Turn:
        """The turn of a tenant in the queue's one lane and strand."""
        (lane,) = self.book.queues["q"].lanes.values()
        (strand,) = lane.strands.values()
        return strand.turns[tenant]

    def is_reading(self) -> bool:
        """Whether there is something left to be read at once."""
        return bool(self.book.shared.reads)
