"""What stops a turn, and what lets it go on: parking, holding, moving, waking."""

from typing import Final

from headway.core.delivery import Delivery, Limited
from headway.core.fairness import Tenancy
from headway.core.job import Job
from headway.core.limits import Gauge, Parked, RateGauge
from headway.core.queue import Queue, Shared
from headway.core.shares import ShareGauge, SharePool
from headway.core.strand import WINDOW, Strand
from headway.core.timers import TimeBuckets
from headway.core.turn import OVER, Turn
from headway.core.windows import WindowSet

CLOSINGS: Final = 1_000
"""Closings of a window that are made up for when nobody saw them."""
WOKEN_TURNS: Final = 64
"""Turns of a strand that come back at one go when its hold has ended."""

Timer = Job | Strand | RateGauge | object


class Parking:
    """Puts out of the way, as a whole, what can't go on."""

    def __init__(self, shared: Shared, timers: TimeBuckets[Timer]) -> None:
        self.shared = shared
        self.timers = timers
        self.asks: list[Job] = []
        """Jobs about which a throttler is to be asked."""
        self.short_of_slots: dict[Queue, None] = {}
        """Queues at their share of the worker slots."""
        self._lenders: dict[SharePool, None] = {}
        """Pools of which somebody could not borrow, as their owner was expected."""

    def join(self, turn: Turn, job: Job, strand_ms: int, now_ms: int) -> None:
        turn.add(turn.strand.lane.queue.rules.key_of(job), job)
        turn.tenancy.ready += 1
        if turn.is_emptied:
            turn.strand.lane.queue.empties.drop(turn)
        if turn.is_first(job) or turn.late:
            if turn.count > 1:
                self.reconsider(turn, now_ms, is_big_only=job.cost > 0)
            elif turn.parked_on is None and not turn.strand.lane.is_exempt:
                self.park_full(turn, now_ms)
            turn.seat_at(strand_ms)
            for gauge in turn.strand.shares:
                gauge.expect(turn)

    def stop(
        self, turn: Turn, job: Job | None, outcome: Delivery | Limited, now_ms: int
    ) -> None:
        """The chosen turn may not start: it waits where it was stopped."""
        if isinstance(outcome, Limited):
            assert job is not None
            self._park(turn, outcome, job, now_ms)
        else:
            self._set_aside(turn, job, outcome, now_ms)
        if outcome is not Delivery.OVER:
            pass_on(turn, now_ms)

    def reconsider(self, turn: Turn, now_ms: int, *, is_big_only: bool = False) -> None:
        """Another job is at the head: what the old one waited for may not stop it."""
        gate = turn.strand.lane.queue.gate
        for member in (turn, gate):
            gauge = member.parked_on
            if isinstance(gauge, Gauge) and (not is_big_only or gauge.big is member):
                gauge.let_go(member, now_ms)
                if member is gate:
                    gate.queue.reseat()

    def park_full(self, turn: Turn, now_ms: int) -> None:
        """Where a limit is used up a turn parks at once, and not when next chosen.

        But for a head that would reserve units: only one that was chosen may do that.
        Shares and rates are left to the choice, too, as they may lend or come back.
        """
        own, others = turn.tenancy.rule.gauges, turn.strand.gauges
        full = _full(others) if others else None
        if full is None and own:
            full = _full(own)
        if full is not None:
            head = turn.head()
            if head is not None and head.cost == 1:
                self._stop_at(full, turn, head, now_ms)
                full.park(turn, 1, now_ms)

    def fire(self, timer: Strand | RateGauge, now_ms: int) -> None:
        """A window opens, or a rate has units again."""
        if isinstance(timer, Strand):
            timer.closes_ms = -1
            timer.hold(WINDOW, now_ms, is_on=False)
            return
        timer.timer_ms = 0
        timer.wake(now_ms)
        self._watch(timer, now_ms)

    def verdict(self, job: Job, now_ms: int) -> None:
        """The throttler has spoken, or is gone: the turn goes on."""
        turn = job.turn
        if turn is not None and turn.parked_on is job:
            turn.unpark(now_ms)

    def wake_some(self, now_ms: int) -> None:
        """Turns of strands that are held no more come back, some at a time."""
        waking = self.shared.waking
        left = WOKEN_TURNS
        while waking and left > 0:
            aside = waking[-1].aside
            if waking[-1].holds or not aside:
                waking.pop()
                continue
            left -= 1
            turn = aside.pop()
            if turn.parked_on is turn.strand:
                turn.unpark(now_ms)

    def lend(self, now_ms: int) -> bool:
        """Nobody else can start: what was kept for owners may be lent after all."""
        pools, self._lenders = self._lenders, {}
        for pool in pools:
            pool.wake(now_ms)
        return bool(pools)

    def slots_joined(self, now_ms: int) -> None:
        """There may be more worker slots: queues at their share of them look again."""
        for queue in list(self.short_of_slots):
            gauge = queue.slot_gauge
            if queue.gate.parked_on is gauge:
                gauge.max = queue.slots_allowed(now_ms)
                gauge.wake(now_ms)
            if queue.gate.parked_on is not gauge:
                del self.short_of_slots[queue]

    def _set_aside(
        self, turn: Turn, job: Job | None, outcome: Delivery, now_ms: int
    ) -> None:
        strand = turn.strand
        match outcome:
            case Delivery.MOVE:
                assert job is not None
                self._move(turn, job, now_ms)
            case Delivery.CLOSED:
                self.look_at_window(strand, now_ms)
            case Delivery.HELD:
                turn.parked_on = strand
                if strand.aside is None:
                    strand.aside = []
                strand.aside.append(turn)
                turn.seat_at(strand.now(now_ms))
            case Delivery.PAUSED:
                rule = turn.tenancy.rule
                turn.parked_on = rule
                if rule.parked is None:
                    rule.parked = []
                rule.parked.append(turn)
                turn.seat_at(strand.now(now_ms))
            case Delivery.ASK:
                assert job is not None
                turn.parked_on = job
                job.cleared_ms = 0
                queue = strand.lane.queue
                queue.asked[job.seq] = job
                self.asks.append(job)
                turn.seat_at(strand.now(now_ms))
            case Delivery.OVER:
                self._put_over(turn, now_ms)
            case _:
                turn.seat_at(strand.now(now_ms))

    def _park(self, turn: Turn, limited: Limited, job: Job, now_ms: int) -> None:
        gauge, member, cost = limited.gauge, limited.member, job.cost
        queue = turn.strand.lane.queue
        if member is queue.gate:
            queue.gate.cost = cost
        if gauge is queue.slot_gauge:
            queue.gate.cost = 1
            self.short_of_slots[queue] = None
        else:
            self._stop_at(gauge, member, job, now_ms)
        # It has no call on the units of gauges that did not stop it.
        for other in (*turn.strand.gauges, *turn.tenancy.rule.gauges):
            if other is not gauge:
                other.forget(member)
        gauge.park(member, cost, now_ms)
        if isinstance(gauge, RateGauge):
            self._watch(gauge, now_ms)
        elif isinstance(gauge, ShareGauge) and gauge.pool.is_lending:
            self._lenders[gauge.pool] = None
        if member is turn:
            turn.seat_at(turn.strand.now(now_ms))
        else:
            queue.reseat()

    def _stop_at(self, gauge: Gauge, member: Parked, job: Job, now_ms: int) -> None:
        """The job would start but for the limit: that is told of its tenant."""
        uses = self.shared.uses
        use = uses.use(gauge, job, now_ms)
        use.stop(member, job.tenant, now_ms)

    def _watch(self, gauge: RateGauge, now_ms: int) -> None:
        """Looks again at a rate when its next unit is due, if anyone waits."""
        if gauge.has_waiting() and not gauge.timer_ms:
            gauge.timer_ms = gauge.next_ms(now_ms)
            self.timers.add(gauge, gauge.timer_ms)

    def _move(self, turn: Turn, job: Job, now_ms: int) -> None:
        """The rules changed under a backlog: the head goes where it belongs now."""
        queue = turn.strand.lane.queue
        clocks_ms = _clocks_ms(turn, now_ms)
        turn.remove(job)
        for gauge in (*turn.strand.gauges, *turn.tenancy.rule.gauges):
            if gauge.big is turn:
                gauge.let_go(turn, now_ms)
        turn.tenancy.ready -= 1
        turn.strand.lane.ready -= 1
        if turn.count == 0:
            if turn.cut is None:
                queue.drop_turn(turn)
            else:
                self.shared.reads[turn] = None
        turn.seat_at(turn.strand.now(now_ms))
        target = queue.turn_of(job, now_ms)
        target.strand.lane.ready += 1
        if job.timeout_left_ms:
            turn.strand.lane.going -= 1
            target.strand.lane.going += 1
        strand_ms = target.strand.now(now_ms)
        self._want_moves(job, turn.tenancy, target.tenancy, now_ms)
        # Time that it was held stays to its credit.
        job.shift_ms += _clocks_ms(target, now_ms) - clocks_ms
        self.join(target, job, strand_ms, now_ms)
        self.shared.moved[job.seq] = job

    def _want_moves(
        self, job: Job, source: Tenancy, target: Tenancy, now_ms: int
    ) -> None:
        if source.account is not target.account:
            if source.is_named:
                self.shared.ledger.wants(source.account, -job.want, now_ms)
            if target.is_named:
                self.shared.ledger.wants(target.account, job.want, now_ms)

    def look_at_window(self, strand: Strand, now_ms: int) -> None:
        """The window was open until a known moment: it may be again, or be closed."""
        windows = strand.windows
        assert windows is not None
        gate = strand.lane.queue.gate
        # Nobody looked when it closed. Time that the queue was held since then is
        # counted there already.
        unseen_ms = -(gate.held_ms - strand.closes_held_ms)
        if strand.closes_ms >= 0:
            unseen_ms += closed_ms(windows, strand.closes_ms, now_ms)
        if windows.is_open(now_ms):
            strand.held_ms += max(0, unseen_ms)
            strand.closes_ms = windows.closes_ms(now_ms)
            strand.closes_held_ms = gate.held_ms
            return
        since_ms = gate.time(now_ms) - max(0, unseen_ms)
        strand.hold_at(WINDOW, since_ms, is_on=True)
        self.timers.add(strand, windows.opens_ms(now_ms))

    def _put_over(self, turn: Turn, now_ms: int) -> None:
        group = turn.tenancy.account.group
        turn.is_shedding = True
        group.push_over(turn, self.shared.next_number(), now_ms)
        self.shared.ledger.over[group.name] = group
        change_tier(turn, OVER, now_ms)


def _full(gauges: tuple[Gauge, ...]) -> Gauge | None:
    """The first limit that is used up, but for shares and rates."""
    for gauge in gauges:
        if gauge.used >= gauge.max and type(gauge) is Gauge:
            return gauge
    return None


def pass_on(turn: Turn, now_ms: int) -> None:
    """A turn that was woken for units and does not take them lets another have them."""
    gauge = turn.called_by
    if gauge is not None:
        turn.called_by = None
        if gauge is not turn.parked_on:
            gauge.pass_on(now_ms)


def change_tier(turn: Turn, tier: int, now_ms: int) -> None:
    """The turn changes between entitled and over share."""
    if turn.home is not None:
        turn.home.off(turn)
        turn.strand.lane.tier_of(turn).reseat()
    turn.tier = tier
    turn.seat_at(turn.strand.now(now_ms))


def _clocks_ms(turn: Turn, now_ms: int) -> int:
    """How far the clocks of a turn's strand and tenant are behind the partition's."""
    queue_ms = turn.strand.lane.queue.gate.time(now_ms)
    rule_ms = turn.tenancy.rule.time(queue_ms)
    return now_ms - turn.strand.time(queue_ms) + queue_ms - rule_ms


def closed_ms(windows: WindowSet, since_ms: int, now_ms: int) -> int:
    """How long the windows were closed from one closing on until now."""
    closed_ms = 0
    for _ in range(CLOSINGS):
        opens_ms = min(windows.opens_ms(since_ms), now_ms)
        closed_ms += opens_ms - since_ms
        if opens_ms >= now_ms:
            break
        since_ms = windows.closes_ms(opens_ms)
        if since_ms >= now_ms:
            break
    return closed_ms
