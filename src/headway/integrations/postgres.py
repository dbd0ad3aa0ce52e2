"""Jobs that exist exactly if your transaction commits.

They are left in an inbox in the same database, on your own connection: one of psycopg,
asyncpg, SQLAlchemy or Django. The server of the partition takes them from there within
milliseconds of the commit. A transaction that is rolled back leaves nothing.
"""

from collections.abc import Sequence
from typing import Any, Final, ParamSpec

import msgspec

from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from headway.core.spec_check import check_spec
from headway.wire.jobs import NewJob, NewJobs
from headway.wire.shown import new_job
from headway.wire.values import PAYLOAD_MAX, QueueName
from headway.worker.handler import Bound

P = ParamSpec("P")
BYTES_MAX: Final = 16 << 20
_FORMAT: Final = "SELECT headway.enqueue_1(%s::text, %s::text, %s::bytea, %s::boolean)"
_NUMBERED: Final = "SELECT headway.enqueue_1($1, $2, $3, $4)"
_NAMED: Final = """SELECT headway.enqueue_1(CAST(:partition AS text),
    CAST(:queue AS text), CAST(:jobs AS bytea), CAST(:told AS boolean))"""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(NewJobs).decode
_NEW: Final = msgspec.to_builtins(NewJob())
Values = tuple[str, str, bytes, bool]


class Inbox:
    """The inbox of one partition.

    With `is_told` the server is told at the commit that there is something. PostgreSQL
    lets one transaction after another tell; where very many commit at once it may be
    better to let the server look, which it does four times a second.
    """

    def __init__(self, partition: str = "p1", *, is_told: bool = True) -> None:
        self.partition = partition
        self.is_told = is_told

    def enqueue(self, connection: Any, queue: str, *specs: JobSpec) -> None:
        """Leaves jobs, made with `headway.spec`: all of them, if you commit."""
        _execute(connection, self._values(queue, specs))

    async def aenqueue(self, connection: Any, queue: str, *specs: JobSpec) -> None:
        """The same for asyncio."""
        await _aexecute(connection, self._values(queue, specs))

    def call(
        self, connection: Any, bound: Bound[P, Any], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Leaves a call of one of an app's handlers, as its `enqueue` would send it."""

        def put(queue: str, specs: list[JobSpec]) -> list[str]:
            self.enqueue(connection, queue, *specs)
            return [""] * len(specs)

        handler = bound.handler
        handler.hooks.send(handler.queue, [bound.spec(args, kwargs)], put)

    async def acall(
        self, connection: Any, bound: Bound[P, Any], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """The same for asyncio."""

        async def put(queue: str, specs: list[JobSpec]) -> list[str]:
            await self.aenqueue(connection, queue, *specs)
            return [""] * len(specs)

        handler = bound.handler
        await handler.hooks.asend(handler.queue, [bound.spec(args, kwargs)], put)

    def _values(self, queue: str, specs: Sequence[JobSpec]) -> Values:
        return self.partition, _checked(queue), packed(specs), self.is_told


_default: Final = Inbox()
enqueue: Final = _default.enqueue
aenqueue: Final = _default.aenqueue
call: Final = _default.call
acall: Final = _default.acall


def packed(specs: Sequence[JobSpec]) -> bytes:
    """The jobs as the server reads them; raises BadValue for what it would refuse."""
    for spec in specs:
        check_spec(spec)
        if len(spec.payload) > PAYLOAD_MAX:
            rule = f"at most {PAYLOAD_MAX} bytes"
            raise BadValue("payload", len(spec.payload), rule)
    body = _encode([_told(new_job(spec)) for spec in specs])
    if len(body) > BYTES_MAX:
        raise BadValue("jobs", len(body), f"at most {BYTES_MAX} bytes")
    try:
        _decode(body)
    except msgspec.ValidationError as error:
        raise BadValue("jobs", "", str(error)) from error
    return body


def _told(job: NewJob) -> dict[str, Any]:
    """What is said of a job, and no more."""
    fields = {name: getattr(job, name) for name in job.__struct_fields__}
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value is not msgspec.UNSET and value != _NEW.get(name)
    }


def _checked(queue: str) -> str:
    try:
        return msgspec.convert(queue, QueueName)
    except msgspec.ValidationError as error:
        raise BadValue("queue", queue, "is no name of a queue") from error


def _execute(connection: Any, values: Values) -> None:
    match _library(connection):
        case "sqlalchemy":
            connection.execute(*_for_sqlalchemy(values))
        case "django":
            with connection.cursor() as cursor:
                cursor.execute(_FORMAT, values)
        case "psycopg":
            connection.execute(_FORMAT, values)
        case _:
            raise _unknown(connection)


async def _aexecute(connection: Any, values: Values) -> None:
    match _library(connection):
        case "sqlalchemy":
            await connection.execute(*_for_sqlalchemy(values))
        case "asyncpg":
            await connection.execute(_NUMBERED, *values)
        case "psycopg":
            await connection.execute(_FORMAT, values)
        case _:
            raise _unknown(connection)


def _for_sqlalchemy(values: Values) -> tuple[Any, dict[str, object]]:
    from sqlalchemy import text

    names = ("partition", "queue", "jobs", "told")
    return text(_NAMED), dict(zip(names, values, strict=True))


def _library(connection: Any) -> str:
    """Whose connection it is, or whose base class it has."""
    for kind in type(connection).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ("sqlalchemy", "django", "asyncpg", "psycopg"):
            return name
    return ""


def _unknown(connection: Any) -> TypeError:
    return TypeError(
        f"{type(connection).__name__} is no connection of psycopg, asyncpg, SQLAlchemy "
        "or Django that can be used here"
    )
