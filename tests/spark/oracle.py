"""What every gold table must say, asked of the raw events in SQL of its own.

Moments are milliseconds here. Sketches are held against the exact quantiles apart.
"""

from pathlib import Path
from typing import Any

import duckdb

from headway.core import capacity

HOUR_MS, MINUTE_MS = 3_600_000, 60_000

BASE = """
create view e as {events};

create view ends as select * from e
where type in ('ack', 'cancel', 'bury', 'expire') or (type = 'reply' and is_done);

create table tries as
select l.partition, l.seq, l.generation, l.queue, l.slo_ms, l.tenant, l.kind,
       l.at_ms as began, o.at_ms as over, o.at_ms - l.at_ms as took, o.type as how
from e l join e o on o.partition = l.partition and o.token = l.token
where l.type = 'lease' and o.token > 0 and o.type <> 'lease';

create table begins as
select queue, slo_ms, run_at_ms as ready from e
where type in ('enqueue', 'retry', 'reschedule')
union all
select queue, slo_ms, at_ms from e where type = 'redrive'
union all
select queue, slo_ms, at_ms from e where type = 'reply' and not is_done;

create table gone as
select queue, slo_ms, unstarted_ms as ready from e where unstarted_ms > 0;

create table starts as
select queue, slo_ms, tenant, at_ms, wait_ms, held_ms,
       at_ms - wait_ms - held_ms as ready
from e where type = 'lease' and not is_again;

create table told as
select queue, tenant, at_ms, number, weight from e
where type = 'enqueue' and weight is not null
union all
select queue, what[8:], at_ms, number, coalesce((rule->>'weight')::double, 1)
from e where type = 'rule' and starts_with(what, 'tenant ');

create table arrivals as
select queue, slo_ms, tenant, at_ms, cost from e where type in ('enqueue', 'redrive');

create table seen as
select distinct queue, tenant, at_ms // 3600000 * 3600000 as hour from (
    select queue, tenant, at_ms from arrivals
    union all select queue, tenant, at_ms from starts
    union all select queue, tenant, at_ms from ends
    union all select queue, tenant, over from tries
    union all select queue, tenant, at_ms from told
    union all select queue, what[8:], at_ms from e
    where type = 'rule' and starts_with(what, 'tenant ')
);

create table limits as
select queue, "limit" as limit_name, "value" as limit_value,
    minute_ms + 60000 * unnest(range(minutes)) as minute, capacity, highest,
    used_ms, stops, blocked_ms, full_ms, parts
from e where type = 'limit';

create table fair as
select s.queue, s.tenant, s.hour,
    (select count(*) from arrivals a where a.queue = s.queue and a.tenant = s.tenant
        and a.at_ms // 3600000 * 3600000 = s.hour) as arrivals,
    (select coalesce(sum(cost), 0)::bigint from arrivals a where a.queue = s.queue
        and a.tenant = s.tenant and a.at_ms // 3600000 * 3600000 = s.hour)
        as arrival_cost,
    (select count(*) from starts a where a.queue = s.queue and a.tenant = s.tenant
        and a.at_ms // 3600000 * 3600000 = s.hour) as starts,
    (select count(*) from starts a where a.queue = s.queue and a.tenant = s.tenant
        and a.at_ms // 3600000 * 3600000 = s.hour and wait_ms > slo_ms) as misses,
    (select coalesce(sum(wait_ms), 0)::bigint from starts a where a.queue = s.queue
        and a.tenant = s.tenant and a.at_ms // 3600000 * 3600000 = s.hour) as wait_ms,
    (select coalesce(sum(took), 0)::bigint from tries a where a.queue = s.queue
        and a.tenant = s.tenant and a.over // 3600000 * 3600000 = s.hour) as run_ms,
    coalesce((select arg_max(weight, number) from told t where t.queue = s.queue
        and t.tenant = s.tenant and t.at_ms < s.hour + 3600000), 1) as weight
from seen s;

create table parts as
select *, arrivals > 0 or starts > 0 or run_ms > 0 as is_active,
    run_ms / nullif((select sum(run_ms) from fair b
        where (a.queue, a.hour) = (b.queue, b.hour)), 0) as run_share
from fair a;

create table fairness as
select *, case when is_active then weight else 0 end / nullif(
    (select sum(weight) from parts b where b.is_active
        and (a.queue, a.hour) = (b.queue, b.hour)), 0) as entitled_share
from parts a;

create table balance as
select *, entitled_share * (select sum(run_ms) from fairness b
    where (a.queue, a.hour) = (b.queue, b.hour)) - run_ms as lack
from fairness a where is_active;
"""

QUERIES = {
    "gold.promises": """
select queue, slo_ms, (ready + slo_ms) // 60000 * 60000 as minute, minute as at,
    count(*) filter (what = 'due') as due, count(*) filter (what = 'met') as met,
    count(*) filter (what = 'late') as late,
    count(*) filter (what = 'withdrawn') as withdrawn
from (
    select queue, slo_ms, ready, 'due' as what from begins
    union all select queue, slo_ms, ready, 'withdrawn' from gone
    union all select queue, slo_ms, ready,
        case when wait_ms > slo_ms then 'late' else 'met' end from starts
) group by all""",
    "gold.waits": """
select queue, slo_ms, at_ms // 60000 * 60000 as minute, minute as at,
    count(*) as starts, sum(wait_ms)::bigint as wait_ms,
    sum(held_ms)::bigint as held_ms, max(wait_ms) as longest_ms
from starts group by all""",
    "gold.runs": """
select queue, kind, over // 3600000 * 3600000 as hour, hour as at, how as "end",
    count(*) as attempts, sum(took)::bigint as run_ms, max(took) as longest_ms
from tries group by all""",
    "gold.load": """
select queue, slo_ms, moment // 3600000 * 3600000 as hour, hour as at,
    count(*) filter (what = 'arrival') as arrivals,
    coalesce(sum(amount) filter (what = 'arrival'), 0)::bigint as arrival_cost,
    count(*) filter (what = 'start') as starts,
    count(*) filter (what = 'end') as ends,
    count(*) filter (what = 'try') as attempts,
    coalesce(sum(amount) filter (what = 'try'), 0)::bigint as run_ms,
    ((hour // 3600000) + 72) % 168 as hour_of_week
from (
    select queue, slo_ms, at_ms as moment, 'arrival' as what, cost as amount
    from arrivals
    union all select queue, slo_ms, at_ms, 'start', 0 from starts
    union all select queue, slo_ms, at_ms, 'end', 0 from ends
    union all select queue, slo_ms, over, 'try', took from tries
) group by all""",
    "gold.fairness": "select *, hour as at from fairness",
    "gold.fairness_index": """
select queue, hour, hour as at, count(*) as tenants,
    count(*) filter (run_ms > 0) as served, sum(run_ms)::bigint as run_ms,
    case when sum(run_ms) > 0 then
        pow(sum(run_share / weight), 2) / (count(*) * sum(pow(run_share / weight, 2)))
    end as jain
from fairness where is_active group by all""",
    "gold.displacement": """
select a.queue, a.hour, a.hour as at, a.tenant as displaced, b.tenant as displacing,
    a.lack * b.lack / (select sum(c.lack) from balance c
        where (c.queue, c.hour) = (a.queue, a.hour) and c.lack < 0) as displaced_ms
from balance a join balance b on (a.queue, a.hour) = (b.queue, b.hour)
where a.lack > 0 and b.lack < 0 and a.misses > 0 and displaced_ms >= 0.001""",
    "gold.weights": """
select queue, tenant, 0 as at, arg_max(weight, number) as weight
from told group by queue, tenant""",
    "gold.failures": """
select queue, kind, type as what, case type when 'lose' then 'lease lost'
        when 'expire' then 'expired' else reason end as reason,
    line as error, at_ms // 3600000 * 3600000 as hour, hour as at,
    count(*) as failures, min(at_ms) as first_at, max(at_ms) as last_at,
    min(text[:1000]) as sample,
    count(distinct (partition, seq, generation)) as jobs
from e where type in ('retry', 'bury', 'lose', 'expire') group by all""",
    "gold.replies": r"""
select queue, kind, regexp_extract(reply_key, '^\p{L}*') as partner,
    at_ms // 3600000 * 3600000 as hour, hour as at,
    count(*) filter (type = 'wait') as waits,
    count(*) filter (type = 'reply') as replies,
    count(*) filter (type = 'reply' and is_early) as early,
    count(*) filter (reason = 'no reply') as timeouts,
    count(*) filter (fate = 'early') as kept_early,
    count(*) filter (fate = 'repeated') as repeated,
    count(*) filter (fate = 'late') as late,
    coalesce(sum(waited_ms), 0)::bigint as answer_ms, max(waited_ms) as longest_ms
from e where type in ('wait', 'reply', 'reply_kept') or reason = 'no reply'
group by all""",
    "gold.schedules": """
with ticks as (select * from e where type = 'tick'),
begun as (
    select t.queue, t.schedule, t.tick_ms,
        (select min(at_ms) from e l where l.type = 'lease' and l.seq = t.seq
            and l.partition = t.partition and l.generation = 0) - t.tick_ms as late
    from ticks t join ends o on o.seq = t.seq and o.partition = t.partition
        and o.generation = 0
    where t.seq > 0
),
days as (
    select queue, schedule, tick_ms // 86400000 * 86400000 as at, count(*) as ticks,
        count(*) filter (seq = 0) as skipped,
        sum(at_ms - tick_ms)::bigint as tick_late_ms,
        max(at_ms - tick_ms) as tick_latest_ms
    from ticks group by all
)
select d.*, count(late) as starts, coalesce(sum(late), 0)::bigint as start_late_ms,
    max(late) as start_latest_ms
from days d left join begun b on (b.queue, b.schedule) = (d.queue, d.schedule)
    and b.tick_ms // 86400000 * 86400000 = d.at
group by all""",
    "gold.costs": """
with took as (
    select partition, seq, generation, count(*) as leases, sum(took) as took
    from tries group by all
)
select o.tenant, o.queue, o.at_ms // 86400000 * 86400000 as at, count(*) as jobs,
    count(*) filter (o.type in ('ack', 'reply')) as done,
    coalesce(sum(leases), 0)::bigint as attempts,
    coalesce(sum(took), 0)::bigint as run_ms, count(n.cost) as priced,
    coalesce(sum(n.cost), 0)::bigint as cost,
    coalesce(sum(n.cost * coalesce(took, 0)), 0)::bigint as cost_run_ms
from ends o
left join took t on (t.partition, t.seq, t.generation)
    = (o.partition, o.seq, o.generation)
left join e n on n.type = 'enqueue' and (n.partition, n.seq, n.generation)
    = (o.partition, o.seq, o.generation)
group by all""",
    "gold.limits": """
select queue, limit_name, limit_value, minute, minute as at,
    max(capacity) as capacity, max(highest) as highest,
    sum(used_ms)::bigint as used_ms, sum(stops)::bigint as stops,
    sum(blocked_ms)::bigint as blocked_ms, sum(full_ms)::bigint as full_ms,
    case when max(capacity) > 0
        then sum(used_ms) / (max(capacity) * 60000.0::double) end as used_share
from limits group by all""",
    "gold.limit_tenants": """
with parts as (
    select * exclude parts, unnest(parts::json[]) as part from limits
)
select queue, limit_name, limit_value, part->>0 as tenant, minute, minute as at,
    sum((part->>1)::bigint)::bigint as used_ms,
    sum((part->>2)::bigint)::bigint as stops,
    sum((part->>3)::bigint)::bigint as blocked_ms
from parts group by all""",
    "gold.demand": """
select queue, slo_ms, moment // 60000 * 60000 as minute, minute as at,
    sum(ready)::bigint as ready, count(took) as attempts,
    coalesce(sum(took), 0)::bigint as run_ms,
    coalesce(sum(took::double * took), 0) as run_sq_ms
from (
    select queue, slo_ms, ready as moment, 1 as ready, null::bigint as took from begins
    union all select queue, slo_ms, ready, -1, null from gone
    union all select queue, slo_ms, over, 0, took from tries
) group by all""",
}
"""By table; `at` is the day, or any moment of it."""


def dumped(file: Path) -> str:
    """The events of a dump."""
    return f"select * from read_parquet('{file}')"


class Oracle:
    """Answers for the events of one query."""

    def __init__(self, events: str) -> None:
        self.base = duckdb.connect()
        self.base.execute(BASE.replace("{events}", events))

    def rows(self, table: str) -> list[dict[str, Any]]:
        if table == "gold.advice":
            return list(self._advice())
        found = self.base.execute(QUERIES[table])
        names = [one[0] for one in found.description]
        return [_filed(dict(zip(names, row, strict=True))) for row in found.fetchall()]

    def rank(self, values: str, where: str, value: int) -> tuple[float, float]:
        """The parts of the values that are less, and not greater, than this one."""
        found = self.base.execute(
            f"select avg(({values} < {value})::int), avg(({values} <= {value})::int)"
            f" from {where}"
        ).fetchone()
        assert found is not None
        less, not_greater = found
        return less, not_greater

    def close(self) -> None:
        self.base.close()

    def _advice(self) -> Any:
        minutes: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in self.rows("gold.demand"):
            hour = row["minute"] // HOUR_MS * HOUR_MS
            minutes.setdefault((row["queue"], hour), []).append(row)
        for (queue, hour), rows in minutes.items():
            yield _filed({"queue": queue, "hour": hour, **_advised(queue, hour, rows)})


def _advised(queue: str, hour: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The worst minute, found the long way."""
    slos = sorted({row["slo_ms"] for row in rows})
    sums = {
        slo: [
            sum(row[name] for row in rows if row["slo_ms"] == slo)
            for name in ("attempts", "run_ms", "run_sq_ms")
        ]
        for slo in slos
    }
    means = {
        slo: run / attempts if run else 1_000.0
        for slo, (attempts, run, _) in sums.items()
    }
    offered: dict[int, float] = {}
    tried = []
    for at in range(hour, hour + HOUR_MS, MINUTE_MS):
        here = [row for row in rows if row["minute"] == at]
        offered[at] = sum(row["ready"] * means[row["slo_ms"]] / 1_000 for row in here)
        if not any(row["ready"] for row in here):
            continue
        lanes = []
        for slo in slos:
            span_ms = min(max(slo // MINUTE_MS, 1), 60) * MINUTE_MS
            count = sum(
                row["ready"]
                for row in rows
                if row["slo_ms"] == slo and at - span_ms < row["minute"] <= at
            )
            attempts, run, squares = sums[slo]
            lane = capacity.LaneFigures(
                queue=queue,
                slo_ms=slo,
                per_s=max(count, 0) * 1_000 / span_ms,
                run_ms=run / attempts if attempts else 0.0,
                run_sq_ms=squares / attempts if attempts else 0.0,
            )
            lanes.append(lane)
        queues = (capacity.QueueFigures(name=queue),)
        figures = capacity.Figures(lanes=tuple(lanes), queues=queues)
        tried.append((at, capacity.wanted(figures)))
    most = max((wanted.slots for _, wanted in tried), default=0)
    minute, reason = next(
        ((at, one.reason) for at, one in tried if one.slots == most),
        (hour, "nothing became ready"),
    )
    return {
        "at": hour,
        "ready": sum(row["ready"] for row in rows),
        "busy_s": sum(run for _, run, _ in sums.values()) / 1_000,
        "offered_s": sum(offered.values()),
        "peak_s": max(offered.values()),
        "workers": most,
        "minute": minute,
        "reason": reason,
    }


def _filed(row: dict[str, Any]) -> dict[str, Any]:
    row["day"] = row.pop("at") // (24 * HOUR_MS)
    return row
