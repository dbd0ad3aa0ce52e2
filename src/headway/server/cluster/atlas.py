"""Where queues and partitions are, as one node has last seen it; all on the loop."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from headway.core.cluster import OPEN, Placement, View, holder, ranked
from headway.core.errors import RuleBroken
from headway.runtime.errors import OwnerStopped
from headway.server.app import App
from headway.server.cluster.places import Looked, Placed
from headway.server.cluster.registrar import Registrar, boot_s
from headway.server.cluster.residents import Resident
from headway.server.tokens import wall_ms
from headway.store.postgres.cluster import Seen

TRIES: Final = 5
"""Of placing a queue, while partitions close."""


class Atlas:
    """What `Places` says. It holds for as long as the node's lease does."""

    def __init__(self, me: str, lease_s: float) -> None:
        self._me = me
        self._lease_s = lease_s
        self._placed: dict[str, tuple[str, ...]] = {}
        self.queues: Counter[str] = Counter()
        """How many each partition has."""
        self.since_ms: dict[str, tuple[int, int | None]] = {}
        """By partition: the claim that holds it, and when that was first seen."""
        self.looked_s = 0.0
        """By `boot_s`: when the tables were last looked at, at the earliest."""
        self._open: tuple[str, ...] = ()
        self._listeners: list[Callable[[], None]] = []
        self.registrar: Registrar | None = None
        self.residents: Mapping[str, Resident] = {}
        self.view = View({}, {})
        self.marks: dict[str, Placement] = {}
        self.valid_s = 0.0
        """By `boot_s`: how long the lease goes on, as far as is known for certain."""

    def partitions(self) -> Sequence[str]:
        return self._open

    def of_queue(self, queue: str) -> tuple[str, ...] | None:
        return self._placed.get(queue)

    def look_up(self, queue: str, then: Placed) -> None:
        self._place(queue, then, TRIES)

    def placement(self, queue: str, then: Looked) -> None:
        assert self.registrar is not None
        self.registrar.ask(lambda tables, _: tables.placement(queue), then)

    def replace(self, queue: str, to: Placement, then: Looked) -> None:
        def told(answer: Placement | Exception | None) -> None:
            if isinstance(answer, Placement):
                self._put(queue, answer.partitions)
                self._mark(queue, answer)
            then(answer)

        assert self.registrar is not None
        self.registrar.ask(lambda tables, _: tables.replace(queue, to), told)

    def local(self, partition: str) -> App | None:
        resident = self.residents.get(partition)
        return None if resident is None else resident.app

    def address(self, partition: str) -> str | None:
        """None, too, while this node itself is about to serve it."""
        holding = self.view.holdings.get(partition)
        name = None if holding is None else holder(self.view, holding)
        if name is None or name == self._me:
            return None
        return self.view.nodes[name].address

    def is_valid(self) -> bool:
        return boot_s() < self.valid_s

    @property
    def left_s(self) -> float:
        return max(0.0, self.valid_s - boot_s())

    def changed(self, then: Callable[[], None]) -> None:
        self._listeners.append(then)

    def refresh(self) -> None:
        assert self.registrar is not None
        self.registrar.look_soon()

    def seen(self, seen: Seen, began_s: float) -> None:
        """The lease was renewed, and the tables were looked at."""
        self.valid_s = began_s + self._lease_s
        self._note_claims(seen.view)
        self.looked_s = began_s
        before = (self.view.holdings, _addresses(self.view))
        self.view = seen.view
        for queue, partitions in seen.placed:
            self._put(queue, partitions)
            self._mark(queue, seen.marks.get(queue))
        self._open = tuple(
            sorted(
                one.partition
                for one in seen.view.holdings.values()
                if one.state == OPEN
            )
        )
        if (self.view.holdings, _addresses(self.view)) != before:
            self.turned()

    def _put(self, queue: str, partitions: tuple[str, ...]) -> None:
        self.queues.subtract(self._placed.get(queue, ()))
        self.queues.update(partitions)
        self._placed[queue] = partitions

    def _note_claims(self, view: View) -> None:
        now_ms = wall_ms() if self.looked_s else None
        known = self.since_ms
        self.since_ms = {
            name: known[name]
            if name in known and known[name][0] == holding.claim
            else (holding.claim, now_ms)
            for name, holding in view.holdings.items()
        }

    def turned(self) -> None:
        """Whoever waits for a change looks again."""
        listeners, self._listeners = self._listeners, []
        for then in listeners:
            then()

    def _mark(self, queue: str, placement: Placement | None) -> None:
        is_marked = placement is not None and (
            placement.leaving or placement.whole is not None or placement.most
        )
        if placement is not None and is_marked:
            self.marks[queue] = placement
        else:
            self.marks.pop(queue, None)

    def _place(self, queue: str, then: Placed, tries: int) -> None:
        """In the tables' view the queue may have places already."""
        order = ranked(queue, self._open)
        if not order or tries < 1:
            then(OwnerStopped("there is no open partition to place the queue in"))
            return

        def told(answer: tuple[str, ...] | Exception | None) -> None:
            if answer is None:
                # The partition was closed meanwhile: others are left.
                self.refresh()
                self._place(queue, then, tries - 1)
                return
            then(self._noted(queue, answer))

        home = (order[0],)
        assert self.registrar is not None
        self.registrar.ask(lambda tables, _: tables.place(queue, home), told)

    def _noted(
        self, queue: str, answer: tuple[str, ...] | Exception
    ) -> tuple[str, ...] | Exception:
        if isinstance(answer, RuleBroken):
            return answer
        if isinstance(answer, Exception):
            return OwnerStopped("the database does not say where the queue is")
        self._put(queue, answer)
        return answer


def _addresses(view: View) -> dict[str, tuple[str, bool]]:
    return {one.name: (one.address, one.is_alive) for one in view.nodes.values()}
