"""What an application has left in the inbox of a store, as the owner is asked for it."""

from typing import Protocol

import msgspec

from headway.core.commands import Command, Decision, Enqueue
from headway.core.errors import QueueFull, RuleBroken
from headway.store.port import Entry


class Heard(Protocol):
    """Whoever wants to know how an owner fares; told in other threads."""

    def replaced(self) -> None:
        """Another owner has taken over, and this one has stopped for good."""

    def found(self, queue: str) -> None:
        """There are jobs for this queue in the inbox, for the first time."""

    def refused(self, queue: str, why: str) -> None:
        """Jobs that stay in the inbox, since they can't be accepted."""


class Refused(msgspec.Struct, frozen=True):
    """Why an entry can't be read; the answer to it, too."""

    code: str
    why: str


class Inbound(msgspec.Struct, eq=False):
    """Jobs that are accepted in the same commit that takes them out of the inbox.

    Answered like its command. What is refused stays there, with the reason, unless its
    queue is only full.
    """

    xact: int
    number: int
    command: Enqueue | None
    refusal: Refused | None = None
    """Why it is no command at all."""


class Arrivals:
    """What came out of the inbox and is not decided yet."""

    def __init__(self) -> None:
        self._asked: dict[Command, Inbound] = {}
        self._unreadable: list[tuple[Inbound, Refused]] = []

    def __bool__(self) -> bool:
        return bool(self._asked or self._unreadable)

    def add(self, ask: Inbound) -> list[Enqueue]:
        """What of it is to be decided."""
        if ask.command is not None:
            self._asked[ask.command] = ask
            return [ask.command]
        assert ask.refusal is not None
        self._unreadable.append((ask, ask.refusal))
        return []

    def entries(self, decision: Decision) -> list[Entry]:
        """What becomes of the inbox in the commit of this decision."""
        found: list[Entry] = [
            (ask.xact, ask.number, refusal.why) for ask, refusal in self._unreadable
        ]
        for command, answer in decision.answers:
            ask = self._asked.get(command)
            if ask is None or isinstance(answer, QueueFull):
                continue
            why = answer.code if isinstance(answer, RuleBroken) else None
            found.append((ask.xact, ask.number, why))
        return found

    def told(self) -> list[tuple[Inbound, Refused]]:
        """Answers to what was no command, once that is written."""
        told, self._unreadable = self._unreadable, []
        return told

    def asked_by(self, command: Command) -> Inbound | None:
        return self._asked.pop(command, None)
