"""Whole lives: jobs that begin and end in the events of one task.

Most jobs are over soon after they came, so that one task has all events of theirs. It
makes their rows of silver.jobs and silver.attempts itself, a column at a time. Every
other job, and every one that is odd in any way, is left to what joins the events of
several tasks and batches (`silver`), and to the gates there: what is here must come out
as it would there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from headway.spark.columns import EVENTS, arrow_schema
from headway.spark.columns_silver import ATTEMPTS, JOBS, KEYS

Numbers = Any
"""An array of whole numbers; how numpy types it differs from version to version."""
Flags = Any
"""One of yes and no."""

TYPES: Final = (
    "enqueue",
    "redrive",
    "promote",
    "reschedule",
    "lease",
    "extend",
    "cancel_request",
    "wait",
    "reply",
    "retry",
    "release",
    "lose",
    "ack",
    "cancel",
    "bury",
    "expire",
)
"""Of events that belong to a job's life."""
_CODES: Final = {name: code for code, name in enumerate(TYPES)}
_OUTCOMES: Final = {
    "ack": "done",
    "reply": "done",
    "cancel": "cancelled",
    "bury": "dead",
    "expire": "expired",
}
_REASONS: Final = {"lose": "lease lost", "expire": "expired"}
_GENERATIONS: Final = 1 << 12
_JOBS_MAX: Final = 1 << 50
_NUMBERS: Final = ("event", "at_ms", "token", "attempt", "slo_ms", "run_at_ms")
_WAITS: Final = ("wait_ms", "held_ms", "waited_ms")
_TAKEN: Final = ("priority", "cost", "weight", "labels", "schedule", "tick_ms")
_TAKEN_TEXTS: Final = ("worker", "reason", "text", "is_again", "is_done", "type")
_USED: Final = list(dict.fromkeys((*KEYS, *_NUMBERS, *_WAITS, *_TAKEN, *_TAKEN_TEXTS)))
_EVENTS: Final = arrow_schema(EVENTS)
_JOBS: Final = arrow_schema(JOBS)
_ATTEMPTS: Final = arrow_schema(ATTEMPTS)


class Lives(NamedTuple):
    jobs: pa.Table
    """Rows of silver.jobs."""
    attempts: pa.Table
    """Rows of silver.attempts, of the same jobs."""
    rest: pa.Table
    """The events of all other jobs."""


def lives(
    by_type: Mapping[str, Sequence[pa.RecordBatch]], before: pa.Table | None = None
) -> Lives:
    """What the events tell, by type, of one partition and in the order of history.

    `before` is the rest of what came just before them.
    """
    tables = [
        pa.Table.from_batches(by_type[name], _EVENTS)
        for name in TYPES
        if by_type.get(name)
    ]
    if before is not None and before.num_rows:
        tables.append(before)
    if not tables:
        return Lives(*(one.empty_table() for one in (_JOBS, _ATTEMPTS, _EVENTS)))
    events = pa.concat_tables(tables)
    told = _Told(events.select(_USED))
    whole = told.whole()
    is_rest: Flags = np.empty(len(told.of), np.bool_)
    is_rest[told.order] = ~whole[told.of]
    rest = events.filter(pa.array(is_rest))
    return Lives(told.jobs(np.flatnonzero(whole)), told.attempts(whole), rest)


class _Told:
    """Events in their order, each with the place of its job among all jobs.

    Numbers are put in that order; texts stay where they are, and few are ever taken.
    """

    def __init__(self, events: pa.Table) -> None:
        self.order: Numbers = np.argsort(_numbers(events, "event"))
        self._table = events.combine_chunks()
        self._at: dict[str, Numbers] = {
            name: _numbers(self._table, name)[self.order]
            for name in (*_NUMBERS, *_WAITS)
        }
        self._type = _coded(self._table)[self.order]
        self._is_again = _flags(self._table, "is_again")[self.order]
        job = _numbers(self._table, "job")[self.order]
        generation = _numbers(self._table, "generation")[self.order]
        keys = job * _GENERATIONS + generation
        _, first, of = np.unique(keys, return_index=True, return_inverse=True)
        self.of: Numbers = of.reshape(-1)
        self._first: Numbers = first
        """The first event of each job."""
        self._count = len(first)
        self._last = self._last_of(np.arange(len(keys)))
        self._is_known = (job[first] < _JOBS_MAX) & (generation[first] < _GENERATIONS)
        is_done = _flags(self._table, "is_done")[self.order]
        self._is_end = self._is("ack", "cancel", "bury", "expire")
        self._is_end |= self._is("reply") & is_done
        ends = ("ack", "retry", "release", "lose", "wait", "bury", "cancel", "expire")
        self._over = np.flatnonzero(self._is(*ends) & (self._at["token"] > 0))
        """Events that end a lease..."""
        self._begun, self._is_paired = self._pairs()
        """...and those that began it."""

    def whole(self) -> Flags:
        """Which jobs have all of their events here, and nothing odd among them."""
        first, last, count = self._first, self._last, self._counted
        is_lease = self._is("lease")
        leases = count(is_lease)
        is_begin = self._is("enqueue", "redrive")
        good = self._is_known & is_begin[first] & (count(is_begin) == 1)
        good &= self._is_end[last] & (count(self._is_end) == 1)
        good &= leases == np.bincount(self.of[self._over], minlength=self._count)
        good &= (leases > 0) | ~self._is("ack", "reply")[last]
        early = is_lease & (self._at["at_ms"] < self._at["at_ms"][first][self.of])
        good &= count(early) == 0
        good[self.of[self._over[~self._is_paired]]] = False
        for name in KEYS[3:]:
            of_event = self._key(name)
            good[self.of[of_event != of_event[first][self.of]]] = False
        return good

    def jobs(self, jobs: Numbers) -> pa.Table:
        """The rows of these jobs, in the order in which they ended."""
        jobs = jobs[np.argsort(self._last[jobs])]
        first, last = self._first[jobs], self._last[jobs]
        is_lease, at_ms = self._is("lease"), self._at["at_ms"]
        is_start = is_lease & ~self._is_again
        is_miss = is_start & (self._at["wait_ms"] > self._at["slo_ms"])
        started = self._first_of(np.flatnonzero(is_lease))[jobs]
        ready_ms = np.where(
            self._type[first] == _CODES["enqueue"],
            self._at["run_at_ms"][first],
            at_ms[first],
        )
        failures = self._is("retry", "bury", "lose", "expire")
        failed = self._last_of(np.flatnonzero(failures))[jobs]
        is_reply = self._is("reply")
        run_ms: Numbers = np.zeros(self._count, np.int64)
        np.add.at(run_ms, self.of[self._over], at_ms[self._over] - at_ms[self._begun])
        attempts: Numbers = np.zeros(self._count, np.int64)
        np.maximum.at(attempts, self.of, self._at["attempt"])
        told = {
            "outcome": _named(_OUTCOMES, self._type[last]),
            "enqueued_at": _moments(at_ms[first]),
            "ready_at": _moments(ready_ms),
            "started_at": _moments(at_ms[started], started < 0),
            "ended_at": _moments(at_ms[last]),
            "first_event": self._at["event"][first],
            "ended_event": self._at["event"][last],
            "tick_at": _as_moments(self._taken("tick_ms", first)),
            "waits": self._counted(is_start)[jobs],
            "misses": self._counted(is_miss)[jobs],
            "wait_ms": self._sum("wait_ms", is_start)[jobs],
            "held_ms": self._sum("held_ms", is_start)[jobs],
            "leases": self._counted(is_lease)[jobs],
            "attempts": attempts[jobs],
            "run_ms": run_ms[jobs],
            "retries": self._counted(self._is("retry"))[jobs],
            "losses": self._counted(self._is("lose"))[jobs],
            "releases": self._counted(self._is("release"))[jobs],
            "reply_waits": self._counted(self._is("wait"))[jobs],
            "replies": self._counted(is_reply)[jobs],
            "reply_ms": self._sum("waited_ms", is_reply)[jobs],
            "last_reason": self._reasons(failed),
            "last_error": self._taken("text", failed),
        }
        given = ("priority", "cost", "weight", "labels", "schedule")
        told |= {name: self._taken(name, first) for name in (*KEYS, *given)}
        return _table(told, _JOBS)

    def attempts(self, whole: Flags) -> pa.Table:
        """The rows of all leases of these jobs, in the order in which they ended."""
        chosen = whole[self.of[self._over]]
        over, begun = self._over[chosen], self._begun[chosen]
        at_ms = self._at["at_ms"]
        told = {
            "token": self._at["token"][over],
            "started_at": _moments(at_ms[begun]),
            "ended_at": _moments(at_ms[over]),
            "ended_event": self._at["event"][over],
            "end": self._taken("type", over),
            "run_ms": at_ms[over] - at_ms[begun],
            "reason": self._taken("reason", over),
            "error": self._taken("text", over),
        }
        of_begin = ("attempt", "worker", "wait_ms", "held_ms", "is_again")
        told |= {name: self._taken(name, begun) for name in of_begin}
        told |= {name: self._taken(name, over) for name in KEYS}
        return _table(told, _ATTEMPTS)

    def _pairs(self) -> tuple[Numbers, Flags]:
        """For each event that ends a lease the one that began it, and if it is known."""
        leases = np.flatnonzero(self._is("lease"))
        if not len(leases):
            nothing: Numbers = np.zeros(len(self._over), np.int64)
            return nothing, np.zeros(len(self._over), np.bool_)
        leases = leases[np.argsort(self._at["token"][leases], kind="stable")]
        tokens = self._at["token"][leases]
        wanted = self._at["token"][self._over]
        places = np.minimum(np.searchsorted(tokens, wanted), len(tokens) - 1)
        begun = leases[places]
        is_paired = (tokens[places] == wanted) & (self.of[begun] == self.of[self._over])
        # One that begins or ends twice is for the gates to judge.
        _, place, count = np.unique(tokens, return_inverse=True, return_counts=True)
        is_paired &= count[place.reshape(-1)][places] == 1
        _, place, count = np.unique(wanted, return_inverse=True, return_counts=True)
        is_paired &= count[place.reshape(-1)] == 1
        return begun, is_paired

    def _is(self, *names: str) -> Flags:
        found: Flags = np.zeros(len(TYPES), np.bool_)
        found[[_CODES[name] for name in names]] = True
        return found[self._type]

    def _counted(self, which: Flags) -> Numbers:
        return np.bincount(self.of[which], minlength=self._count)

    def _sum(self, name: str, which: Flags) -> Numbers:
        total: Numbers = np.zeros(self._count, np.int64)
        np.add.at(total, self.of[which], self._at[name][which])
        return total

    def _last_of(self, which: Numbers) -> Numbers:
        """Of each job the last of these events; -1 if it has none."""
        found: Numbers = np.full(self._count, -1, np.int64)
        # Of several values for one place the last stays.
        found[self.of[which]] = which
        return found

    def _first_of(self, which: Numbers) -> Numbers:
        return self._last_of(which[::-1])

    def _key(self, name: str) -> Numbers:
        """A column as numbers that are equal where its values are."""
        column = self._table.column(name)
        if pa.types.is_integer(column.type):
            return self._at[name]
        found = column.dictionary_encode().combine_chunks().indices
        return _numbers_of(found)[self.order]

    def _taken(self, name: str, which: Numbers) -> pa.Array:
        """A column's values at these events; null at -1."""
        places = pa.array(self.order[which], mask=which < 0)
        return self._table.column(name).take(places).combine_chunks()

    def _reasons(self, failed: Numbers) -> pa.Array:
        told = self._taken("reason", failed)
        for name, reason in _REASONS.items():
            is_so = pa.array((failed >= 0) & (self._type[failed] == _CODES[name]))
            told = pa.compute.if_else(is_so, reason, told)
        return told


def _numbers(table: pa.Table, name: str) -> Numbers:
    return _numbers_of(table.column(name))


def _numbers_of(column: Any) -> Numbers:
    return column.fill_null(0).to_numpy().astype(np.int64, copy=False)


def _flags(table: pa.Table, name: str) -> Flags:
    column = table.column(name).fill_null(False)
    return column.combine_chunks().to_numpy(zero_copy_only=False)


def _coded(table: pa.Table) -> Numbers:
    """The types of the events as numbers."""
    types = pa.compute.index_in(table.column("type"), pa.array(TYPES))
    return _numbers_of(types)


def _named(names: Mapping[str, str], types: Numbers) -> pa.Array:
    by_code = pa.array([names.get(one) for one in TYPES], pa.string())
    return by_code.take(pa.array(types))


def _moments(values_ms: Numbers, mask: Flags | None = None) -> pa.Array:
    return pa.array(values_ms * 1_000, _JOBS.field("ended_at").type, mask=mask)


def _as_moments(values_ms: pa.Array) -> pa.Array:
    micros = pa.compute.multiply(values_ms, 1_000)
    return micros.cast(_JOBS.field("ended_at").type)


def _table(told: dict[str, Any], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(told[one.name]).cast(one.type) for one in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
