"""A search as one statement: ranges of one index, in its order, from a place on.

The statements are put together from the words below and nothing else; a test reads the
query plan of each.
"""

from typing import Final, NamedTuple

from headway.core.errors import BadValue
from headway.search import statements as sql
from headway.search.query import By, Search
from headway.search.rows import DEAD
from headway.search.schema import CODES, STATES

Value = str | int
Values = dict[str, Value]

BEFORE_ALL: Final = 0
AFTER_ALL: Final = 2**62


class Path(NamedTuple):
    """An index, and how a search goes along it."""

    source: str
    equal: str
    key: str
    """What orders the jobs; every one has its own."""
    has_states: bool = False
    """Each state is a range of its own, and the ranges are merged."""


ALL: Final = Path("jobs NOT INDEXED", "", "jobs.seq")
LABEL: Final = Path(
    "labels CROSS JOIN jobs ON jobs.seq = labels.seq",
    "labels.name = :name0 AND labels.value = :value0",
    "labels.seq",
)
WORKER: Final = Path(
    "jobs INDEXED BY jobs_of_worker", "worker = :worker AND worker <> ''", "jobs.seq"
)
REASON: Final = Path(
    "jobs INDEXED BY jobs_of_reason", "reason = :reason AND reason <> ''", "jobs.seq"
)
TENANT: Final = Path(
    "jobs INDEXED BY jobs_of_tenant",
    "queue = :queue AND tenant = :tenant AND tenant <> ''",
    "jobs.seq",
)
KIND: Final = Path(
    "jobs INDEXED BY jobs_of_kind",
    "queue = :queue AND kind = :kind AND kind <> ''",
    "jobs.seq",
)
QUEUE: Final = Path(
    "jobs INDEXED BY jobs_of_queue", "queue = :queue", "jobs.seq", has_states=True
)
CHANGED_IN_QUEUE: Final = Path(
    "jobs INDEXED BY jobs_by_change", "queue = :queue", "jobs.changed", has_states=True
)
CHANGED: Final = Path(
    "jobs INDEXED BY jobs_by_state", "", "jobs.changed", has_states=True
)
GROUP: Final = Path(
    "jobs INDEXED BY jobs_in_group",
    "group_id = :group AND group_id > 0",
    "jobs.changed",
)


class Plan(NamedTuple):
    statement: str
    values: Values


def path_of(search: Search) -> Path:
    """The index that leaves the least to be looked at."""
    if search.by is By.CHANGED:
        if search.group is not None:
            return GROUP
        return CHANGED if search.queue is None else CHANGED_IN_QUEUE
    if search.labels:
        return LABEL
    if search.worker:
        return WORKER
    if search.reason:
        return REASON
    if search.queue is not None:
        if search.tenant:
            return TENANT
        return KIND if search.kind else QUEUE
    if search.states or search.group is not None:
        given = "group" if search.group is not None else "states"
        rule = "in the order of enqueue these need a queue"
        raise BadValue(given, getattr(search, given), rule)
    return ALL


def plan(search: Search, low: int, high: int) -> Plan:
    """Jobs whose key lies between, and is neither; one more than the page holds."""
    path = path_of(search)
    values: Values = {"low": low, "high": high, "limit": search.limit + 1}
    rest = _filters(search, path, values)
    states = _states(search)
    if path.has_states:
        for number, code in enumerate(states):
            values[f"state{number}"] = code
        arms = [
            _arm(path, [f"jobs.state = :state{number}", *rest])
            for number in range(len(states))
        ]
    else:
        if len(states) < len(STATES):
            values["states"] = sum(1 << code for code in states)
            rest.append("(1 << jobs.state) & :states")
        arms = [_arm(path, rest)]
    direction = " DESC" if search.is_newest_first else ""
    key = path.key if len(arms) == 1 else path.key.partition(".")[2]
    order = f" ORDER BY {key}{direction} LIMIT :limit"
    return Plan(" UNION ALL ".join(arms) + order, values)


def key_of(search: Search, seq: int, changed: int) -> int:
    return changed if search.by is By.CHANGED else seq


def _arm(path: Path, filters: list[str]) -> str:
    within = f"{path.key} > :low AND {path.key} < :high"
    terms = [term for term in (path.equal, within, *filters) if term]
    where = " AND ".join(terms)
    return f"SELECT {sql.COLUMNS} FROM {path.source} WHERE {where}"  # noqa: S608


def _states(search: Search) -> list[int]:
    if search.group is not None:
        return [DEAD]
    named = {CODES[state] for state in search.states}
    return sorted(named) or list(range(len(STATES)))


def _filters(search: Search, path: Path, values: Values) -> list[str]:
    """What the index does not see to; that it is said twice does no harm."""
    terms = []
    for key in ("queue", "tenant", "kind", "worker", "reason"):
        wanted = getattr(search, key)
        if wanted is not None:
            values[key] = wanted
            terms.append(f"jobs.{key} = :{key}")
    if search.error:
        values["error"] = search.error
        values["error_end"] = search.error + "\U0010ffff"
        terms.append("jobs.error >= :error AND jobs.error < :error_end")
    if search.group is not None:
        values["group"] = search.group
        terms.append("jobs.group_id = :group")
    for number, (name, value) in enumerate(sorted(search.labels.items())):
        values[f"name{number}"] = name
        values[f"value{number}"] = value
        if number or path is not LABEL:
            terms.append(
                f"EXISTS (SELECT 1 FROM labels AS label{number}"  # noqa: S608
                f" WHERE label{number}.name = :name{number}"
                f" AND label{number}.value = :value{number}"
                f" AND label{number}.seq = jobs.seq)"
            )
    return terms + _times(search, values)


def _times(search: Search, values: Values) -> list[str]:
    """Times of jobs of which nobody knows when they came are in no range."""
    column = f"jobs.{search.by}_ms"
    since_ms, until_ms = search.since_ms, search.until_ms
    terms = []
    if since_ms is not None or until_ms is not None:
        values["since"] = max(since_ms or 0, 1)
        terms.append(f"{column} >= :since")
    if until_ms is not None:
        values["until"] = until_ms
        terms.append(f"{column} < :until")
    return terms
