"""A history that is known in every detail: made by the simulator, told as rows."""

from typing import Any

import msgspec

from headway.core import events
from headway.core.commands import Decision
from headway.sim.plan.recorded import AttemptRow, JobRow, Span
from headway.sim.plan.recording import Recording, look_back
from headway.sim.plan.rules import RuleRow
from headway.sim.policies import POLICIES
from headway.sim.scenario import Scenario
from headway.sim.world import World

_ENDS = ("ack", "retry", "release", "lose", "wait", "bury", "cancel", "expire")


class Telling(World):
    """Keeps every event, as history does."""

    def __init__(self, scenario: Scenario, seed: int = 1) -> None:
        self.told: list[Any] = []
        super().__init__(scenario, POLICIES["headway"], seed)

    def _watch(self, decision: Decision) -> None:
        self.told += decision.events
        super()._watch(decision)


def history_of(scenario: Scenario, seed: int = 1) -> list[Any]:
    """All events of a run, in their order."""
    world = Telling(scenario, seed)
    world.run(None)
    return world.told


def rows_of(told: list[Any], from_ms: int = 0) -> list[JobRow]:
    """Jobs with their attempts, as the tables of a lake would have them."""
    jobs: dict[int, JobRow] = {}
    open_leases: dict[int, AttemptRow] = {}
    for event in told:
        match event:
            case events.Enqueued():
                jobs[event.seq] = JobRow(
                    queue=event.queue,
                    slo_ms=event.slo_ms,
                    tenant=event.tenant,
                    kind=event.kind,
                    enqueued_ms=event.at_ms,
                    ready_ms=event.run_at_ms,
                    priority=event.priority,
                    cost=event.cost,
                    weight=event.weight,
                    labels=event.labels,
                    attempts=[],
                )
            case events.Leased():
                attempt = AttemptRow(
                    event.at_ms,
                    wait_ms=event.wait_ms,
                    held_ms=event.held_ms,
                    is_again=event.is_again,
                    worker=event.worker,
                    token=event.token,
                )
                open_leases[event.token] = attempt
                jobs[event.seq].attempts.append(attempt)
        _end(event, jobs, open_leases)
    for job in jobs.values():
        job.attempts = [
            one
            for one in job.attempts
            if one.ended_ms is None or one.ended_ms >= from_ms
        ]
    rows = [
        job for job in jobs.values() if job.ended_ms is None or job.ended_ms >= from_ms
    ]
    return sorted(rows, key=lambda row: row.enqueued_ms)


def _end(
    event: Any, jobs: dict[int, JobRow], open_leases: dict[int, AttemptRow]
) -> None:
    tag = str(type(event).__struct_config__.tag)
    attempt = open_leases.pop(event.token, None) if tag in _ENDS else None
    if attempt is not None:
        attempt.ended_ms = event.at_ms
        attempt.end = tag
    is_last_reply = tag == "reply" and event.is_done
    if tag in {"ack", "cancel", "bury", "expire"} or is_last_reply:
        jobs[event.seq].ended_ms = event.at_ms


def rules_of(told: list[Any]) -> tuple[RuleRow, ...]:
    return tuple(
        RuleRow(
            event.at_ms,
            event.queue,
            event.what,
            msgspec.json.encode(msgspec.msgpack.decode(event.rule)).decode(),
        )
        for event in told
        if isinstance(event, events.RuleChanged)
    )


def recording_of(
    scenario: Scenario, told: list[Any], from_ms: int = 0, head_ms: int = 0
) -> tuple[Recording, list[JobRow]]:
    """The whole run, or from a moment after its start on."""
    begin_ms = scenario.epoch_ms + from_ms - head_ms
    end_ms = scenario.epoch_ms + scenario.duration_ms
    rows = rows_of(told, begin_ms)
    recording = Recording(
        span=Span(
            epoch_ms=min(begin_ms, *(row.enqueued_ms for row in rows)),
            begin_ms=begin_ms,
            from_ms=begin_ms + head_ms,
            to_ms=end_ms,
            until_ms=end_ms,
            known_ms=max(event.at_ms for event in told),
        ),
        queues=tuple(sorted({row.queue for row in rows})),
        rules=rules_of(told),
    )
    happened = look_back(recording, rows)
    return msgspec.structs.replace(recording, happened=happened), rows
