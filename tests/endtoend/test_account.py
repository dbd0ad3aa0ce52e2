"""The account of an end-to-end run finds what it is there to find: faults, planted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from headway.core import events
from tests.endtoend import plan
from tests.endtoend.account import Account, Kept
from tests.endtoend.told import Told, seq_of, token_of

T = 1_000_000
"""When the story begins."""
UP = (T - 1_000, T)


@dataclass
class Story:
    """A history, and what clients were told of it."""

    happened: list[Any] = field(default_factory=list)
    told: Told = field(default_factory=lambda: Told(down=[UP]))
    keys: list[tuple[str, str, int]] = field(default_factory=list)

    def job(self, number: int, queue: str, kind: str = "plain", **more: Any) -> int:
        """Enqueued and accepted; answers its seq."""
        seq = number + 1
        at_ms = self.happened[-1].at_ms if self.happened else T
        head = (at_ms, seq, 0, queue, 5_000, "tenant-0", kind)
        run_at_ms = more.get("run_at_ms", at_ms)
        cost, labels = more.get("cost", 1), more.get("labels")
        enqueued = events.Enqueued(*head, run_at_ms, 100, cost, labels)
        self.happened.append(enqueued)
        if kind != plan.TICK:
            self.told.accepted[number] = seq
            self.keys.append((queue, f"job-{number}", seq))
        return seq

    def lease(self, seq: int, token: int, at_ms: int, attempt: int = 1) -> None:
        self.add(events.Leased, seq, at_ms, attempt, token, "w0", 0, 0, at_ms + 2_000)
        self.told.workers.append(("lease", [f"{token}:{seq - 1}"]))

    def ack(self, seq: int, token: int, at_ms: int, attempt: int = 1) -> None:
        self.add(events.Acked, seq, at_ms, attempt, 1)
        self.told.workers.append(("ack", [str(token)]))

    def add(self, kind: type, seq: int, at_ms: int, *values: Any) -> None:
        of_jobs = [e for e in self.happened if isinstance(e, events.Event)]
        last = next(event for event in reversed(of_jobs) if event.seq == seq)
        generation = last.generation + (kind is events.Redriven)
        of_job = (last.queue, last.slo_ms, last.tenant, last.kind)
        self.happened.append(kind(at_ms, seq, generation, *of_job, *values))

    def find(self, kind: type, nth: int = 0) -> int:
        """The place of an event."""
        places = [n for n, event in enumerate(self.happened) if type(event) is kind]
        return places[nth]

    def change(self, kind: type, nth: int = 0, **values: Any) -> None:
        place = self.find(kind, nth)
        self.happened[place] = msgspec.structs.replace(self.happened[place], **values)

    def faults(self) -> list[str]:
        chapters: list[tuple[int, list[Any]]] = []
        for number, event in enumerate(self.happened, 1):
            if event is not None:
                chapters.append((number, [event]))
        return Account(self.told).check(Kept(chapters, self.keys))


def whole() -> Story:
    """Done at once, after a lost lease, after a reply, by a tick, after a redrive."""
    story = Story()
    first = story.job(0, "mail")
    story.lease(first, 10, T + 10)
    story.ack(first, 10, T + 20)
    second = story.job(1, "mail")
    story.lease(second, 11, T + 30)
    story.add(events.Lost, second, T + 2_030, 1, 2_000)
    story.lease(second, 12, T + 2_040, attempt=2)
    story.ack(second, 12, T + 2_050, attempt=2)
    third = story.job(2, plan.ASKS, "timely")
    story.lease(third, 13, T + 2_060)
    story.add(events.Waited, third, T + 2_070, 1, 10, "key", T + 5_000)
    story.add(events.Replied, third, T + 2_080, "key", False, False)
    story.told.workers.append(("resolved", ["key"]))
    story.lease(third, 14, T + 2_090)
    story.ack(third, 14, T + 2_100)
    tick = story.job(3, plan.TICKS, plan.TICK)
    story.happened.append(events.Ticked(T + 2_110, plan.TICKS, "beat", T, tick))
    story.add(events.Cancelled, tick, T + 2_115)
    fifth = story.job(4, "bulk")
    story.lease(fifth, 15, T + 2_120)
    story.add(events.Buried, fifth, T + 2_130, 1, "failed", "")
    story.add(events.Redriven, fifth, T + 2_140)
    story.lease(fifth, 16, T + 2_150)
    story.ack(fifth, 16, T + 2_160)
    return story


def test_a_whole_story_has_no_fault() -> None:
    assert whole().faults() == []


Plant = Callable[[Story], object]


def drop(kind: type, nth: int = 0) -> Plant:
    """It never happened, and no number is missing."""
    return lambda story: story.happened.__delitem__(story.find(kind, nth))


def lose_events(story: Story) -> None:
    """Numbers are missing."""
    story.happened[story.find(events.Acked)] = None


def crowd(queue: str, jobs: int, **more: Any) -> Plant:
    """So many jobs start at once."""

    def plant(story: Story) -> None:
        seqs = [story.job(100 + n, queue, **more) for n in range(jobs)]
        for seq in seqs:
            story.lease(seq, 1_000 + seq, T + 3_000)
        for seq in seqs:
            story.ack(seq, 1_000 + seq, T + 3_001)

    return plant


def again(kind: type, nth: int = 0) -> Plant:
    """It happened twice."""

    def plant(story: Story) -> None:
        place = story.find(kind, nth)
        story.happened.insert(place + 1, story.happened[place])

    return plant


def change(kind: type, nth: int = 0, **values: Any) -> Plant:
    return lambda story: story.change(kind, nth, **values)


def tell(verb: str, word: str) -> Plant:
    return lambda story: story.told.workers.append((verb, [word]))


def hold(story: Story) -> None:
    story.happened.insert(0, events.RuleChanged(T, "mail", "pause"))


def open_late(story: Story) -> None:
    crowd("bulk", 1, kind=plan.WINDOW)(story)
    story.told.opens_ms = T + 3_001


PLANTED: dict[str, tuple[Plant, str]] = {
    "time goes back": (change(events.Acked, at_ms=T), "history: time"),
    "events are missing": (lose_events, "history: "),
    "an outcome is missing": (drop(events.Acked, 3), "invariant 1: "),
    "a job is missing": (drop(events.Enqueued), "P1: 0 was accepted"),
    "an outcome came twice": (again(events.Acked), "invariant 4: ack"),
    "a job is enqueued twice": (again(events.Enqueued), "invariant 5: reused"),
    "a job is leased twice": (drop(events.Lost), "invariant 8: leased twice"),
    "done, and leased again": (
        lambda story: story.lease(1, 99, T + 3_000, attempt=2),
        "invariant 4: lease",
    ),
    "a lease is lost early": (change(events.Lost, at_ms=T + 2_000), "P3: "),
    "a lease is lost late": (change(events.Lost, at_ms=T + 8_000), "P7: "),
    "started before its time": (
        change(events.Enqueued, 1, run_at_ms=T + 50),
        "invariant 20",
    ),
    "an attempt too many": (change(events.Leased, 2, attempt=6), "invariant 7"),
    "a job of nobody": (lambda story: story.told.accepted.pop(0), "invariant 2: "),
    "two jobs of one key": (
        lambda story: story.keys.append(("mail", "job-0", 2)),
        "invariant 19: ",
    ),
    "a number that is two jobs": (
        lambda story: story.told.accepted.update({7: 1}),
        "invariant 5: job 1 is 2 jobs",
    ),
    "an ack is forgotten": (tell("ack", "11"), "P1: ack of 11"),
    "a lease is forgotten": (tell("lease", "77:0"), "P1: lease 77"),
    "another's payload": (tell("lease", "10:1"), "invariant 6: "),
    "resolved twice": (tell("resolved", "key"), "P9: key"),
    "cancelled, and done": (
        lambda story: story.told.cancelled.add(1),
        "P1: job 1 was cancelled",
    ),
    "a tick came twice": (again(events.Ticked), "invariant 21"),
    "started while paused": (hold, "invariant 26"),
    "started outside its window": (
        lambda story: story.told.closed.append(("mail", T, T + 15)),
        "started outside its window",
    ),
    "started outside a window of its own": (open_late, "started outside its window"),
    "above a limit by cost": (crowd("mail", 5, cost=2), "invariant 22"),
    "above a label's limit": (
        crowd("calls", 7, labels={"server": "s1"}),
        "invariant 22",
    ),
    "above a share": (
        crowd("regions", 4, labels={"region": "west"}),
        "invariant 22",
    ),
    "above a lent pool": (
        crowd("lent", 16, labels={"region": "west"}),
        "invariant 22",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    plant, text = PLANTED[name]
    story = whole()
    plant(story)
    faults = story.faults()
    assert any(fault.startswith(text) for fault in faults), faults


def test_above_a_rate_is_found() -> None:
    """Its burst is 100 units."""
    story = whole()
    for round_ in range(2):
        for n in range(52):
            labels = {"server": f"s{n % 4}"}
            seq = story.job(100 + round_ * 52 + n, "calls", labels=labels)
            story.lease(seq, 1_000 + seq, T + 3_000)
            story.ack(seq, 1_000 + seq, T + 3_000)
    found = story.faults()
    assert len(found) == 4
    assert all("Rate" in fault for fault in found)


@pytest.mark.parametrize(
    "plant",
    [
        crowd("mail", 4, cost=2),
        crowd("mail", 90, kind=plan.VITAL),
        crowd("regions", 3, labels={"region": "west"}),
        crowd("lent", 15, labels={"region": "west"}),
    ],
)
def test_what_limits_allow_is_no_fault(plant: Plant) -> None:
    story = whole()
    plant(story)
    assert story.faults() == []


def test_time_in_which_no_server_was_there_does_not_count() -> None:
    assert any(fault.startswith("P7") for fault in noticed_late(9_000))
    assert not any(fault.startswith("P7") for fault in noticed_late(15_500))


def noticed_late(up_after_ms: int) -> list[str]:
    """The server is down when a lease ends, which is noticed after 20 seconds."""
    story = whole()
    story.change(events.Lost, at_ms=T + 20_000)
    story.told.down.append((T + 2_000, T + up_after_ms))
    return story.faults()


def test_numbers_are_read_from_what_clients_see() -> None:
    assert seq_of("p1_123") == 123
    assert token_of("p1_000000000000002ac0ffee00c0ffee00.mail.x") == 42
