"""The delivery decision graph: may this job start, and if not, what then.

    head there? ─ no ─▶ GONE          nothing is left of the turn: it goes
    still in the strand its queue's rules want? ─ no ─▶ MOVE      it is sorted anew
    strand running? ─ no ─▶ HELD      the turn waits for its strand
    window open? ─ no ─▶ CLOSED       the strand is held until it opens
    tenant running? ─ no ─▶ PAUSED    the turn waits for its tenant
    exempt from limits? ─ yes ─▶ START
    throttler heard? ─ no ─▶ ASK      the turn waits for the verdict
    units free? ─ no ─▶ LIMITED       the queue or the turn parks on that gauge
    within its share? ─ no ─▶ OVER    the turn goes behind those who are
    ─▶ START

Queue pauses and blocks come before all this: a held queue's lanes are on no board.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final

from headway.core.entitlement import Ledger
from headway.core.job import Job
from headway.core.limits import Gauge, Parked, RateGauge
from headway.core.turn import ENTITLED, Turn

if TYPE_CHECKING:
    from mypy_extensions import i64


class Delivery(Enum):
    """What is to be done with the turn that was chosen."""

    START = "start"
    GONE = "gone"
    MOVE = "move"
    HELD = "held"
    CLOSED = "closed"
    PAUSED = "paused"
    ASK = "ask"
    OVER = "over"


START: Final = Delivery.START
"""Looked up for every job: as a constant it costs a tenth of the enum's member."""


class Limited:
    """The gauge that has no room, and who has to wait for it."""

    __slots__ = ("gauge", "member")

    def __init__(self, gauge: Gauge, member: Parked) -> None:
        self.gauge = gauge
        self.member = member


def check(
    turn: Turn, job: Job | None, ledger: Ledger, now_ms: int
) -> Delivery | Limited:
    """Follows the graph for a turn that its lane has chosen."""
    strand = turn.strand
    lane = strand.lane
    rules = lane.queue.rules
    if job is None:
        return Delivery.GONE
    if strand.shape != rules.shape:
        return Delivery.MOVE
    if strand.holds:
        return Delivery.HELD
    if strand.closes_ms <= now_ms:
        return Delivery.CLOSED
    if turn.tenancy.rule.holds:
        return Delivery.PAUSED
    if lane.is_exempt:
        return START
    if rules.has_throttler and job.cleared_ms <= now_ms:
        return Delivery.ASK
    limited = _limited(turn, job.cost, now_ms)
    if limited is not None:
        return limited
    if rules.slot_share < 1.0:
        gauge = lane.queue.slot_gauge
        gauge.max = lane.queue.slots_allowed(now_ms)
        if not gauge.fits(1, lane.queue.gate, now_ms):
            return Limited(gauge, lane.queue.gate)
    if (
        turn.tier == ENTITLED
        and turn.tenancy.is_named
        and ledger.is_over(turn.tenancy.account, now_ms)
    ):
        return Delivery.OVER
    return START


def _limited(turn: Turn, cost: int, now_ms: int) -> Limited | None:
    strand = turn.strand
    gate = strand.lane.queue.gate
    units: i64 = cost
    for gauge in strand.lane.queue.rules.gauges:
        if (
            type(gauge) is Gauge
            and gauge.big is None
            and gauge.used + units <= gauge.max
        ):
            # Spelled out, here and below: it runs for every start.
            continue
        if (
            type(gauge) is RateGauge
            and cost == 1
            and gauge.as_of_ms == now_ms
            and gauge.owed <= gauge.room
        ):
            continue
        if not gauge.fits(cost, gate, now_ms):
            return Limited(gauge, gate)
    for gauge in strand.gauges:
        if (
            type(gauge) is Gauge
            and gauge.big is None
            and gauge.used + units <= gauge.max
        ):
            continue
        if not gauge.fits(cost, turn, now_ms):
            return Limited(gauge, turn)
    for gauge in turn.tenancy.rule.gauges:
        if (
            type(gauge) is Gauge
            and gauge.big is None
            and gauge.used + units <= gauge.max
        ):
            continue
        if not gauge.fits(cost, turn, now_ms):
            return Limited(gauge, turn)
    return None
