"""Schedulers to compare with: the same core, with its choice between lanes replaced."""

from typing import Final

import msgspec

from headway.core.config import Order, QueueConfig
from headway.core.partition import Partition
from headway.core.promise import Board, BoardMaker
from headway.sim.scan_board import ScanBoard, Urgency


class Policy(msgspec.Struct, frozen=True):
    """One way to choose the next job."""

    name: str
    says: str
    """In one line, what it does."""
    has_entitlement: bool = False
    has_fairness: bool = False
    urgency: Urgency | None = None
    order: Order | None = None
    """Replaces the fair order of queues that have it."""
    margin_ms: int | None = None

    def partition(self) -> Partition:
        return Partition(
            has_entitlement=self.has_entitlement,
            has_fairness=self.has_fairness,
            make_board=self._board_maker(),
        )

    def configure(self, config: QueueConfig) -> QueueConfig:
        """The queue as this policy would run it."""
        if self.order is not None and config.order is Order.FAIR:
            config = msgspec.structs.replace(config, order=self.order)
        if self.margin_ms is not None:
            config = msgspec.structs.replace(config, margin_ms=self.margin_ms)
        return config

    def _board_maker(self) -> BoardMaker:
        urgency = self.urgency
        if urgency is None:
            return Board

        def make(key: tuple[str, ...] | None, stirred: dict[Board, None], /) -> Board:
            return ScanBoard(urgency, key, stirred)

        return make


def _due_first(slo_ms: int, ready_ms: int, now_ms: int) -> float:
    return ready_ms + slo_ms


def _shortest_slo(slo_ms: int, ready_ms: int, now_ms: int) -> float:
    return slo_ms


def _oldest(slo_ms: int, ready_ms: int, now_ms: int) -> float:
    return ready_ms


def _wait_ratio(slo_ms: int, ready_ms: int, now_ms: int) -> float:
    return -(now_ms - ready_ms) / slo_ms


_ALL: Final = (
    Policy(
        "headway",
        "due lanes by SLO, else earliest aim; fair turns; entitlement",
        has_entitlement=True,
        has_fairness=True,
    ),
    Policy("no-entitlement", "headway without fair levels", has_fairness=True),
    Policy("seed", "due lanes by SLO, else earliest due; no margin", margin_ms=0),
    Policy("levels", "headway's lanes; passes fixed at enqueue", order=Order.LEVELS),
    Policy("edf", "earliest due time first", urgency=_due_first),
    Policy("strict", "shortest SLO first", urgency=_shortest_slo),
    Policy("fifo", "oldest job first", urgency=_oldest),
    Policy("wait-ratio", "largest wait / SLO first", urgency=_wait_ratio),
)

POLICIES: Final = {policy.name: policy for policy in _ALL}
