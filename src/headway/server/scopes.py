"""Who may do what: verbs, on queues whose names match a pattern."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self

import msgspec

from headway.core.errors import BadValue
from headway.server.rates import Allowance

EVERY: Final = "*"
ADMIN: Final = "admin"
"""Short for every verb on every queue."""
_PATTERN: Final = re.compile(r"\*|[A-Za-z0-9][A-Za-z0-9._-]{0,127}\*?")


class Verb(StrEnum):
    """What a token may be good for."""

    ENQUEUE = "enqueue"
    WORK = "work"
    """Lease, extend, ack, nack, release, wait."""
    REPLY = "reply"
    READ = "read"
    MANAGE = "manage"
    """Configure, pause, resume, cancel, redrive, purge, schedule."""
    OPERATE = "operate"
    """Block and unblock, tokens and everything that is above a queue's owner."""
    METRICS = "metrics"
    OPEN = "open"
    """What anybody may ask: whether the server lives, and how to speak to it."""
    SIGNED = "signed"
    """What proves itself by its signature, and asks for no token."""

    @property
    def is_scope(self) -> bool:
        """Whether a token can be good for it."""
        return self not in (Verb.OPEN, Verb.SIGNED)


class Scope(msgspec.Struct, frozen=True):
    """One verb on the queues of a pattern: a name, a beginning with *, or * for all."""

    verb: Verb
    pattern: str = EVERY

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads "enqueue:orders-*"; without a pattern it is good for every queue."""
        name, colon, pattern = text.partition(":")
        known = [verb.value for verb in Verb if verb.is_scope]
        if name not in known:
            raise BadValue("scope", text, f"must begin with one of {', '.join(known)}")
        if not colon:
            pattern = EVERY
        # "work:" is a variable that was not set, and not a wish for everything.
        if not _PATTERN.fullmatch(pattern):
            raise BadValue("scope", text, "must end in a queue, or its beginning and *")
        return cls(Verb(name), pattern)

    def __str__(self) -> str:
        return f"{self.verb}:{self.pattern}"

    def covers(self, verb: Verb, queue: str | None) -> bool:
        """Whether it allows this; without a queue it must be good for all of them."""
        if self.verb is not verb:
            return False
        if self.pattern == EVERY:
            return True
        if queue is None:
            return False
        if self.pattern.endswith("*"):
            return queue.startswith(self.pattern[:-1])
        return queue == self.pattern


class Bearer:
    """Whoever sent a request, and what they may do."""

    def __init__(
        self, name: str, scopes: Iterable[Scope], allowance: Allowance | None = None
    ) -> None:
        self.name = name
        self.allowance = allowance
        """What is left of the requests that they may make; None if nothing bounds it."""
        self.scopes = tuple(scopes)
        self._verbs = frozenset(scope.verb for scope in self.scopes)
        self._seen: dict[tuple[Verb, str | None], bool] = {}

    def may(self, verb: Verb, queue: str | None = None) -> bool:
        key = (verb, queue)
        known = self._seen.get(key)
        if known is None:
            if not verb.is_scope:
                return True
            if len(self._seen) > 1_000:
                self._seen.clear()
            known = any(scope.covers(verb, queue) for scope in self.scopes)
            self._seen[key] = known
        return known

    def patterns(self, verb: Verb) -> tuple[str, ...]:
        """The names and beginnings of names of queues on which it is allowed."""
        found = [scope.pattern for scope in self.scopes if scope.verb is verb]
        return tuple(dict.fromkeys(found))

    def may_some(self, verb: Verb) -> bool:
        """Whether it is allowed on any queue at all."""
        return not verb.is_scope or verb in self._verbs


def parse_scopes(texts: Iterable[str]) -> list[Scope]:
    """Reads scopes; "admin" stands for all there are."""
    scopes: list[Scope] = []
    for text in texts:
        scopes += ALL if text == ADMIN else [Scope.parse(text)]
    return scopes


ALL: Final = tuple(Scope(verb) for verb in Verb if verb.is_scope)
ANYBODY: Final = Bearer("anybody", ALL)
"""On loopback, where no tokens were made."""
NODE: Final = Bearer("node", ALL)
"""A node of the cluster, of its own accord."""
NOBODY: Final = Bearer("nobody", ())
