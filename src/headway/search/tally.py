"""What changes in the counts by a batch, added up before it is written."""

from collections import Counter
from typing import Final

import apsw

from headway.search import statements as sql
from headway.search.error_lines import first_line
from headway.search.rows import ENDED

GROUPS_MAX: Final = 1_000
"""Groups of dead letters in a queue; beyond them only the reason counts."""
KNOWN_MAX: Final = 10_000
Name = tuple[str, str, int, int]
"""What jobs are counted by: queue, tenant, state and SLO."""


class Groups:
    """The groups of dead letters, by what they died of."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, str, str], int] = {}

    def of(self, queue: str, reason: str, error: str) -> int:
        """The group that a dead letter belongs to; it is made if there is none."""
        name = (queue, reason, first_line(error))
        number = self._known.get(name)
        if number is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            number = self._known[name] = self._find(name) or self._make(name)
        return number

    def count(self, counts: Counter[int]) -> None:
        changes = [(n, number) for number, n in counts.items() if n]
        self._connection.executemany(sql.COUNT_GROUP, changes)
        fallen = [(number,) for n, number in changes if n < 0]
        if fallen:
            self._connection.executemany(sql.FORGET_GROUP, fallen)
            self._known.clear()

    def _find(self, name: tuple[str, str, str]) -> int | None:
        found = self._connection.execute(sql.FIND_GROUP, name).get
        return None if found is None else int(found)

    def _make(self, name: tuple[str, str, str]) -> int:
        queue, reason, _ = name
        if self._connection.execute(sql.GROUPS_OF, (queue,)).get >= GROUPS_MAX:
            name = (queue, reason, "")
            if (found := self._find(name)) is not None:
                return found
        self._connection.execute(sql.PUT_GROUP, name)
        return self._connection.last_insert_rowid()


class Tally:
    """Jobs that came to a state or left it, by queue, tenant and lane."""

    def __init__(self) -> None:
        self.counts: Counter[Name] = Counter()
        self.groups: Counter[int] = Counter()

    @property
    def ended(self) -> int:
        """By how many the jobs that are over have grown."""
        return sum(n for name, n in self.counts.items() if name[2] in ENDED)

    def drop(self, name: Name, group: int, jobs: int) -> None:
        """Jobs of one name and group leave the index; 0 is no group."""
        self.counts[name] -= jobs
        if group:
            self.groups[group] -= jobs

    def write(self, connection: apsw.Connection, groups: Groups) -> None:
        changes = {name: n for name, n in self.counts.items() if n}
        connection.executemany(sql.COUNT, [(*name, n) for name, n in changes.items()])
        fallen = [name for name, n in changes.items() if n < 0]
        connection.executemany(sql.FORGET_COUNT, fallen)
        lanes: Counter[tuple[str, int, int]] = Counter()
        for (queue, _, state, slo_ms), n in changes.items():
            lanes[queue, slo_ms, state] += n
        connection.executemany(
            sql.COUNT_LANE, [(*lane, n) for lane, n in lanes.items() if n]
        )
        connection.executemany(
            sql.FORGET_LANE, [lane for lane, n in lanes.items() if n < 0]
        )
        groups.count(self.groups)
