"""History told again in plain Python, and the index read row by row: they must agree."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

from headway.core import events
from headway.core.events import AnyEvent, Event
from headway.core.states import JobState
from headway.runtime.records import unpack_chapter
from headway.search.error_lines import first_line
from headway.search.rows import JobRow, cut, decode_labels, decode_told
from headway.search.schema import STATES
from headway.search.statements import COLUMNS
from headway.store.port import Segment

ENDED = (JobState.DONE, JobState.CANCELLED, JobState.DEAD)
Numbered = list[tuple[int, AnyEvent]]


class PlainJob:
    """One job, by all that is told of it."""

    def __init__(self, event: Event) -> None:
        self.seq = event.seq
        self.queue = event.queue
        self.tenant = event.tenant
        self.kind = event.kind
        self.slo_ms = event.slo_ms
        self.enqueued_ms = 0
        self.labels: dict[str, str] = {}
        self.state = JobState.READY
        self.generation = 0
        self.attempt = 0
        self.run_at_ms = 0
        self.changed = 0
        self.changed_ms = 0
        self.ended_ms = 0
        self.worker = self.reason = self.error = self.reply_key = ""
        self.told: Numbered = []

    def hear(self, number: int, event: Any) -> None:
        if isinstance(event, events.Extended):
            return
        self.told.append((number, event))
        self.changed, self.changed_ms = number, event.at_ms
        self.generation = event.generation
        self._follow(event)
        if self.state is not JobState.WAITING:
            self.reply_key = ""
        self.ended_ms = event.at_ms if self.state in ENDED else 0

    def _follow(self, event: Any) -> None:
        match event:
            case events.Enqueued():
                self.enqueued_ms = event.at_ms
                self.run_at_ms = event.run_at_ms
                self.labels = event.labels or {}
                if event.run_at_ms > event.at_ms:
                    self.state = JobState.SCHEDULED
            case events.Leased():
                self.state = JobState.LEASED
                self.attempt, self.worker = event.attempt, event.worker
            case events.Acked():
                self.state = JobState.DONE
            case events.Cancelled() | events.Discarded():
                self.state = JobState.CANCELLED
            case events.Retried() | events.Rescheduled():
                self.state = JobState.SCHEDULED
                self.run_at_ms = event.run_at_ms
            case events.Released():
                self.state = JobState.READY
                self.attempt -= 1
            case events.Promoted() | events.Lost():
                self.state = JobState.READY
            case events.Waited():
                self.state = JobState.WAITING
                self.reply_key = event.reply_key
            case events.Replied():
                self.state = JobState.DONE if event.is_done else JobState.READY
                self.run_at_ms = self.run_at_ms if event.is_done else event.at_ms
            case events.Buried() | events.Expired():
                self.state = JobState.DEAD
            case events.Redriven():
                self.state, self.attempt = JobState.READY, 0
                self.run_at_ms = event.at_ms
        match event:
            case events.Retried() | events.Buried():
                self.reason, self.error = event.reason, cut(event.text)
            case events.Expired():
                self.reason, self.error = "expired", ""


def retell(told: Iterable[tuple[int, AnyEvent]]) -> dict[int, PlainJob]:
    jobs: dict[int, PlainJob] = {}
    for number, event in told:
        if isinstance(event, Event):
            job = jobs.get(event.seq)
            if job is None:
                job = jobs[event.seq] = PlainJob(event)
            job.hear(number, event)
    return jobs


def numbered(segments: Iterable[Segment]) -> Numbered:
    return [
        (number, event)
        for segment in segments
        for number, event in enumerate(
            unpack_chapter(segment.blob).events, segment.first
        )
    ]


def select(path: Path, statement: str) -> list[Any]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute(statement))
    finally:
        connection.close()


def check_index(path: Path, jobs: dict[int, PlainJob]) -> None:
    """Everything in the index is what the jobs say, and nothing else is in it."""
    rows = [JobRow(*row) for row in select(path, f"SELECT {COLUMNS} FROM jobs")]
    assert {row.seq for row in rows} == set(jobs)
    for row in rows:
        check_row(row, jobs[row.seq])
    labels = {
        (*label, seq) for seq, job in jobs.items() for label in job.labels.items()
    }
    assert set(select(path, "SELECT * FROM labels")) == labels
    keys = {(job.queue, job.reply_key, seq) for seq, job in jobs.items()}
    keys = {key for key in keys if key[1]}
    assert set(select(path, "SELECT * FROM reply_keys")) == keys
    check_counts(path, list(jobs.values()))
    check_groups(path, rows, jobs)
    told: dict[int, Numbered] = {}
    for seq, blob in select(path, "SELECT seq, blob FROM events ORDER BY seq, number"):
        told.setdefault(seq, []).extend(decode_told(blob))
    assert told == {seq: job.told for seq, job in jobs.items()}


def check_row(row: JobRow, job: PlainJob) -> None:
    assert STATES[row.state] is job.state
    assert ({} if row.labels is None else decode_labels(row.labels)) == job.labels
    for name in vars(job):
        if name not in {"state", "labels", "told"}:
            assert getattr(row, name) == getattr(job, name), (row.seq, name)


def check_counts(path: Path, jobs: list[PlainJob]) -> None:
    counts = Counter((j.queue, j.tenant, j.state, j.slo_ms) for j in jobs)
    found = select(path, "SELECT queue, tenant, state, slo_ms, n FROM counts")
    assert {(q, t, STATES[s], slo): n for q, t, s, slo, n in found} == counts
    lanes = Counter((j.queue, j.slo_ms, j.state) for j in jobs)
    found = select(path, "SELECT queue, slo_ms, state, n FROM lanes")
    assert {(q, slo, STATES[s]): n for q, slo, s, n in found} == lanes


def check_groups(path: Path, rows: list[JobRow], jobs: dict[int, PlainJob]) -> None:
    dead = Counter(
        (job.queue, job.reason, first_line(job.error))
        for job in jobs.values()
        if job.state is JobState.DEAD
    )
    groups = {row[0]: row[1:] for row in select(path, "SELECT * FROM groups")}
    assert {group[:3]: group[3] for group in groups.values()} == dead
    for row in rows:
        job = jobs[row.seq]
        is_dead = job.state is JobState.DEAD
        assert bool(row.group_id) == is_dead
        if is_dead:
            name = (job.queue, job.reason, first_line(job.error))
            assert groups[row.group_id][:3] == name
