"""Looks that fail: whoever looks is told, and nobody else notices."""

import pytest

from headway.core.errors import LookFailed
from headway.runtime import owner
from headway.runtime.errors import OwnerStopped
from headway.runtime.views import Autoscale, Count, Measure
from tests.runtime.desk import Desk


def broken(error: Exception) -> object:
    def look(*_: object, **__: object) -> object:
        raise error

    return look


@pytest.mark.parametrize(
    ("name", "ask"),
    [("look", Count("q")), ("advise", Autoscale()), ("snapshot", Measure())],
)
def test_a_look_that_fails_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, name: str, ask: Count | Autoscale | Measure
) -> None:
    desk = Desk()
    desk.put(3)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken(ZeroDivisionError("a secret of a job")))
        answer = desk.ask(ask)
        assert isinstance(answer, LookFailed)
        assert "ZeroDivisionError" in str(answer)
        assert "secret" not in str(answer)
    assert desk.lease(3) == [1, 2, 3]
    assert not isinstance(desk.ask(ask), Exception)


def test_a_look_that_finds_an_invariant_broken_stops_the_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    monkeypatch.setattr(owner, "snapshot", broken(AssertionError("counts differ")))
    with pytest.raises(OwnerStopped):
        desk.ask(Measure())
