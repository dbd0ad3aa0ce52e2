"""The rules of one queue as they are now: what sorts its jobs and what they cost."""

from typing import Any, Final

from headway.core import defaults
from headway.core.config import FairBy, Order, QueueConfig, Shares
from headway.core.errors import NoShare
from headway.core.fairness import TenantRule
from headway.core.gauge_book import GaugeBook
from headway.core.job import Job
from headway.core.limits import Gauge, dimension
from headway.core.spec import JobSpec

_BIAS: Final = 1 << 50
"""Makes every priority and time positive, so that ranks compare as their parts."""


class KindRule:
    """What holds for one kind of a queue, and what is known of it."""

    __slots__ = ("cap", "cost", "is_paused", "mean_run_ms")

    def __init__(self) -> None:
        self.cost: int | None = None
        self.cap: int | None = None
        self.is_paused = False
        self.mean_run_ms = 0.0
        """0 until one has run."""

    def ran(self, run_ms: int) -> None:
        """Learns from one more run; the newest sixteen or so make up the mean."""
        if self.mean_run_ms == 0.0:
            self.mean_run_ms = float(run_ms)
        else:
            self.mean_run_ms += (run_ms - self.mean_run_ms) / 16


class Rules:
    """Configuration, and what was said of single kinds and tenants."""

    def __init__(
        self, config: QueueConfig, *, has_fairness: bool = True, since_ms: int = 0
    ) -> None:
        self._has_fairness = has_fairness
        self.kinds: dict[str, KindRule] = {}
        self.tenants: dict[str, TenantRule] = {}
        self.plain = TenantRule("")
        """Shared by all tenants of whom nothing was said."""
        self.book = GaugeBook(since_ms)
        self._sorts: tuple[object, ...] = ()
        self.shape = 0
        """Raised when jobs may have to be sorted into other strands."""
        self.config = config
        self.windows_ms = 0
        """Since when its windows are what they are."""
        self._opened_ms = self._closes_ms = 0
        """From when to when they are known to be open."""
        self.apply(config, 0)

    def apply(self, config: QueueConfig, now_ms: int) -> None:
        """Takes a new configuration; what runs keeps the units it has taken."""
        if config.windows != self.config.windows:
            self.windows_ms = now_ms
        self.config = config
        # What is asked for each job. As a field of the record it costs ten times as much.
        self.priority = config.priority
        self.cost = config.cost
        self.attempts_max = config.attempts_max
        self.lifetime_ms = config.lifetime_ms
        self.timeout_ms = config.timeout_ms
        self.lease_ms = config.lease_ms
        self.slo_ms = config.slo_ms
        self.windows = config.windows
        self.floor = config.floor
        self.slot_share = config.slot_share
        self.has_throttler = config.has_throttler
        self._opened_ms = self._closes_ms = 0
        self.is_fair = self._has_fairness and config.order is Order.FAIR
        self.is_one_lane = config.order in (Order.TIME, Order.PRIORITY)
        self.is_by_time = config.fair_by is FairBy.TIME
        self._is_by_priority = config.order in (Order.FAIR, Order.PRIORITY)
        self.is_levelled = config.order is Order.LEVELS
        self.is_by_run_at = config.order is Order.TIME
        limits = config.limits
        self.book.update(limits, now_ms)
        self.gauges = tuple(
            self.book.gauge(limit, "") for limit in limits if dimension(limit) is None
        )
        # Without turns of their own, tenants are told apart by strands.
        whole = (None, "tenant") if self.is_fair else (None,)
        self.strand_limits = [x for x in limits if dimension(x) not in whole]
        self.shares = [x for x in self.strand_limits if isinstance(x, Shares)]
        self.tenant_limits = [
            x for x in limits if self.is_fair and dimension(x) == "tenant"
        ]
        self.reshape()

    def reshape(self) -> None:
        """Jobs are sorted by these from now on, at the latest when at the head."""
        dims = {str(dimension(limit)) for limit in self.strand_limits}
        if any(rule.is_paused or rule.cap is not None for rule in self.kinds.values()):
            dims.add("kind")
        if not self.is_fair and any(
            rule.holds or rule.cap is not None for rule in self.tenants.values()
        ):
            dims.add("tenant")
        self.dims = tuple(sorted(dims))
        caps = [(name, kind.cap) for name, kind in self.kinds.items()]
        if not self.is_fair:
            caps += [(name, tenant.cap) for name, tenant in self.tenants.items()]
        config = self.config
        sorts: tuple[object, ...] = (
            self.dims,
            caps,
            config.limits,
            config.windows,
            config.order,
        )
        if sorts != self._sorts:
            self._sorts = sorts
            self.shape += 1
        for rule in self.tenants.values():
            self.regauge(rule)

    def regauge(self, rule: TenantRule) -> None:
        """Its cap, or a limit per tenant, has changed."""
        gauges = [self.book.gauge(limit, rule.name) for limit in self.tenant_limits]
        if rule.cap is not None:
            gauges.append(self.book.cap("tenant", rule.name, rule.cap))
        had, rule.gauges = rule.gauges, tuple(gauges)
        self.book.join(rule.gauges)
        self.book.leave(had)

    def kind(self, name: str) -> KindRule:
        rule = self.kinds.get(name)
        if rule is None:
            rule = self.kinds[name] = KindRule()
        return rule

    def tenant(self, name: str) -> TenantRule:
        """The rule of its own that a tenant gets when something is said of it."""
        rule = self.tenants.get(name)
        if rule is None:
            rule = self.tenants[name] = TenantRule(name)
            self.regauge(rule)
        return rule

    def rule_of(self, tenant: str) -> TenantRule:
        if not self.is_fair:
            return self.plain
        rule = self.tenants.get(tenant)
        if rule is not None:
            return rule
        return self.tenant(tenant) if self.tenant_limits else self.plain

    def forget_tenant(self, rule: TenantRule) -> None:
        """Drops a rule that says nothing but what its limits say for everyone."""
        is_plain = rule.cap is None and rule.weight == 1.0 and not rule.holds
        if is_plain and not rule.held_ms and not any(g.used for g in rule.gauges):
            self.tenants.pop(rule.name, None)
            self.book.leave(rule.gauges)

    def opens_ms(self, at_ms: int) -> int:
        """`at_ms`, or the next moment after it at which the queue's window is open."""
        windows = self.windows
        if windows is None or self._opened_ms <= at_ms < self._closes_ms:
            return at_ms
        opens_ms = windows.opens_ms(at_ms)
        if opens_ms == at_ms:
            self._opened_ms = at_ms
            self._closes_ms = windows.closes_ms(at_ms)
        return opens_ms

    def strand_key(self, spec: JobSpec) -> tuple[Any, ...]:
        """What stops a job together with others: its windows and limited values."""
        windows = spec.windows if spec.windows is not None else self.windows
        dims = self.dims
        if not dims:
            return () if windows is None else (windows,)
        if len(dims) == 1:
            return windows, value_of(dims[0], spec)
        return (windows, *(value_of(dim, spec) for dim in self.dims))

    def strand_gauges(self, key: tuple[Any, ...]) -> tuple[Gauge, ...]:
        values = dict(zip(self.dims, key[1:], strict=False))
        gauges = [
            self.book.gauge(limit, values[str(dimension(limit))])
            for limit in self.strand_limits
        ]
        kind = self.kinds.get(values.get("kind", ""))
        if kind is not None and kind.cap is not None:
            gauges.append(self.book.cap("kind", values["kind"], kind.cap))
        if "tenant" in values:
            tenant = self.tenants.get(values["tenant"])
            if tenant is not None and tenant.cap is not None:
                gauges.append(self.book.cap("tenant", tenant.name, tenant.cap))
        return tuple(gauges)

    def key_of(self, job: Job) -> tuple[int, int]:
        """The order of jobs within their turn."""
        if self._is_by_priority:
            return job.priority, job.run_at_ms
        if self.config.order is Order.TIME:
            return job.run_at_ms, job.priority
        return job.level, 0

    def rank_of(self, job: Job) -> int:
        """The job's place among all of a queue that has one order, as one number."""
        first, second = self.key_of(job)
        return ((first + _BIAS) << 128) + ((second + _BIAS) << 64) + job.seq


def charge_of(rules: Rules, job: Job) -> int:
    """What a start costs its tenant where run time is what counts."""
    return max(1, round(rules.kind(job.kind).mean_run_ms))


def check_shares(rules: Rules, spec: JobSpec) -> None:
    """Refuses a job that no share could ever let start."""
    if spec.is_critical:
        return
    for limit in rules.shares:
        value = value_of(limit.by, spec)
        if limit.percent.get(value):
            continue
        if rules.book.gauge(limit, value).max == 0 and limit.max > 0:
            raise NoShare(f"{limit.by}={value} has no share of limit {limit.name}")


def margin_ms(config: QueueConfig, slo_ms: int, start_cost_ms: int) -> int:
    """How long before it is due a job is to be started."""
    if config.margin_ms is not None:
        return min(config.margin_ms, slo_ms)
    wanted = max(slo_ms // defaults.MARGIN_SHARE, start_cost_ms)
    return min(wanted, slo_ms // 2)


def value_of(dim: str, spec: JobSpec) -> str:
    """What a job is, by "kind", "tenant" or the name of a label."""
    if dim == "kind":
        return spec.kind
    if dim == "tenant":
        return spec.tenant
    return "" if spec.labels is None else spec.labels.get(dim, "")
