"""Rows that are put into a table, many by one statement."""

from typing import Any, Final

import apsw

from headway.search.statements import ROWS

_ROWS: Final[int] = ROWS


class Puts:
    """Rows of one table, in the order of their keys."""

    def __init__(self, connection: apsw.Connection, one: str, many: str) -> None:
        """A statement that puts one row in, and one for as many as are put at once."""
        self._connection = connection
        self._one = one
        self._many = many
        self._rows: list[tuple[Any, ...]] = []

    def put(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) == _ROWS:
            values: list[Any] = []
            for each in self._rows:
                values.extend(each)
            self._rows.clear()
            self._connection.execute(self._many, values)

    def finish(self) -> None:
        """Those that are too few."""
        if self._rows:
            self._connection.executemany(self._one, self._rows)
            self._rows.clear()
