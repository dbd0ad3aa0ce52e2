"""What a handler answers: a response, or what has to be asked before there is one."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from headway.core.commands import Configure
from headway.core.config import QueueConfig
from headway.core.errors import UnknownQueue
from headway.runtime.owner import Ask
from headway.server.http.message import Response


class Asked(msgspec.Struct):
    """Put these to the owner; `then` makes the next plan of the answers.

    Errors are answers, too: a handler that does not look at them calls `each_good`.
    """

    asks: list[Ask]
    then: Callable[[list[Any]], "Plan"]


class InThread(msgspec.Struct):
    """Do this in a thread, since it may take a while."""

    work: Callable[[], "Plan"]


class Waiting(Protocol):
    """Something that is under way, and may be given up."""

    @property
    def is_waiting(self) -> bool:
        """It waits for what may be long in coming."""
        ...

    def abandon(self) -> None:
        """Nobody wants to know any more."""
        ...


class Awaited(msgspec.Struct):
    """Begin to wait; whoever has the next plan gives it to the function, once."""

    begin: Callable[[Callable[["Plan"], None]], Waiting]


Plan = Response | Asked | InThread | Awaited


def good(answer: Any) -> Any:
    """The answer; an error is raised."""
    if isinstance(answer, Exception):
        raise answer
    return answer


def ask(ask: Ask, then: Callable[[Any], Plan]) -> Asked:
    """One ask; errors are told to the client as they are."""
    return Asked([ask], lambda answers: then(good(answers[0])))


def made(queues: list[str], ask: Ask, then: Callable[[Any], Plan]) -> Asked:
    """One ask; queues that it names and that are not there are made, and asked again."""
    return Asked([ask], _Made(queues, ask, then).first)


class _Made:
    """What is made of the answers; no function of it is built for each request."""

    __slots__ = ("_ask", "_queues", "_then")

    def __init__(
        self, queues: list[str], ask: Ask, then: Callable[[Any], Plan]
    ) -> None:
        self._queues = queues
        self._ask = ask
        self._then = then

    def first(self, answers: list[Any]) -> Plan:
        if not self._queues or not isinstance(answers[0], UnknownQueue):
            return self._then(good(answers[0]))
        names = self._queues
        makes = [Configure(QueueConfig(name=name), is_new_only=True) for name in names]
        return Asked([*makes, self._ask], self._second)

    def _second(self, answers: list[Any]) -> Plan:
        for made_or_not in answers:
            good(made_or_not)
        return self._then(answers[-1])
