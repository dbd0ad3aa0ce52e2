"""A request that was answered is gone at once: nothing waits for the collector."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from headway.core.commands import Accepted, Enqueue
from headway.core.errors import UnknownQueue
from headway.server.handlers.room import held_back
from headway.server.http.message import Response
from headway.server.plans import Asked, ask, made


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("is_new", [False, True])
def test_an_enqueue_leaves_nothing_behind(is_new: bool) -> None:
    for _ in range(10):
        _enqueue(is_new=is_new)
    assert gc.collect() == 0


@pytest.mark.usefixtures("uncollected")
def test_a_question_leaves_nothing_behind() -> None:
    for _ in range(10):
        plan = ask(Enqueue("q", []), lambda _: Response(200, b""))
        assert isinstance(plan.then([Accepted([1], 0, [None])]), Response)
        del plan
    assert gc.collect() == 0


def _enqueue(*, is_new: bool) -> None:
    call: Any = object()
    first = made(["q"], Enqueue("q", []), lambda _: Response(201, b""))
    plan = held_back(call, first)
    if is_new:
        again = plan.then([UnknownQueue("q")])
        assert isinstance(again, Asked)
        assert len(again.asks) == 2
        plan = again
    accepted = Accepted([1], 0, [None])
    assert isinstance(plan.then([accepted, accepted]), Response)
