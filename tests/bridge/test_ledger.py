"""What may be committed: against a plain account of what was read and what is over."""

from hypothesis import given
from hypothesis import strategies as st

from headway.bridge.ledger import Ledger

PLACE = ("answers", 0)
OTHER = ("answers", 1)


@given(
    st.lists(st.integers(0, 1_000), min_size=1, max_size=30, unique=True).map(sorted),
    st.data(),
)
def test_a_mark_stands_behind_the_last_message_before_which_all_are_over(
    offsets: list[int], data: st.DataObject
) -> None:
    """Offsets have gaps where a topic is compacted or has transactions."""
    ledger = Ledger()
    tickets = {offset: ledger.begin(PLACE, offset) for offset in offsets}
    over: set[int] = set()
    for offset in data.draw(st.permutations(offsets)):
        ledger.end(tickets[offset])
        over.add(offset)
        prefix = []
        for one in offsets:
            if one not in over:
                break
            prefix.append(one)
        wanted = {PLACE: prefix[-1] + 1} if prefix else {}
        assert ledger.due() == wanted
    marks = ledger.due()
    ledger.committed(marks)
    assert ledger.due() == {}


def test_what_was_not_committed_is_due_again() -> None:
    ledger = Ledger()
    first, second = ledger.begin(PLACE, 7), ledger.begin(PLACE, 9)
    ledger.end(first)
    assert ledger.due() == {PLACE: 8}
    assert ledger.due() == {PLACE: 8}
    ledger.committed({PLACE: 8})
    ledger.end(second)
    assert ledger.due() == {PLACE: 10}


def test_a_partition_that_goes_leaves_what_is_done_and_forgets_what_is_open() -> None:
    ledger = Ledger()
    done, opened = ledger.begin(PLACE, 1), ledger.begin(PLACE, 2)
    behind, other = ledger.begin(PLACE, 3), ledger.begin(OTHER, 1)
    for ticket in (done, behind, other):
        ledger.end(ticket)
    assert ledger.release([PLACE]) == {PLACE: 2}
    assert opened.is_gone
    assert not other.is_gone
    ledger.end(opened)
    assert ledger.due() == {OTHER: 2}
    # It comes back, and is read again from where it was committed.
    again = ledger.begin(PLACE, 2)
    assert ledger.due() == {OTHER: 2}
    ledger.end(again)
    assert ledger.due() == {OTHER: 2, PLACE: 3}
