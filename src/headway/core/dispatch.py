"""Who starts next: turns are chosen, stopped, parked and woken here."""

from typing import Final

from headway.core.delivery import START, Delivery, Limited, check
from headway.core.entitlement import LEVEL_MS, Account, want_of
from headway.core.fairness import Tenancy
from headway.core.job import Job
from headway.core.lane import WINDOW, Strand
from headway.core.limits import Gauge, RateGauge
from headway.core.promise import Board
from headway.core.queue import Queue, Shared
from headway.core.timers import TimeBuckets
from headway.core.turn import ENTITLED, OVER, Turn
from headway.core.windows import WindowSet

COST_EVERY_MS: Final = 1_000
"""How often the cost of a start is worked out anew."""
COST_MAX_MS: Final = 10_000
"""The longest interval between free slots that counts as one."""
CLOSINGS: Final = 1_000
"""Closings of a window that are made up for when nobody saw them."""
STOPS_MAX: Final = 512
"""Turns put out of the way at one go: a limit that fills under a million tenants is
worked off in pieces, and other commands come in between."""
WOKEN_TURNS: Final = 64
"""Turns of a strand that come back at one go when its hold has ended."""
RELAX_TURNS: Final = 64
"""Turns let back within their share at one go."""

Timer = Job | Strand | RateGauge | object


class Dispatch:
    """The ready jobs of a partition, and what runs of them."""

    def __init__(self, shared: Shared, timers: TimeBuckets[Timer]) -> None:
        self.shared = shared
        self.ledger = shared.ledger
        self.timers = timers
        self.asks: list[Job] = []
        self.is_unsettled = False
        self._relaxed_ms = 0
        self._freed_ms = 0
        self._free_interval_ms = 0.0
        self._cost_ms = 0
        self._short_of_slots: dict[Queue, None] = {}

    def add(self, queue: Queue, job: Job, now_ms: int) -> None:
        """The job is ready: it joins its turn."""
        turn = queue.turn_of(job, now_ms)
        strand = turn.strand
        if strand.lane.start_cost_ms != self.shared.start_cost_ms:
            queue.aim_at(strand.lane)
        rule = turn.tenancy.rule
        queue_ms = queue.gate.time(now_ms)
        strand_ms = strand.time(queue_ms)
        job.shift_ms = now_ms - strand_ms - job.credit_ms
        job.credit_ms = 0
        if rule.holds or rule.held_ms:
            job.shift_ms += queue_ms - rule.time(queue_ms)
        self._join(turn, job, strand_ms, now_ms)
        queue.ready += 1
        strand.lane.ready += 1
        if turn.tenancy.name:
            account = turn.tenancy.account
            run_ms = account.mean_run_ms
            if not run_ms:
                run_ms = queue.rules.kind(job.spec.kind).mean_run_ms
            job.want = want_of(run_ms, strand.lane.aim_ms)
            self.ledger.wants(account, job.want, now_ms)

    def remove(self, queue: Queue, job: Job, now_ms: int) -> None:
        """The job is ready no more, and was not started."""
        turn = job.turn
        assert turn is not None
        is_head = turn.head() is job
        self._leave(queue, turn, job)
        if turn.tenancy.name:
            self.ledger.wants(turn.tenancy.account, -job.want, now_ms)
        if turn.parked_on is job:
            turn.parked_on = None
            is_head = True
            queue.asked.pop(job.seq, None)
        if is_head:
            self._reconsider(turn, now_ms)
            turn.seat_at(turn.strand.now(now_ms))
            _pass_on(turn, now_ms)

    def next(self, board: Board, now_ms: int) -> Turn | None:
        """The turn whose head may start now, by the rules of choice.

        Turns that may not are put out of the way, some hundred at most: if there are
        more, the answer is None and `is_unsettled` says that it is worth asking again.
        """
        ledger = self.ledger
        self.is_unsettled = False
        stops = 0
        if ledger.over and now_ms >= self._relaxed_ms + LEVEL_MS:
            self._relax(now_ms)
        waking = self.shared.waking
        if waking:
            self.wake_some(now_ms)
        while True:
            lane_tier = board.pick(now_ms, ledger)
            if lane_tier is None:
                if waking:
                    self.wake_some(now_ms)
                    continue
                return None
            turn = lane_tier.first(now_ms)
            if turn is None:
                lane_tier.reseat()
                continue
            if turn.held_ms != turn.strand.held_ms:
                # Its strand was held since it took its place.
                turn.seat_at(turn.strand.now(now_ms))
                continue
            if turn.is_shedding and self._shed(turn, now_ms):
                continue
            job = turn.head()
            outcome = check(turn, job, ledger, now_ms)
            if outcome is START:
                return turn
            self._stop(turn, job, outcome, now_ms)
            stops += 1
            if stops == STOPS_MAX:
                self.is_unsettled = True
                return None

    def start(self, turn: Turn, job: Job, now_ms: int) -> tuple[int, int]:
        """Takes the head out of its turn; answers how long it waited and was held."""
        strand = turn.strand
        lane = strand.lane
        queue = lane.queue
        tenancy = turn.tenancy
        strand_ms = now_ms - queue.gate.held_ms - strand.held_ms
        held_ms = now_ms - strand_ms + tenancy.rule.held_ms - job.shift_ms
        # Holds of a strand and of a tenant at once count twice, but never more
        # than all of the time.
        held_ms = min(held_ms, now_ms - job.run_at_ms)
        wait_ms = now_ms - job.run_at_ms - held_ms
        job.credit_ms = held_ms
        if 2 * wait_ms > lane.aim_ms:
            self.ledger.saw_danger(now_ms)
        if lane.started_ms >= 0:
            interval_ms = now_ms - lane.started_ms
            lane.start_interval_ms += (interval_ms - lane.start_interval_ms) / 16
        lane.started_ms = now_ms
        rules = queue.rules
        if not lane.is_exempt and (
            rules.gauges or strand.gauges or tenancy.rule.gauges
        ):
            self._take_units(turn, job, now_ms)
        if tenancy.pass_ > lane.base:
            lane.base = tenancy.pass_
        # A continuation has paid already.
        if job.timeout_left_ms == 0:
            cost = rules.charge_of(job) if rules.is_by_time else job.cost or 1
            job.charge = cost * tenancy.rule.stride
            tenancy.pass_ += job.charge
        if lane.entitled.is_due:
            lane.clock.charge(1)
        if job.level > queue.level_base:
            queue.level_base = job.level
        self._occupy(job, turn, now_ms)
        self._leave(queue, turn, job)
        if tenancy.rule.gauges and turn.count and not lane.is_exempt:
            self._park_capped(turn, now_ms)
        turn.seat_at(strand_ms)
        for gauge in strand.gauges:
            gauge.expect(turn)
        return wait_ms, held_ms

    def vacate(
        self, queue: Queue, job: Job, now_ms: int, *, is_unused: bool = False
    ) -> None:
        """The job gives its worker slot back, whatever it does next."""
        tenancy = job.tenancy
        assert tenancy is not None
        job.tenancy = None
        if is_unused:
            tenancy.pass_ -= job.charge
            job.charge = 0
        tenancy.leased -= 1
        ledger = self.ledger
        ledger.leased -= 1
        if job.is_over:
            job.is_over = False
            ledger.leased_over -= 1
        if tenancy.name:
            account = tenancy.account
            account.ran(now_ms - job.started_ms)
            ledger.ends(account, now_ms)
            if account.group.over:
                self._entitle(account.group, now_ms, 1)
        else:
            ledger.leased_without -= 1
        if not job.spec.is_critical:
            queue.slot_gauge.give_back(1, now_ms)
        interval_ms = min(now_ms - self._freed_ms, COST_MAX_MS)
        self._freed_ms = now_ms
        self._free_interval_ms += (interval_ms - self._free_interval_ms) / 64
        if now_ms >= self._cost_ms + COST_EVERY_MS:
            self._cost_ms = now_ms
            cost_ms = self.shared.commit_ms + round(self._free_interval_ms)
            self.shared.start_cost_ms = cost_ms

    def give_back(self, job: Job, now_ms: int) -> None:
        """The job gives back the units of limits that it holds."""
        holds, job.holds = job.holds, ()
        for gauge, units in holds:
            gauge.give_back(units, now_ms)

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

    def slots_joined(self, now_ms: int) -> None:
        """There may be more worker slots: queues at their share of them look again."""
        for queue in list(self._short_of_slots):
            gauge = queue.slot_gauge
            if queue.gate.parked_on is gauge:
                gauge.max = queue.slots_allowed(now_ms)
                gauge.wake(now_ms)
            if queue.gate.parked_on is not gauge:
                del self._short_of_slots[queue]

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

    def _join(self, turn: Turn, job: Job, strand_ms: int, now_ms: int) -> None:
        turn.add(turn.strand.lane.queue.rules.key_of(job), job)
        turn.tenancy.ready += 1
        if turn.rows[0][3] is job or turn.late:
            if turn.count > 1:
                self._reconsider(turn, now_ms, is_big_only=True)
            turn.seat_at(strand_ms)
            for gauge in turn.strand.gauges:
                gauge.expect(turn)

    def _reconsider(
        self, turn: Turn, now_ms: int, *, is_big_only: bool = False
    ) -> None:
        """Another job is at the head: what the old one waited for may not stop it."""
        gate = turn.strand.lane.queue.gate
        for member in (turn, gate):
            gauge = member.parked_on
            if isinstance(gauge, Gauge) and (not is_big_only or gauge.big is member):
                gauge.let_go(member, now_ms)
                if member is gate:
                    gate.queue.reseat()

    def _leave(self, queue: Queue, turn: Turn, job: Job) -> None:
        turn.remove(job)
        turn.tenancy.ready -= 1
        turn.strand.lane.ready -= 1
        queue.ready -= 1
        if turn.count == 0:
            queue.drop_turn(turn)

    def _stop(
        self, turn: Turn, job: Job | None, outcome: Delivery | Limited, now_ms: int
    ) -> None:
        """Puts out of the way, as a whole, what can't go on."""
        if isinstance(outcome, Limited):
            assert job is not None
            self._park(turn, outcome, job.cost, now_ms)
        else:
            self._set_aside(turn, job, outcome, now_ms)
        if outcome is not Delivery.OVER:
            _pass_on(turn, now_ms)

    def _set_aside(
        self, turn: Turn, job: Job | None, outcome: Delivery, now_ms: int
    ) -> None:
        strand = turn.strand
        match outcome:
            case Delivery.MOVE:
                assert job is not None
                self._move(turn, job, now_ms)
            case Delivery.CLOSED:
                self._close(strand, now_ms)
            case Delivery.HELD:
                turn.parked_on = strand
                strand.aside.append(turn)
                turn.seat_at(strand.now(now_ms))
            case Delivery.PAUSED:
                turn.parked_on = turn.tenancy.rule
                turn.tenancy.rule.parked.append(turn)
                turn.seat_at(strand.now(now_ms))
            case Delivery.ASK:
                assert job is not None
                turn.parked_on = job
                queue = strand.lane.queue
                queue.asked[job.seq] = job
                self.asks.append(job)
                turn.seat_at(strand.now(now_ms))
            case Delivery.OVER:
                self._put_over(turn, now_ms)
            case _:
                turn.seat_at(strand.now(now_ms))

    def _park(self, turn: Turn, limited: Limited, cost: int, now_ms: int) -> None:
        gauge, member = limited.gauge, limited.member
        queue = turn.strand.lane.queue
        if member is queue.gate:
            queue.gate.cost = cost
        if gauge is queue.slot_gauge:
            queue.gate.cost = 1
            self._short_of_slots[queue] = None
        # It has no call on the units of gauges that did not stop it.
        for other in (*turn.strand.gauges, *turn.tenancy.rule.gauges):
            if other is not gauge:
                other.forget(member)
        gauge.park(member, cost, now_ms)
        if isinstance(gauge, RateGauge):
            self._watch(gauge, now_ms)
        if member is turn:
            turn.seat_at(turn.strand.now(now_ms))
        else:
            queue.reseat()

    def _park_capped(self, turn: Turn, now_ms: int) -> None:
        """A tenant that has reached its cap parks at once, and not when next chosen."""
        head = turn.head()
        assert head is not None
        for gauge in turn.tenancy.rule.gauges:
            if not gauge.fits(head.cost, turn, now_ms):
                gauge.park(turn, head.cost, now_ms)
                if isinstance(gauge, RateGauge):
                    self._watch(gauge, now_ms)
                return

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
            queue.drop_turn(turn)
        turn.seat_at(turn.strand.now(now_ms))
        target = queue.turn_of(job, now_ms)
        target.strand.lane.ready += 1
        strand_ms = target.strand.now(now_ms)
        self._want_moves(job, turn.tenancy, target.tenancy, now_ms)
        # Time that it was held stays to its credit.
        job.shift_ms += _clocks_ms(target, now_ms) - clocks_ms
        self._join(target, job, strand_ms, now_ms)

    def _want_moves(
        self, job: Job, source: Tenancy, target: Tenancy, now_ms: int
    ) -> None:
        if source.account is not target.account:
            if source.name:
                self.ledger.wants(source.account, -job.want, now_ms)
            if target.name:
                self.ledger.wants(target.account, job.want, now_ms)

    def _close(self, strand: Strand, now_ms: int) -> None:
        """The window was open until a known moment: it may be again, or be closed."""
        windows = strand.windows
        assert windows is not None
        gate = strand.lane.queue.gate
        # Nobody looked when it closed. Time that the queue was held since then is
        # counted there already.
        unseen_ms = -(gate.held_ms - strand.closes_held_ms)
        if strand.closes_ms >= 0:
            unseen_ms += _closed_ms(windows, strand.closes_ms, now_ms)
        if windows.is_open(now_ms):
            strand.held_ms += max(0, unseen_ms)
            strand.closes_ms = windows.closes_ms(now_ms)
            strand.closes_held_ms = gate.held_ms
            return
        since_ms = gate.time(now_ms) - max(0, unseen_ms)
        strand.hold_at(WINDOW, since_ms, is_on=True)
        self.timers.add(strand, windows.opens_ms(now_ms))

    def _take_units(self, turn: Turn, job: Job, now_ms: int) -> None:
        """Counts the start against every limit; nothing is reserved for it any more."""
        strand = turn.strand
        gate = strand.lane.queue.gate
        cost = job.cost
        holds = []
        for gauges in (
            gate.queue.rules.gauges,
            strand.gauges,
            turn.tenancy.rule.gauges,
        ):
            for gauge in gauges:
                holds.append((gauge, gauge.take(cost, now_ms)))
                big = gauge.big
                if big is not None and (big is turn or big is gate):
                    gauge.big = None
        turn.called_by = None
        job.holds = tuple(holds)

    def _occupy(self, job: Job, turn: Turn, now_ms: int) -> None:
        tenancy = turn.tenancy
        job.tenancy = tenancy
        tenancy.leased += 1
        ledger = self.ledger
        ledger.leased += 1
        if turn.tier == OVER:
            job.is_over = True
            ledger.leased_over += 1
        if tenancy.name:
            ledger.starts(tenancy.account, job.want, now_ms)
        else:
            ledger.leased_without += 1
        if not job.spec.is_critical:
            turn.strand.lane.queue.slot_gauge.used += 1

    def _shed(self, turn: Turn, now_ms: int) -> bool:
        """Whether the chosen turn has another head, now that time has passed."""
        strand_ms = turn.strand.now(now_ms)
        if not self.ledger.is_danger(now_ms):
            turn.is_shedding = False
            turn.seat_at(strand_ms)
            return True
        if turn.tier == ENTITLED and turn.shed(strand_ms):
            turn.seat_at(strand_ms)
            return True
        return False

    def _put_over(self, turn: Turn, now_ms: int) -> None:
        group = turn.tenancy.account.group
        turn.is_shedding = True
        group.push_over(turn, self.shared.next_number(), now_ms)
        self.ledger.over[group.name] = group
        _change_tier(turn, OVER, now_ms)

    def _entitle(self, group: Account, now_ms: int, most: int) -> None:
        """Lets turns back within their share, as many as fit."""
        while most > 0 and group.over and not self.ledger.is_over(group, now_ms):
            turn = group.pop_over(self.shared.next_number(), now_ms)
            if turn.tier == OVER:
                _change_tier(turn, ENTITLED, now_ms)
                most -= 1
        if not group.over:
            self.ledger.over.pop(group.name, None)

    def _relax(self, now_ms: int) -> None:
        """The level has moved: those who are within it now come back."""
        self._relaxed_ms = now_ms
        for group in list(self.ledger.over.values())[:RELAX_TURNS]:
            self._entitle(group, now_ms, RELAX_TURNS)


def _pass_on(turn: Turn, now_ms: int) -> None:
    """A turn that was woken for units and does not take them lets another have them."""
    gauge = turn.called_by
    if gauge is not None:
        turn.called_by = None
        if gauge is not turn.parked_on:
            gauge.pass_on(now_ms)


def _clocks_ms(turn: Turn, now_ms: int) -> int:
    """How far the clocks of a turn's strand and tenant are behind the partition's."""
    queue_ms = turn.strand.lane.queue.gate.time(now_ms)
    rule_ms = turn.tenancy.rule.time(queue_ms)
    return now_ms - turn.strand.time(queue_ms) + queue_ms - rule_ms


def _closed_ms(windows: WindowSet, since_ms: int, now_ms: int) -> int:
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


def _change_tier(turn: Turn, tier: int, now_ms: int) -> None:
    """The turn changes between entitled and over share."""
    if turn.home is not None:
        turn.home.off(turn)
        turn.strand.lane.tier_of(turn).reseat()
    turn.tier = tier
    turn.seat_at(turn.strand.now(now_ms))
