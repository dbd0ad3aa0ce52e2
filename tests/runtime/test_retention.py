"""History goes by age and size, and never silently past a reader."""

from headway.runtime.retention import MARKS_MAX, Keeper, Reader, Retention

KEEP = Retention(age_ms=1_000, size_bytes=100, lag_bytes=300)


def keeper(*marks: tuple[int, int, int]) -> Keeper:
    """Each mark: next event, time, bytes written since the last one."""
    made = Keeper(KEEP)
    for next_event, at_ms, more in marks:
        made.bytes_written += more
        made.mark(next_event, at_ms)
    return made


def test_young_and_small_history_is_kept() -> None:
    assert keeper((10, 0, 50), (20, 500, 40)).droppable(900) is None


def test_old_history_may_go() -> None:
    assert keeper((10, 0, 10), (20, 500, 10), (30, 900, 10)).droppable(1_600) == 20


def test_history_beyond_its_size_may_go() -> None:
    assert keeper((10, 0, 90), (20, 1, 90), (30, 2, 90)).droppable(3) == 10


def test_a_reader_keeps_what_it_has_not_read() -> None:
    made = keeper((10, 0, 10), (20, 500, 10), (30, 900, 10))
    made.readers["spark"] = Reader(12)
    assert made.droppable(1_600) == 12
    made.readers["spark"].position = 25
    assert made.droppable(1_600) == 20


def test_a_reader_that_lags_too_far_is_cut_off_and_can_see_it() -> None:
    made = keeper((10, 0, 10), (20, 500, 10), (30, 900, 400))
    made.bytes_written += 400
    made.readers["slow"] = Reader(5)
    assert made.droppable(5_000) == 30
    assert made.readers["slow"].is_cut_off


def test_there_are_never_many_marks() -> None:
    made = Keeper(KEEP)
    for number in range(10_000):
        made.mark(number, 0)
    assert len(made.marks) <= MARKS_MAX
    assert made.marks[0].next_event == 0
    assert made.marks[-1].next_event == 9_999
