"""Accounts in the order in which their averages were last brought up to date."""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headway.core.entitlement import Account

AT_ONCE: Final = 32
"""Accounts whose average is brought up to date with each new level, at most."""
GONE_MIN: Final = 256
"""So many that are no more may stand in the line, or as many as are left."""


class Untouched:
    """Those that stand for themselves, the longest untouched first."""

    __slots__ = ("_gone", "_line")

    def __init__(self) -> None:
        self._line: deque[Account] = deque()
        self._gone = 0
        """How many of the line are no more."""

    def __len__(self) -> int:
        return len(self._line)

    def add(self, account: "Account") -> None:
        self._line.append(account)

    def some(self) -> "list[Account]":
        """The first of them, who are the last from now on."""
        found: list[Account] = []
        line = self._line
        for _ in range(min(AT_ONCE, len(line))):
            account = line.popleft()
            if account.group is account:
                found.append(account)
            else:
                self._gone -= 1
        line.extend(found)
        return found

    def one_is_gone(self) -> None:
        """One of the line is not among the accounts any more.

        Tenants may come and go faster than the line moves: those that are no more leave
        it together, before they are most of it.
        """
        self._gone += 1
        if self._gone > GONE_MIN and 2 * self._gone > len(self._line):
            self._line = deque([x for x in self._line if x.group is x])
            self._gone = 0
