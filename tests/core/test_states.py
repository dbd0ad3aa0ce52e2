"""The table of transitions is whole, and the diagram shows all of it (invariant 4)."""

import itertools

from headway.core import events
from headway.core.states import DEAD, LIVE, TRANSITIONS, JobState, is_allowed

ENDED = (JobState.DONE, JobState.CANCELLED)


def test_no_arrow_is_listed_twice() -> None:
    assert len(set(TRANSITIONS)) == len(TRANSITIONS)


def test_done_and_cancelled_are_never_left() -> None:
    """Invariant 4."""
    assert not [arrow for arrow in TRANSITIONS if arrow.source in ENDED]


def test_dead_is_left_only_by_redrive_and_for_good_by_discard() -> None:
    """Invariant 4."""
    arrows = {arrow.verb: arrow.target for arrow in TRANSITIONS if arrow.source == DEAD}
    assert arrows == {"redrive": JobState.READY, "discard": JobState.CANCELLED}


def test_every_live_state_can_be_cancelled_and_expires() -> None:
    for state in LIVE:
        assert is_allowed("cancel", state, JobState.CANCELLED)
        assert is_allowed("expire", state, JobState.DEAD)


def test_every_state_can_be_reached_and_every_live_one_can_end() -> None:
    """Invariant 29."""
    reached: set[JobState | None] = {None}
    for _ in JobState:
        reached |= {arrow.target for arrow in TRANSITIONS if arrow.source in reached}
    assert reached == {None, *JobState}


def test_only_listed_arrows_are_allowed() -> None:
    """Invariant 4: over all verbs and pairs of states."""
    listed = set(TRANSITIONS)
    verbs = {arrow.verb for arrow in TRANSITIONS}
    states = (None, *JobState)
    for verb, source, target in itertools.product(verbs, states, JobState):
        is_listed = (verb, source, target) in listed
        assert is_allowed(verb, source, target) == is_listed


def test_every_verb_is_an_event_of_history() -> None:
    """One word for one thing, in code and in history."""
    tags = {
        kind.__struct_config__.tag
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, events.Event)
    }
    assert {arrow.verb for arrow in TRANSITIONS} <= tags
