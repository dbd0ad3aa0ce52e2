"""Bodies of jobs that are read one after the other: most are like one before them.

Jobs that came together differ in their payload, and in their tenant where there are many.
What lies around these is the same byte for byte, and need not be read again.
"""

from typing import Any, Final

import msgspec
from msgspec.structs import astuple, force_setattr

from headway.core.job import Job
from headway.core.spec import JobSpec
from headway.core.states import READY, SCHEDULED
from headway.runtime.forms import Body

MISSES_MAX: Final = 4
"""So many bodies that are like none before them, and nobody looks for likeness more."""

LONG_MAP: Final = 0xDE
SHORT_BYTES: Final = 0xC4
LONG_BYTES: Final = 0xC5
SHORTEST_TEXT: Final = 0xA0
SHORT_TEXT: Final = 0xD9
"""What msgpack begins with: with a length of two bytes, of one, or within itself."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode_body: Final = msgspec.msgpack.Decoder(Body).decode
_KIND: Final = _encode("kind")
_PAYLOAD: Final = _encode("payload")
_IS_JSON: Final = _encode("is_json") + _encode(True)
_TENANT: Final = _encode("tenant")


class Alike:
    """Makes jobs of bodies; remembers one for those that come after it."""

    __slots__ = (
        "_before",
        "_behind",
        "_between",
        "_body",
        "_misses",
        "_rest",
        "_said",
        "_told",
    )

    def __init__(self) -> None:
        self._body: bytes | None = None
        """One that was read..."""
        self._told: tuple[Any, ...] = ()
        """...what it says..."""
        self._said: tuple[Any, ...] = ()
        """...and what its spec does, in the spec's order."""
        self._before: bytes | None = None
        """All of it that lies before its payload; None if that is not known..."""
        self._rest = b""
        """...what lies behind the payload..."""
        self._between: bytes | None = None
        """...of that what lies before its tenant, if it has one..."""
        self._behind = b""
        """...and what behind."""
        self._misses = 0

    def job(self, seq: int, body: bytes) -> Job:
        """One that was enqueued, and nothing else has become of it."""
        spec: JobSpec | None = None
        told, said = self._told, self._said
        if body == self._body:
            spec = self._told[0]
        elif self._before is not None and body.startswith(self._before):
            spec = self._like(body, len(self._before))
        if spec is None:
            told = _decode_body(body)
            spec = told[0]
            said = astuple(spec)
            self._misses += 1
            if self._body is None or 1 < self._misses <= MISSES_MAX:
                # One that differs is mostly alone among others that are alike.
                self._remember(body, told, said)
        else:
            self._misses = 0
        job = Job(seq, spec, told[1], told[7], said)
        job.tenant = spec.tenant
        job.slo_ms = told[2]
        job.priority = told[3]
        run_at_ms: int = told[4]
        job.run_at_ms = run_at_ms
        job.cost = told[5]
        job.attempts_max = told[6]
        job.expires_ms = told[8]
        # It was ready at once unless its time was to come.
        job.state = READY if run_at_ms <= job.enqueued_ms else SCHEDULED
        return job

    def _like(self, body: bytes, at: int) -> JobSpec | None:
        """What it says in place of the payload that is known, and of the tenant."""
        begin, end = _bytes_at(body, at)
        if begin < 0:
            return None
        tenant: str | None = None
        if len(body) - end != len(self._rest) or not body.endswith(self._rest):
            between = self._between
            if between is None or body[end : end + len(between)] != between:
                return None
            first, last = _text_at(body, end + len(between))
            if len(body) - last != len(self._behind) or first < 0:
                return None
            if not body.endswith(self._behind):
                return None
            tenant = body[first:last].decode()
        known: Any = self._told[0]
        spec: JobSpec = known.__copy__()
        force_setattr(spec, "payload", body[begin:end])
        if tenant is not None:
            force_setattr(spec, "tenant", tenant)
        return spec

    def _remember(
        self, body: bytes, told: tuple[Any, ...], said: tuple[Any, ...]
    ) -> None:
        """Looks where its payload and its tenant lie, for those that are like it."""
        self._body = body
        self._told = told
        self._said = said
        spec: JobSpec = told[0]
        self._before = self._between = None
        before = body[: 4 if body[1] == LONG_MAP else 2]
        before += (_KIND + _encode(spec.kind) if spec.kind else b"") + _PAYLOAD
        begin, end = _bytes_at(body, len(before))
        if not body.startswith(before) or body[begin:end] != spec.payload or begin < 0:
            return
        self._before = before
        self._rest = rest = body[end:]
        between = (_IS_JSON if spec.is_json else b"") + _TENANT
        until_behind = between + _encode(spec.tenant)
        if rest.startswith(until_behind):
            self._between = between
            self._behind = rest[len(until_behind) :]


def _bytes_at(body: bytes, at: int) -> tuple[int, int]:
    """From where to where bytes lie that begin with their length; -1 if none do."""
    if at + 2 < len(body):
        if body[at] == SHORT_BYTES:
            return at + 2, at + 2 + body[at + 1]
        if body[at] == LONG_BYTES:
            return at + 3, at + 3 + (body[at + 1] << 8) + body[at + 2]
    return -1, -1


def _text_at(body: bytes, at: int) -> tuple[int, int]:
    """The same of a text."""
    if at + 1 < len(body):
        if body[at] & 0xE0 == SHORTEST_TEXT:
            return at + 1, at + 1 + (body[at] & 0x1F)
        if body[at] == SHORT_TEXT:
            return at + 2, at + 2 + body[at + 1]
    return -1, -1
