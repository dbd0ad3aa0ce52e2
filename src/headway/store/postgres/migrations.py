"""Brings a database to the newest step, one at a time, whoever else tries to.

A step only adds: code that knows the steps up to `least` goes on beside newer code
until all of it is replaced. What nobody needs any more is removed by a later step.
"""

from typing import Any, Final, NamedTuple

import psycopg

from headway.store.errors import NotAStore, SchemaBehind, SchemaUnknown
from headway.store.postgres.connections import connect, failure
from headway.store.postgres.steps import STEPS, Step

LOCK: Final = 0x48445759
"""The advisory lock under which steps are taken; held to the end of a transaction."""
_OURS: Final = "SELECT to_regclass('headway.steps') IS NOT NULL"
_THERE: Final = "SELECT count(*) FROM pg_namespace WHERE nspname = 'headway'"
_STATE: Final = (
    "SELECT coalesce(max(number), 0), coalesce(max(least), 0) FROM headway.steps"
)
_BEGIN: Final = """
CREATE SCHEMA headway;
CREATE TABLE headway.steps(
    number integer PRIMARY KEY,
    least integer NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now()
);
"""


class State(NamedTuple):
    """How far a database is."""

    number: int
    """Steps that were taken; 0 if there is nothing of ours."""
    least: int
    """How many steps code must know to work with it."""


def state(connection: Any) -> State:
    if not connection.execute(_OURS).fetchone()[0]:
        if connection.execute(_THERE).fetchone()[0]:
            raise NotAStore("the database has a schema `headway` of something else")
        return State(0, 0)
    return State(*connection.execute(_STATE).fetchone())


def check(connection: Any, steps: tuple[Step, ...] = STEPS) -> None:
    """Raises unless this code can work with the database as it is."""
    found = state(connection)
    if found.least > len(steps):
        raise SchemaUnknown(
            f"the database has schema {found.number}, which needs a version that knows "
            f"schema {found.least}; this one knows schemas up to {len(steps)}"
        )
    if found.number < len(steps):
        raise SchemaBehind(
            f"the database has schema {found.number}, and this version needs "
            f"{len(steps)}: run `headway migrate` first"
        )


def migrate(
    address: str, *, is_dry: bool = False, steps: tuple[Step, ...] = STEPS
) -> tuple[State, State]:
    """Takes the steps that are missing: answers how far it was, and how far it is.

    A dry run takes them, too, and then takes all of it back.
    """
    connection = connect(address)
    try:
        with connection.transaction(force_rollback=is_dry):
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            before = state(connection)
            if before.least > len(steps):
                check(connection, steps)
            if before.number == 0:
                connection.execute(_BEGIN)
            for number in range(before.number + 1, len(steps) + 1):
                _take(connection, number, steps[number - 1])
            after = state(connection)
        return before, after
    except psycopg.Error as error:
        raise failure(error) from error
    finally:
        connection.close()


def _take(connection: Any, number: int, step: Step) -> None:
    connection.execute(step.text)
    connection.execute(
        "INSERT INTO headway.steps(number, least) VALUES(%s, %s)", (number, step.least)
    )
