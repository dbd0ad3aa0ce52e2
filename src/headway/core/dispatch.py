"""Who starts next: turns are chosen here, and what starts and ends is counted."""

from typing import Final

from headway.core.delivery import START, check
from headway.core.entitlement import EARLY, LEVEL_MS, SLOT, Account, want_of
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.parking import Parking, Timer, change_tier, pass_on
from headway.core.promise import Board
from headway.core.queue import Queue, Shared, ask_no_more
from headway.core.rules import charge_of
from headway.core.timers import TimeBuckets
from headway.core.turn import ENTITLED, OVER, Turn

COST_EVERY_MS: Final = 1_000
"""How often the cost of a start is worked out anew."""
COST_MAX_MS: Final = 10_000
"""The longest interval between free slots that counts as one."""
STOPS_MAX: Final = 512
"""Turns put out of the way at one go: a limit that fills under a million tenants is
worked off in pieces, and other commands come in between."""
RELAX_TURNS: Final = 64
"""Turns let back within their share at one go."""


class Dispatch:
    """The ready jobs of a partition, and what runs of them."""

    def __init__(self, shared: Shared, timers: TimeBuckets[Timer]) -> None:
        self.shared = shared
        self.ledger = shared.ledger
        self.parking = Parking(shared, timers)
        self.is_unsettled = False
        self.may_lend = True
        self._relaxed_ms = 0
        self._freed_ms = 0
        self._free_interval_ms = 0.0
        self._cost_ms = 0

    def add(
        self, queue: Queue, job: Job, now_ms: int, known: Turn | None = None
    ) -> Turn:
        """The job is ready: it joins its turn, which is the answer."""
        turn = queue.turn_of(job, now_ms, known)
        self.put_back(turn, job, now_ms)
        lane = turn.strand.lane
        queue.ready += 1
        lane.ready += 1
        if job.timeout_left_ms:
            lane.going += 1
        return turn

    def put_back(self, turn: Turn, job: Job, now_ms: int) -> None:
        """The same for one that is counted already, and comes from the store."""
        strand = turn.strand
        queue = strand.lane.queue
        if strand.lane.start_cost_ms != self.shared.start_cost_ms:
            queue.aim_at(strand.lane)
        if strand.closes_ms <= now_ms and not strand.holds:
            # Closed hours that nobody saw are no held time of a job that comes now.
            self.parking.look_at_window(strand, now_ms)
        rule = turn.tenancy.rule
        queue_ms = queue.gate.time(now_ms)
        strand_ms = strand.time(queue_ms)
        job.shift_ms = now_ms - strand_ms - job.credit_ms
        job.credit_ms = 0
        if rule.holds or rule.held_ms:
            job.shift_ms += queue_ms - rule.time(queue_ms)
        self.parking.join(turn, job, strand_ms, now_ms)
        if turn.tenancy.is_named:
            account = turn.tenancy.account
            run_ms = account.mean_run_ms
            if not run_ms:
                run_ms = queue.rules.kind(job.kind).mean_run_ms
            job.want = want_of(run_ms, strand.lane.aim_ms)
            self.ledger.wants(account, job.want, now_ms)

    def remove(self, queue: Queue, job: Job, now_ms: int) -> None:
        """The job is ready no more, and was not started."""
        turn = job.turn
        assert turn is not None
        is_head = turn.head() is job
        self._leave(queue, turn, job)
        if turn.tenancy.is_named:
            self.ledger.wants(turn.tenancy.account, -job.want, now_ms)
        if turn.parked_on is job:
            turn.parked_on = None
            is_head = True
            ask_no_more(queue, job)
        if is_head:
            self.parking.reconsider(turn, now_ms)
            turn.seat_at(turn.strand.now(now_ms))
            pass_on(turn, now_ms)

    def next(self, board: Board, now_ms: int) -> Job | None:
        """The job that may start now, by the rules of choice: the head of its turn.

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
            self.parking.wake_some(now_ms)
        while True:
            lane_tier = board.pick(now_ms, ledger)
            if lane_tier is None:
                if waking:
                    self.parking.wake_some(now_ms)
                    continue
                if self.may_lend:
                    # Once for a decision or a start, or two boards would take turns.
                    self.may_lend = False
                    if self.parking.lend(now_ms):
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
            cold = turn.strand.lane.cold
            if cold is not None and cold.holds_back(turn.tenancy.pass_):
                return None
            job = turn.head()
            outcome = check(turn, job, ledger, now_ms)
            if outcome is START:
                return job
            self.parking.stop(turn, job, outcome, now_ms)
            stops += 1
            if stops == STOPS_MAX:
                self.is_unsettled = True
                return None

    def start(self, turn: Turn, job: Job, now_ms: int) -> tuple[int, int]:
        """Takes the head out of its turn; answers how long it waited and was held."""
        self.may_lend = True
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
        is_full = False
        if not lane.is_exempt:
            is_full = self.shared.uses.start(turn, job, now_ms)
            # Nothing is reserved for it any more.
            turn.called_by = None
        if tenancy.pass_ > lane.base:
            lane.base = tenancy.pass_
        # A continuation has paid already.
        if job.timeout_left_ms == 0:
            cost = charge_of(rules, job) if rules.is_by_time else job.cost or 1
            job.charge = cost * tenancy.rule.stride
            tenancy.pass_ += job.charge
            if tenancy.pass_ > lane.top:
                lane.top = tenancy.pass_
        if lane.entitled.is_due:
            lane.clock.charge(1)
        if job.level > queue.level_base:
            queue.level_base = job.level
        self._occupy(job, turn, now_ms)
        self._leave(queue, turn, job)
        if is_full and turn.count:
            self.parking.park_full(turn, now_ms)
        turn.seat_at(strand_ms)
        for gauge in strand.shares:
            gauge.expect(turn)
        if self.parking.short_of_slots:
            # A slot that is busy elsewhere counts, too.
            self.parking.slots_joined(now_ms)
        return wait_ms, held_ms

    def resume(self, queue: Queue, job: Job, now_ms: int) -> None:
        """A job that was leased before the partition was restored still runs."""
        self._occupy(job, queue.turn_of(job, now_ms), now_ms)

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
        if tenancy.is_named:
            account = tenancy.account
            account.ran(now_ms - job.started_ms)
            ledger.ends(account, job.want, now_ms)
            if account.group.over:
                self._entitle(account.group, now_ms, 1)
        else:
            ledger.leased_without -= 1
        if not job.is_critical:
            queue.slot_gauge.give_back(1, now_ms)
        interval_ms = min(now_ms - self._freed_ms, COST_MAX_MS)
        self._freed_ms = now_ms
        self._free_interval_ms += (interval_ms - self._free_interval_ms) / 64
        if now_ms >= self._cost_ms + COST_EVERY_MS:
            self._cost_ms = now_ms
            cost_ms = self.shared.commit_ms + round(self._free_interval_ms)
            self.shared.start_cost_ms = cost_ms

    def _leave(self, queue: Queue, turn: Turn, job: Job) -> None:
        turn.remove(job)
        turn.tenancy.ready -= 1
        lane = turn.strand.lane
        lane.ready -= 1
        if job.timeout_left_ms:
            lane.going -= 1
        if lane.ready == 0:
            # Nobody waits, so nobody is owed anything.
            lane.base = lane.top
        queue.ready -= 1
        if lane.cold is not None:
            lane.cold.one_left(turn)
        if turn.cut is not None and turn.count < self.shared.read_below:
            self._read_on(lane, turn)
        elif turn.count == 0:
            queue.drop_turn(turn)

    def _read_on(self, lane: Lane, turn: Turn) -> None:
        """The store has more of this turn; a lane that is read in rounds comes by."""
        if lane.cold is None:
            self.shared.reads[turn] = None
        elif turn.count == 0:
            lane.cold.is_clean = False
            lane.queue.drop_turn(turn)

    def take_out(self, job: Job, now_ms: int) -> None:
        """The job goes from memory, and stays in the store."""
        turn = job.turn
        assert turn is not None
        turn.remove(job)
        turn.tenancy.ready -= 1
        if turn.tenancy.is_named:
            self.ledger.wants(turn.tenancy.account, -job.want, now_ms)

    def _occupy(self, job: Job, turn: Turn, now_ms: int) -> None:
        tenancy = turn.tenancy
        job.tenancy = tenancy
        tenancy.leased += 1
        ledger = self.ledger
        ledger.leased += 1
        if turn.tier == OVER:
            job.is_over = True
            ledger.leased_over += 1
        if tenancy.is_named:
            is_needed = turn.tier == OVER or turn.strand.lane.entitled.is_due
            held = SLOT if is_needed else max(job.want, EARLY)
            ledger.starts(tenancy.account, held - job.want, now_ms)
            job.want = held
        else:
            ledger.leased_without += 1
        if not job.is_critical:
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

    def _entitle(self, group: Account, now_ms: int, most: int) -> None:
        """Lets turns back within their share, as many as fit."""
        while most > 0 and group.over and not self.ledger.is_over(group, now_ms):
            turn = group.pop_over(self.shared.next_number(), now_ms)
            if turn.tier == OVER:
                change_tier(turn, ENTITLED, now_ms)
                most -= 1
        if not group.over:
            self.ledger.over.pop(group.name, None)

    def _relax(self, now_ms: int) -> None:
        """The level has moved: those who are within it now come back."""
        self._relaxed_ms = now_ms
        for group in list(self.ledger.over.values())[:RELAX_TURNS]:
            self._entitle(group, now_ms, RELAX_TURNS)
