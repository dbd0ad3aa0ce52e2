"""Dead letters by the many: which are meant, and what becomes of them."""

import pytest

from headway.core import events
from headway.core.bulk import BulkState, BulkVerb, BulkView, Filter
from headway.core.commands import (
    Configure,
    Lease,
    Nack,
    StartBulk,
)
from headway.core.config import QueueConfig
from headway.core.errors import BadValue, UnknownQueue
from headway.core.states import JobState
from headway.runtime import bulk
from headway.runtime.bulk import BulkList, BulkPreview, ListBulks
from headway.runtime.views import Handed, JobView, QueueCounts, Show
from tests.runtime.bulking import DISCARD, HOUR_MS, PURGE, REDRIVE, finish, now, start
from tests.runtime.desk import START_MS, Desk


def test_dead_letters_come_back_with_fresh_attempts() -> None:
    desk = Desk()
    seqs = desk.bury(1_200)
    view = start(desk, REDRIVE)
    assert view.matched_total == 1_200
    ended = finish(desk, view.id)
    assert (ended.done, ended.failed) == (1_200, 0)
    assert desk.counts() == QueueCounts(1_200, 0, 0, 0, 0)
    shown = desk.ask(Show(seqs[700]))
    assert isinstance(shown, JobView)
    assert (shown.state, shown.attempt, shown.generation) == (JobState.READY, 0, 1)
    assert shown.errors[-1].text == "broken"
    assert sorted(desk.lease(2_000)) == seqs


def test_a_job_that_dies_again_is_not_redriven_twice() -> None:
    """It would be endless: a poisoned job dies as often as it comes back."""
    desk = Desk()
    desk.bury(300)
    desk.now_ms += 10
    view = desk.ask(StartBulk("q", REDRIVE, rate_per_s=1_000.0))
    assert isinstance(view, BulkView)
    for _ in range(100):
        handed = desk.ask(Lease(max=1_000))
        assert isinstance(handed, Handed)
        nacks = [Nack(job.token, "x", is_bury=True) for job in handed.jobs]
        desk.owner.step(nacks, desk.now_ms)
        desk.now_ms += 50
    assert now(desk, view.id).state is BulkState.FINISHED
    redriven = [event.seq for event in desk.events(events.Redriven)]
    assert sorted(redriven) == list(range(1, 301))
    assert desk.counts() == QueueCounts(0, 0, 0, 0, 300)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (Filter(), {"old", "mid", "new"}),
        (Filter(tenant="a"), {"old", "new"}),
        (Filter(kind="sms"), {"mid"}),
        (Filter(text="time"), {"mid"}),
        (Filter(reason="expired"), {"new"}),
        (Filter(reason="failed", tenant="a"), {"old"}),
        (Filter(died_after_ms=START_MS + 1_000), {"mid", "new"}),
        (Filter(died_before_ms=START_MS + 1_000), {"old"}),
        (
            Filter(died_after_ms=START_MS + 1, died_before_ms=START_MS + 1_001),
            {"mid"},
        ),
        (Filter(text="nothing says so"), set()),
    ],
)
def test_dead_letters_are_chosen_by_what_is_known_of_them(
    which: Filter, expected: set[str]
) -> None:
    desk = Desk()
    sets = {"old": desk.bury(40, "refused: 402", tenant="a", kind="mail")}
    desk.now_ms += 1_000
    sets["mid"] = desk.bury(40, "out of time", tenant="b", kind="sms")
    sets["new"] = desk.put(40, tenant="a", kind="mail", lifetime_ms=500)
    desk.now_ms += 500
    desk.owner.step([], desk.now_ms)
    assert desk.counts().dead == 120
    preview = desk.ask(StartBulk("q", DISCARD, which, is_preview=True))
    assert isinstance(preview, BulkPreview)
    assert (preview.matched, preview.is_more) == (40 * len(expected), False)
    ended = finish(desk, start(desk, DISCARD, which).id)
    assert ended.done == 40 * len(expected)
    meant = sorted(seq for name in expected for seq in sets[name])
    discarded = [event.seq for event in desk.events(events.Discarded)]
    assert sorted(discarded) == meant
    assert desk.counts().dead == 120 - len(meant)
    assert not set(meant) & set(desk.disk.jobs)


def test_jobs_can_be_named_one_by_one() -> None:
    """What is named and not a dead letter of the queue has failed."""
    desk = Desk()
    desk.ask(Configure(QueueConfig(name="other")))
    seqs = desk.bury(30)
    (ready,) = desk.put(1)
    named = (*seqs[::3], ready, 999_999, seqs[0])
    view = start(desk, REDRIVE, Filter(seqs=named))
    assert view.matched_total == 12
    ended = finish(desk, view.id)
    assert (ended.done, ended.failed) == (10, 2)
    assert desk.counts() == QueueCounts(11, 0, 0, 0, 20)
    ask = StartBulk("other", DISCARD, Filter(seqs=tuple(seqs)))
    elsewhere = desk.ask(ask)
    assert isinstance(elsewhere, BulkView)
    assert finish(desk, elsewhere.id).done == 0
    assert desk.counts().dead == 20


@pytest.mark.parametrize("verb", [PURGE, REDRIVE, DISCARD])
@pytest.mark.parametrize("which", [Filter(), Filter(tenant="a")])
def test_a_preview_changes_nothing(verb: BulkVerb, which: Filter) -> None:
    desk = Desk()
    desk.bury(60, tenant="a")
    desk.bury(40, tenant="b")
    desk.put(60, tenant="a")
    desk.put(20, tenant="b")
    desk.put(20, tenant="b", delay_ms=HOUR_MS)
    before = (dict(desk.disk.jobs), dict(desk.disk.facts), list(desk.disk.history))
    preview = desk.ask(StartBulk("q", verb, which, is_preview=True))
    assert isinstance(preview, BulkPreview)
    assert preview.matched == (60 if which.tenant else 100)
    assert not preview.is_more
    assert len(preview.sample) == 20
    states = {view.state for view in preview.sample}
    assert (states == {JobState.DEAD}) == (verb is not PURGE)
    after = (dict(desk.disk.jobs), dict(desk.disk.facts), list(desk.disk.history))
    assert after == before
    assert desk.ask(ListBulks()) == BulkList([])
    assert desk.counts() == QueueCounts(80, 20, 0, 0, 100)


def test_a_preview_says_when_it_has_not_seen_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk, "PREVIEW_ROWS", 50)
    desk = Desk()
    for _ in range(30):
        desk.bury(1, tenant="a")
        desk.bury(1, tenant="b")
    ask = StartBulk("q", REDRIVE, Filter(tenant="a"), is_preview=True)
    assert desk.ask(ask) == BulkPreview(25, True, desk.ask(ask).sample)  # type: ignore[union-attr]
    desk.put(60, tenant="a")
    purge = desk.ask(StartBulk("q", PURGE, Filter(tenant="a"), is_preview=True))
    assert isinstance(purge, BulkPreview)
    assert (purge.matched, purge.is_more) == (50, True)


@pytest.mark.parametrize("is_preview", [True, False])
@pytest.mark.parametrize(
    ("key", "verb", "which", "rate_per_s"),
    [
        ("rate_per_s", PURGE, Filter(), 0.0),
        ("rate_per_s", PURGE, Filter(), -1.0),
        ("rate_per_s", PURGE, Filter(), float("nan")),
        ("rate_per_s", PURGE, Filter(), 1e9),
        ("filter", PURGE, Filter(kind="mail"), None),
        ("filter", PURGE, Filter(seqs=(1,)), None),
        ("filter.seqs", REDRIVE, Filter(seqs=()), None),
        ("filter.seqs", REDRIVE, Filter(seqs=tuple(range(1, 1_002))), None),
        ("filter.seqs", REDRIVE, Filter(seqs=(0,)), None),
        ("filter.seqs", REDRIVE, Filter(seqs=(2**63,)), None),
        ("filter.tenant", DISCARD, Filter(tenant="x" * 129), None),
        ("filter.text", DISCARD, Filter(text="x" * 1_001), None),
        ("filter.died_after_ms", DISCARD, Filter(died_after_ms=-1), None),
        ("filter.died_before_ms", DISCARD, Filter(died_before_ms=2**62), None),
    ],
)
def test_what_can_not_be_meant_is_refused(
    key: str, verb: BulkVerb, which: Filter, rate_per_s: float | None, is_preview: bool
) -> None:
    desk = Desk()
    told = desk.ask(StartBulk("q", verb, which, rate_per_s, is_preview))
    assert isinstance(told, BadValue)
    assert told.key == key
    assert desk.ask(ListBulks()) == BulkList([])
    told = desk.ask(StartBulk("nowhere", verb, is_preview=is_preview))
    assert isinstance(told, UnknownQueue)
