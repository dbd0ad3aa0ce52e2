"""One queue at work: its lanes, and where in them a job belongs."""

from typing import Any, Final

from headway.core import defaults
from headway.core.commands import Fact, FactKind
from headway.core.config import QueueConfig
from headway.core.empties import Empties
from headway.core.entitlement import Ledger
from headway.core.errors import TooManySlos
from headway.core.fairness import (
    UNIT,
    LaneClock,
    SloClass,
    Tenancy,
    TenantRule,
    stride_of,
)
from headway.core.gate import Gate
from headway.core.idempotency import KeyBook
from headway.core.job import Job
from headway.core.lane import Lane, LaneTier
from headway.core.limits import Gauge
from headway.core.promise import Board
from headway.core.replies import ReplyBook
from headway.core.rules import Rules, margin_ms, value_of
from headway.core.shares import ShareGauge
from headway.core.shelf import NEVER
from headway.core.strand import KIND, TENANT, Strand
from headway.core.turn import NOTHING_READ, Turn
from headway.core.use_book import UseBook

EMPTIES: Final = 1_024
"""Empty turns kept in a queue before the oldest are dropped..."""
EMPTIES_READ: Final = 256
"""...and fewer where turns are read in rounds, as each comes back but once in a round:
they go while they are still in the processor's cache..."""
EMPTIES_MAX: Final = 65_536
"""...even where their tenant's clock is ahead: it forgives no more than its last start."""
UNLOOKED_MAX: Final = 63
"""Turns that may empty before the oldest are looked at again, where none could go."""


class Shared:
    """What all queues of a partition have in common."""

    def __init__(self, ledger: Ledger, *, has_fairness: bool = True) -> None:
        self.ledger = ledger
        self.slos: dict[int, SloClass] = {}
        self.waking: list[Strand] = []
        """Strands whose hold has ended, with turns that have not come back yet."""
        self.has_fairness = has_fairness
        """False only to compare with schedulers that know no tenants."""
        self.numbers = 0
        self.since_ms = 0
        """When this partition was restored: what its rates let pass before is unknown."""
        self.turns = 0
        """Turns in memory."""
        self.is_bounded = False
        """A store holds everything, and memory only what is next."""
        self.grown: dict[Turn, None] = {}
        """Turns that may hold more than they should, now that they have grown."""
        self.new_turns: list[Turn] = []
        self.reshaped: dict[Queue, None] = {}
        """Queues whose jobs may belong into other turns, now that rules have changed."""
        self.reads: dict[object, None] = {}
        """What is to be read from the store before those who wait are told to go."""
        self.read_below = 0
        """A turn with fewer jobs than this is read on, if the store has more of it."""
        self.moved: dict[int, Job] = {}
        """Jobs that the decision under way has put elsewhere, and nothing else."""
        self.facts: dict[Fact, None] = {}
        """What the decision under way has changed apart from jobs."""
        self.uses = UseBook()
        """What limits were used for, and what is to be told of it."""
        self.commit_ms = 0
        """What it takes to make a decision durable; the owner tells."""
        self.start_cost_ms = 0
        """What a start costs: a commit, and the mean interval at which slots come free."""

    def next_number(self) -> int:
        self.numbers += 1
        return self.numbers


class Queue:
    """What it is told is in `rules`; what it has is here."""

    def __init__(self, config: QueueConfig, shared: Shared) -> None:
        self.name = config.name
        self.shared = shared
        self.number = shared.next_number()
        self.rules = Rules(
            config, has_fairness=shared.has_fairness, since_ms=shared.since_ms
        )
        self.gate = Gate(self, self.number)
        self.lanes: dict[int, Lane] = {}
        self.exempt: dict[int, Lane] = {}
        """Lanes of jobs that no limit stops."""
        self._last_lane: Lane | None = None
        """Which a job was put in last: the next mostly belongs there, too."""
        self.boards: list[Board] = []
        self.shape_met = self.rules.shape
        """The shape of the rules that parked turns know of."""
        self.asked: dict[int, Job] = {}
        """Jobs about which the throttler was asked..."""
        self.unheard: dict[int, str] = {}
        """...and what it gave in place of a verdict on them, where it failed."""
        self.replies = ReplyBook(config.name, shared)
        self.keys = KeyBook()
        self.ready = 0
        self.scheduled = 0
        self.leased = 0
        self.waiting = 0
        self.dead = 0
        self.coming = 0
        """Jobs of published writes that were not taken in yet."""
        self.slot_gauge = Gauge("slots", "", 0)
        """Worker slots held by jobs that count against the queue's share of them."""
        self.levels: dict[str, int] = {}
        self.level_base = 0
        self.empties = Empties()
        """One that has jobs again is taken out where they join it."""
        self._unlooked = 0
        """Turns that may empty until the oldest are looked at again..."""
        self._unlooked_next = 0
        """...and how many that will be if they can't go then, either."""
        self.declare_lanes()

    def declare_lanes(self) -> None:
        """The configuration is new: its SLO classes, weight and margins hold now."""
        config = self.rules.config
        for slo_ms in (config.slo_ms, *config.slos_ms):
            if slo_ms not in self.lanes:
                self._lane(slo_ms, is_exempt=False)
        for lane in self.all_lanes():
            lane.clock.stride = stride_of(config.weight)
            lane.is_ranked = self.rules.is_one_lane
            self.aim_at(lane)
        for board in self.boards:
            board.restart_floor(self)

    def all_lanes(self) -> list[Lane]:
        return [*self.lanes.values(), *self.exempt.values()]

    def reseat(self) -> None:
        for lane in self.all_lanes():
            lane.reseat()

    def slo_class(self, slo_ms: int | None) -> int:
        """The job's own SLO, or the next stricter one when there are 16 already."""
        if slo_ms is None or self.rules.is_one_lane:
            return self.rules.slo_ms
        if slo_ms in self.lanes:
            return slo_ms
        if len(self.lanes) < defaults.SLO_CLASSES_MAX:
            self._lane(slo_ms, is_exempt=False)
            return slo_ms
        stricter = [known for known in self.lanes if known < slo_ms]
        if not stricter:
            raise TooManySlos(f"slo {slo_ms} ms is stricter than all 16 known ones")
        return max(stricter)

    def turn_of(self, job: Job, now_ms: int, known: Turn | None = None) -> Turn:
        """The turn that the job joins when it is ready.

        `known` is one of its tenant, looked up in this decision: it is that, or the
        tenant's in another strand.
        """
        rules = self.rules
        is_exempt = job.is_critical or bool(job.holds)
        lane = self._last_lane
        if lane is None or lane.slo_ms != job.slo_ms or lane.is_exempt != is_exempt:
            lane = (self.exempt if is_exempt else self.lanes).get(job.slo_ms)
            if lane is None:
                lane = self._lane(job.slo_ms, is_exempt=is_exempt)
            self._last_lane = lane
        dims = rules.dims
        strand: Strand | None = None
        if job.windows is None:
            if not dims:
                strand = lane.common
            elif len(dims) == 1:
                strand = lane.by_value.get(value_of(dims[0], job.spec))
        if strand is None or strand.shape != rules.shape:
            key = rules.strand_key(job.spec)
            strand = self._strand_of(lane, key, now_ms)
            if job.windows is None:
                if not dims:
                    lane.common = strand
                elif len(dims) == 1:
                    lane.by_value[key[1]] = strand
        if known is not None and known.strand is strand:
            return known
        name = job.tenant if rules.is_fair else ""
        turn = strand.turn_of(name)
        if turn is None:
            tenancy = self._tenancy(lane, name, now_ms)
            turn = self._turn(strand, tenancy)
            strand.add(name, turn)
        return turn

    def lane(self, slo_ms: int, *, is_exempt: bool) -> Lane:
        """The lane, made if it is not there yet."""
        lanes = self.exempt if is_exempt else self.lanes
        lane = lanes.get(slo_ms)
        return self._lane(slo_ms, is_exempt=is_exempt) if lane is None else lane

    def own_rule(self, tenant: str) -> TenantRule:
        """The rule of one tenant alone, made if nothing was said of it before."""
        if tenant in self.rules.tenants:
            return self.rules.tenants[tenant]
        rule = self.rules.tenant(tenant)
        if self.rules.is_fair:
            for lane in self.all_lanes():
                tenancy = lane.tenancies.get(tenant)
                if tenancy is not None:
                    tenancy.rule = rule
        return rule

    def drop_turn(self, turn: Turn) -> None:
        """Empty turns go in the order in which they emptied, two for one."""
        empties = self.empties
        if not turn.is_emptied:
            empties.add(turn)
        most = EMPTIES if turn.strand.lane.cold is None else EMPTIES_READ
        if empties.size <= most:
            return
        if self._unlooked > 0 and empties.size < EMPTIES_MAX:
            # Each look is at memory that nothing else touches.
            self._unlooked -= 1
            return
        for _ in range(2):
            if empties.size <= most:
                return
            self._collect(empties.pop())

    def most_urgent(self) -> LaneTier | None:
        """Of its lanes that have something to start, the one to go first."""
        tiers = [lane.entitled for lane in self.all_lanes()]
        return min(
            (tier for tier in tiers if tier.rank >= 0 or tier.aim >= 0),
            key=_urgency,
            default=None,
        )

    def show_on(self, board: Board) -> None:
        """The board shows this queue's lanes from now on."""
        self.boards.append(board)
        board.lanes += len(self.lanes) + len(self.exempt)
        for lane in self.all_lanes():
            lane.post_on(board)
        board.restart_floor(self)

    def slots_allowed(self, now_ms: int) -> int:
        """Worker slots that its jobs may hold at once."""
        share = self.rules.config.slot_share
        return max(1, int(share * self.shared.ledger.slots(now_ms)))

    def aim_at(self, lane: Lane) -> None:
        """Works out the lane's margin by what a start costs now."""
        cost_ms = lane.start_cost_ms = self.shared.start_cost_ms
        lane.aim_ms = lane.slo_ms - margin_ms(self.rules.config, lane.slo_ms, cost_ms)

    def _lane(self, slo_ms: int, *, is_exempt: bool) -> Lane:
        slo = self.shared.slos.setdefault(slo_ms, SloClass(slo_ms))
        twin = (self.lanes if is_exempt else self.exempt).get(slo_ms)
        clock = LaneClock(slo, stride_of(self.rules.config.weight))
        lane = Lane(self, slo_ms, clock if twin is None else twin.clock)
        lane.is_exempt = is_exempt
        lane.is_ranked = self.rules.is_one_lane
        self.aim_at(lane)
        (self.exempt if is_exempt else self.lanes)[slo_ms] = lane
        self.shared.facts[FactKind.QUEUE, self.name, ""] = None
        for board in self.boards:
            board.lanes += 1
        return lane

    def _strand_of(self, lane: Lane, key: tuple[Any, ...], now_ms: int) -> Strand:
        rules = self.rules
        known = lane.strands.get(key)
        if known is not None and known.shape == rules.shape:
            return known
        strand = Strand(lane, key)
        strand.shape = rules.shape
        if key:
            strand.windows = key[0]
            strand.closes_ms = NEVER if strand.windows is None else -1
            strand.gauges = gauges = rules.strand_gauges(key)
            strand.shares = tuple(x for x in gauges if isinstance(x, ShareGauge))
            rules.book.join(gauges)
            rules.book.tidy(now_ms)
        lane.strands[key] = strand
        if "kind" in rules.dims:
            strand.kind = key[1 + rules.dims.index("kind")]
            rule = rules.kinds.get(strand.kind)
            if rule is not None and rule.is_paused:
                strand.hold(KIND, now_ms, is_on=True)
        if "tenant" in rules.dims:
            strand.tenant = key[1 + rules.dims.index("tenant")]
            tenant = rules.tenants.get(strand.tenant)
            if tenant is not None and tenant.holds:
                strand.hold(TENANT, now_ms, is_on=True)
        return strand

    def _turn(self, strand: Strand, tenancy: Tenancy) -> Turn:
        shared = self.shared
        turn = Turn(strand, tenancy, shared.next_number())
        tenancy.turns += 1
        shared.turns += 1
        if shared.is_bounded:
            shared.new_turns.append(turn)
            if strand.lane.cold is not None:
                turn.cut = NOTHING_READ
                strand.lane.cold.expect(turn)
        return turn

    def _tenancy(self, lane: Lane, name: str, now_ms: int) -> Tenancy:
        tenancy = lane.tenancies.get(name)
        if tenancy is None:
            rule = self.rules.rule_of(name)
            ledger = self.shared.ledger
            account = (
                ledger.account(name, rule.weight, now_ms) if name else ledger.nobody
            )
            self.rules.book.tidy(now_ms)
            tenancy = lane.tenancies[name] = Tenancy(name, rule, account)
            account.tenancies += 1
        return tenancy

    def _collect(self, turn: Turn) -> None:
        """Drops a turn that stayed empty, and its tenant's clock if it owes nothing."""
        if turn.count:
            return
        strand = turn.strand
        lane = strand.lane
        tenancy = turn.tenancy
        has_room = self.empties.size < EMPTIES_MAX
        is_ahead = has_room and _is_ahead(tenancy, lane)
        if is_ahead:
            self._unlooked = self._unlooked_next
            self._unlooked_next = min(UNLOOKED_MAX, 2 * self._unlooked + 1)
        else:
            self._unlooked_next = 0
        # Its clock goes with a tenant's last turn, and must not while its jobs run.
        is_in_use = tenancy.leased > 0 and (has_room or tenancy.turns == 1)
        if is_in_use or is_ahead or turn.parked_on is not None:
            self.empties.add(turn)
            return
        name = tenancy.name
        if strand.turn_of(name) is not turn:
            return
        is_last = strand.drop(name)
        turn.lose_entries()
        self.shared.turns -= 1
        if is_last and strand.key:
            lane.forget(strand)
            self.rules.book.leave(strand.gauges)
        tenancy.turns -= 1
        if tenancy.turns == 0 and lane.tenancies.get(name) is tenancy:
            del lane.tenancies[name]
            # They know it, too: a cycle, which only the collector would find.
            for tier in (tenancy.entitled, tenancy.over):
                if tier is not None:
                    tier.lose_entries()
            tenancy.entitled = tenancy.over = None
            tenancy.account.tenancies -= 1
            self.shared.ledger.forget(tenancy.account)
            self._forget_rule(tenancy.rule)

    def _forget_rule(self, rule: TenantRule) -> None:
        """With its last tenancy goes a rule that says nothing of its own."""
        if rule is self.rules.plain:
            return
        if not any(rule.name in lane.tenancies for lane in self.all_lanes()):
            self.rules.forget_tenant(rule)


def ask_no_more(queue: Queue, job: Job) -> None:
    """The throttler has spoken on the job, or the job has gone elsewhere."""
    queue.asked.pop(job.seq, None)
    queue.unheard.pop(job.seq, None)


def _urgency(tier: LaneTier) -> tuple[int, int, int]:
    """Due before ahead, then shortest SLO or earliest aim."""
    if tier.is_due:
        return 0, tier.lane.slo_ms, tier.number
    return 1, tier.aim, tier.number


def _is_ahead(tenancy: Tenancy, lane: Lane) -> bool:
    """Whether a tenant would gain if its clock was forgotten.

    Where turns are read in rounds, one start more or less is nothing: whoever was served
    in this round is not met again before the next one.
    """
    if lane.cold is None:
        return tenancy.pass_ > lane.base
    return tenancy.pass_ > lane.base + UNIT
