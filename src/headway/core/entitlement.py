"""Fair shares of the worker slots: who is above theirs while promises are in danger.

A tenant wants the slots that it holds (half of one where the job could have waited),
and for each ready job as much of one as would serve it within its SLO; its demand is
that want, averaged over some seconds. The water
level is the number of slots per weight at which what everyone gets, up to the level,
adds up to all slots. A tenant that holds its level already is over share until one of
its slots comes free.
"""

from collections import OrderedDict
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from headway.core import defaults
from headway.core.untouched import Untouched

if TYPE_CHECKING:
    from headway.core.turn import Turn

SLOT: Final = 1_000_000
"""What a running job wants: all demand is in millionths of a slot, and an integer."""
EARLY: Final = SLOT // 2
"""What one wants that was started ahead of its aim: it could have waited."""
RUN_MS: Final = 1_000.0
"""The run time of jobs of which nothing is known."""
AVERAGE_MS: Final = 10_000
"""Over how long demand is averaged: bursts of a quiet tenant are not a flood."""
GRAIN_MS: Final = 100
"""Changes within so short a time are averaged as one: it runs thrice for each job."""
LEVEL_MS: Final = 100
"""How long a computed level serves."""
DANGER_MS: Final = 2_000
"""How long one sign of danger counts."""
PROBATION_MS: Final = 30_000
"""How long a tenant shares the newcomers' account after it was first seen..."""
CALM_MS: Final = 10_000
"""...and until there was no danger for so long..."""
PROBATION_MAX_MS: Final = 600_000
"""...but no longer than this."""
NEWCOMERS_MAX: Final = 200_000
"""Names on probation that are remembered while nothing of theirs is there."""
KNOWN_MS: Final = 3_600_000
"""A tenant is remembered for one to two of these after it was last seen."""
SLOTS_MS: Final = 10_000
"""A peak of slots in use counts for one to two of these."""
COARSE_SLOTS: Final = 8
"""Up to so many slots, half a slot more or less is told apart by time."""
INFINITE: Final = float("inf")
_STEPS: Final = 4
"""Buckets per doubling of demand / weight: the level is exact within a bucket."""
_BUCKETS: Final = 240
_LATE: Final = 1 << 60
"""Above every time: where the keys of late turns begin."""


class Account:
    """One tenant across all queues: what it wants and what it has."""

    __slots__ = (
        "at_ms",
        "averaged_ms",
        "bucket",
        "demand",
        "group",
        "leased",
        "leased_area",
        "mean_run_ms",
        "name",
        "over",
        "since_ms",
        "tenancies",
        "used",
        "want",
        "want_area",
        "weight",
    )

    def __init__(self, name: str, weight: float, now_ms: int) -> None:
        # Compiled classes lie in memory as this writes them: what each job asks for
        # comes first, as that of a million accounts is in no cache.
        self.group: Account = self
        """Itself, or the newcomers' account that speaks for it."""
        self.want = 0
        """What its ready and its running jobs want."""
        self.leased = 0
        self.mean_run_ms = 0.0
        """Of its newest jobs; 0 until one has ended."""
        self.since_ms = now_ms
        self.name = name
        self.weight = weight
        self.demand = 0
        """The want, averaged over some seconds."""
        self.used = 0
        """The slots it holds, averaged likewise."""
        self.at_ms = now_ms
        self.averaged_ms = now_ms
        self.want_area = 0
        self.leased_area = 0
        """What it wanted and held since it was averaged, times how long."""
        self.tenancies = 0
        """Lanes in which the tenant has a clock."""
        self.bucket = -1
        """Where its demand is counted; -1 while it has none."""
        self.over: list[tuple[int, int, Turn]] | None = None
        """Turns that were put over share, in the order in which they come back."""

    def push_over(self, turn: "Turn", number: int, now_ms: int) -> None:
        """Those that can still be in time come back first, soonest due before.

        The late ones come back newest first: none of them can be helped any more.
        """
        if self.over is None:
            self.over = []
        due_ms = turn.due_ms(now_ms)
        key = due_ms if due_ms > now_ms else _LATE - number
        heappush(self.over, (key, turn.number, turn))

    def pop_over(self, number: int, now_ms: int) -> "Turn":
        assert self.over
        while True:
            key, _, turn = heappop(self.over)
            if key > now_ms or not self.over:
                return turn
            # It was in time when it was put here, and no longer is.
            self.push_over(turn, number, now_ms)

    def ran(self, run_ms: int) -> None:
        """Learns from one more run; the newest eight or so make up the mean."""
        if self.mean_run_ms == 0.0:
            self.mean_run_ms = float(run_ms)
        else:
            self.mean_run_ms += (run_ms - self.mean_run_ms) / 8

    def note(self, now_ms: int) -> None:
        """To be called before its want changes: it was the same since `at_ms`."""
        passed_ms = now_ms - self.at_ms
        if passed_ms > 0:
            self.at_ms = now_ms
            self.want_area += self.want * passed_ms
            self.leased_area += self.leased * passed_ms

    def average(self, now_ms: int) -> None:
        """Brings demand and use up to date."""
        self.note(now_ms)
        passed_ms = now_ms - self.averaged_ms
        if passed_ms > 0:
            self.averaged_ms = now_ms
            span_ms = passed_ms + AVERAGE_MS
            self.demand += (self.want_area - self.demand * passed_ms) // span_ms
            used_area = self.leased_area * SLOT
            self.used += (used_area - self.used * passed_ms) // span_ms
            self.want_area = self.leased_area = 0


class WaterLevel:
    """Demand of all accounts, by demand per weight, so that a level costs O(1)."""

    __slots__ = ("_demand", "_weight")

    def __init__(self) -> None:
        self._demand = [0] * _BUCKETS
        self._weight = [0.0] * _BUCKETS

    def update(self, account: Account, now_ms: int) -> None:
        """Counts the account's demand as it is now."""
        self.drop(account)
        account.average(now_ms)
        bucket = _bucket_of(account.demand, account.weight)
        account.bucket = bucket
        if bucket >= 0:
            self._demand[bucket] += account.demand
            self._weight[bucket] += account.weight

    def drop(self, account: Account) -> None:
        bucket = account.bucket
        if bucket >= 0:
            self._demand[bucket] -= account.demand
            self._weight[bucket] -= account.weight
            account.bucket = -1

    def level(self, slots: int) -> float:
        """Fills from the least wanting up; what a bucket wants is served or shared."""
        left = float(max(slots, 1) * SLOT)
        weight = sum(self._weight)
        for demand, bucket_weight in zip(self._demand, self._weight, strict=True):
            if demand <= 0 or bucket_weight <= 0.0:
                continue
            level = left / max(weight, 1e-9)
            if demand > level * bucket_weight:
                return level / SLOT
            left -= demand
            weight -= bucket_weight
        return INFINITE


class Ledger:
    """All accounts, and the level that separates fair from over share."""

    def __init__(self, *, is_active: bool = True) -> None:
        self.is_active = is_active
        self.leased = 0
        """Worker slots in use, by tenants or not."""
        self.leased_without = 0
        """Of these, slots used by jobs without a tenant."""
        self.leased_over = 0
        """Of these, slots given to jobs whose tenant was over its share."""
        self.idle = 0
        """Worker slots for which a caller waits."""
        self.accounts: dict[str, Account] = {}
        self.nobody = Account("", 1.0, 0)
        self.newcomers = Account("", 1.0, 0)
        """Tenants first seen in danger are one tenant, so fresh names gain little."""
        self.over: dict[str, Account] = {}
        """Accounts with turns over share, in the order in which they got there."""
        self._water = WaterLevel()
        self._since: OrderedDict[str, int] = OrderedDict()
        self._known: tuple[dict[str, None], dict[str, None]] = ({}, {})
        self._known_since_ms = 0
        self.trusts_until_ms = 0
        """Whoever is seen before this was here before the partition was restored."""
        self._untouched = Untouched()
        self._level = INFINITE
        self._level_ms = -LEVEL_MS
        self._danger_until_ms = -1
        self._peak = 0
        self._peak_before = 0
        self._peak_since_ms = 0

    def account(self, name: str, weight: float, now_ms: int) -> Account:
        """The tenant's account; one not seen before starts among the newcomers."""
        account = self.accounts.get(name)
        if account is None:
            account = self.accounts[name] = Account(name, weight, now_ms)
            if self._is_known(name, now_ms):
                self._untouched.add(account)
            else:
                account.group = self.newcomers
                account.since_ms = self._since.setdefault(name, now_ms)
                if len(self._since) > NEWCOMERS_MAX:
                    self._since.popitem(last=False)
        return account

    def wants(self, account: Account, by: int, now_ms: int) -> None:
        """A job that wants `by` is ready, or, below 0, is so no more."""
        group = account.group
        if group is not account and now_ms - account.since_ms >= PROBATION_MS:
            self._prove(account, now_ms)
            group = account.group
        if now_ms - group.averaged_ms >= GRAIN_MS:
            self._water.update(group, now_ms)
        elif group.at_ms != now_ms:
            group.note(now_ms)
        account.want += by
        if group is not account:
            group.want += by

    def starts(self, account: Account, more: int, now_ms: int) -> None:
        """A job of the tenant has its slot now, and wants so much more than before."""
        group = account.group
        if group.at_ms != now_ms:
            group.note(now_ms)
        account.want += more
        account.leased += 1
        if group is not account:
            group.want += more
            group.leased += 1

    def ends(self, account: Account, want: int, now_ms: int) -> None:
        """A job of the tenant that wanted so much gave its slot back."""
        group = account.group
        if group.at_ms != now_ms:
            group.note(now_ms)
        account.want -= want
        account.leased -= 1
        if group is not account:
            group.want -= want
            group.leased -= 1

    def set_weight(self, account: Account, weight: float, now_ms: int) -> None:
        """Its share changes; newcomers share one weight whatever theirs are."""
        self._water.drop(account)
        account.weight = weight
        if account.group is account:
            self._water.update(account, now_ms)

    def forget(self, account: Account) -> None:
        """Nothing of the tenant is left: its account goes, its name is kept a while."""
        if account.tenancies == 0 and account.want == 0 and account.leased == 0:
            self._water.drop(account)
            if self.accounts.pop(account.name, None) is None:
                return
            if account.group is account:
                # Else a cycle, which only the collector would find.
                account.group = self.nobody
                self._untouched.one_is_gone()

    def slots(self, now_ms: int) -> int:
        """Worker slots there seem to be: the most that was busy or waiting lately."""
        seen = self.leased + self.idle
        if now_ms - self._peak_since_ms > SLOTS_MS:
            self._peak_before, self._peak = self._peak, seen
            self._peak_since_ms = now_ms
        self._peak = seen if seen > self._peak else self._peak
        # No `max`: compiled it makes objects of them, several times for each start.
        most = self._peak if self._peak > self._peak_before else self._peak_before
        return most or 1

    def saw_danger(self, now_ms: int) -> None:
        """A job starts that has waited past half of its aim."""
        self._danger_until_ms = now_ms + DANGER_MS

    def is_danger(self, now_ms: int) -> bool:
        return self.is_active and now_ms < self._danger_until_ms

    def owes_over(self, now_ms: int) -> bool:
        """Whether those over share hold less than the part kept for them.

        Counted in slots and not in starts: 2 % of starts could be all of the time.
        """
        return self.leased_over * defaults.OVER_SHARE_STARTS <= self.slots(now_ms)

    def is_over(self, account: Account, now_ms: int) -> bool:
        """Whether one more start would put the tenant above its level."""
        if now_ms >= self._danger_until_ms or not self.is_active:
            return False
        group = account.group
        allowed = self.level(now_ms) * group.weight
        if allowed >= self.slots(now_ms) - 1:
            # One that may have every slot shares with nobody.
            return False
        if group.leased >= allowed:
            return True
        if allowed > COARSE_SLOTS:
            return False
        # A part of a slot is one slot for a part of the time.
        self._water.update(group, now_ms)
        return group.used > allowed * SLOT

    def level(self, now_ms: int) -> float:
        """Slots per weight that everyone may have."""
        if now_ms - self._level_ms >= LEVEL_MS:
            self._level_ms = now_ms
            self._refresh(now_ms)
            self._level = self._water.level(self.slots(now_ms) - self.leased_without)
        return self._level

    def _leave_newcomers(self, account: Account, now_ms: int) -> None:
        group = account.group
        self._water.update(group, now_ms)
        group.want -= account.want
        group.leased -= account.leased
        account.group = account
        account.at_ms = account.averaged_ms = now_ms
        account.want_area = account.leased_area = 0
        self._known[0][account.name] = None
        self._since.pop(account.name, None)
        self._water.update(account, now_ms)
        self._untouched.add(account)

    def _refresh(self, now_ms: int) -> None:
        """Averages move on even where nothing happens: the longest untouched first."""
        self._water.update(self.newcomers, now_ms)
        for account in self._untouched.some():
            self._water.update(account, now_ms)

    def _prove(self, account: Account, now_ms: int) -> None:
        """Long here, and not only while promises were in danger: it stands for itself."""
        is_calm = now_ms >= self._danger_until_ms + CALM_MS
        if is_calm or now_ms - account.since_ms >= PROBATION_MAX_MS:
            self._leave_newcomers(account, now_ms)

    def _is_known(self, name: str, now_ms: int) -> bool:
        if now_ms - self._known_since_ms > KNOWN_MS:
            self._known = ({}, self._known[0])
            self._known_since_ms = now_ms
        new, old = self._known
        if now_ms < self.trusts_until_ms or name in old:
            new[name] = None
            return True
        return name in new


def want_of(run_ms: float, aim_ms: int) -> int:
    """What a ready job wants: slots enough to be served within its aim."""
    wanted = int(SLOT * (run_ms or RUN_MS) / float(aim_ms or 1))
    if wanted > SLOT:
        return SLOT
    return wanted or 1


def _bucket_of(demand: int, weight: float) -> int:
    """Accounts of like demand per weight stand together; -1 has none."""
    if demand <= 0:
        return -1
    ratio = int(demand / weight) or 1
    bits = ratio.bit_length()
    fine = (ratio >> (bits - 3)) & (_STEPS - 1) if bits > 2 else 0
    return min(bits * _STEPS + fine, _BUCKETS - 1)
