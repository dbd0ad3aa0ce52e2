"""Callback sources: partners who answer by signed requests, without a token."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from headway.core.errors import BadValue
from headway.server import signatures
from headway.server.private import PrivateFile, Seen
from headway.server.tokens import NAME, wall_ms
from headway.wire.expressions import Expression, parse
from headway.wire.values import QueueName

FILE: Final = "callbacks.json"
SOURCES_MAX: Final = 1_000
ROOTS: Final = ("value", "id", "url")
"""The body, the id of the message, and what follows the source in the address."""
_NAME: Final = re.compile(NAME)


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a partner signs with. A signature can't be checked by a hash of it."""

    secret: str
    created_ms: int
    until_ms: int | None = None
    """It was rotated, and is good until then."""


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One source as it is kept."""

    name: Annotated[str, Meta(pattern=NAME)]
    queue: QueueName
    key: str
    """Where the reply's key is."""
    value: str = "value"
    secrets: Annotated[list[Secret], Meta(min_length=1, max_length=2)]
    """The newest first."""
    created_ms: int


class _Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sources: Annotated[list[Kept], Meta(max_length=SOURCES_MAX)]


class Source:
    """A source that is ready to be asked."""

    def __init__(self, kept: Kept) -> None:
        """Raises BadValue if an expression or a secret is none."""
        self.name = kept.name
        self.queue = kept.queue
        self.key: Expression = parse(kept.key, "key", ROOTS)
        self.value: Expression = parse(kept.value, "value", ROOTS)
        self._keys = [
            (signatures.key_of(one.secret), one.until_ms) for one in kept.secrets
        ]

    @property
    def is_key_in_url(self) -> bool:
        return "url" in self.key.roots | self.value.roots

    def keys(self, now_ms: int) -> list[bytes]:
        """What it may sign with now."""
        return [
            key for key, until_ms in self._keys if until_ms is None or now_ms < until_ms
        ]


class CallbackFile:
    """The sources of a server's folder, as one file that is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._file = PrivateFile(folder / FILE, "callbacks")

    def read(self) -> list[Kept]:
        return self.look()[0]

    def look(self) -> tuple[list[Kept], Seen | None]:
        """The sources and what the file looked like; none of either without a file."""
        content, seen = self._file.look()
        return [] if content is None else self._parsed(content), seen

    def seen(self) -> Seen | None:
        return self._file.seen()

    def add(self, source: Kept) -> None:
        if not _NAME.fullmatch(source.name):
            rule = "must have 1 to 64 letters, digits, dots, dashes and underscores"
            raise BadValue("name", source.name, rule)
        try:
            msgspec.convert(source.queue, QueueName)
        except msgspec.ValidationError:
            raise BadValue("queue", source.queue, "no queue has this name") from None
        Source(source)
        with self._file.locked():
            sources = self.read()
            if any(known.name == source.name for known in sources):
                raise BadValue("name", source.name, "there is a source of this name")
            if len(sources) >= SOURCES_MAX:
                rule = f"there are {SOURCES_MAX} sources already"
                raise BadValue("name", source.name, rule)
            self._write([*sources, source])

    def rotate(self, name: str, secret: str, now_ms: int, keep_ms: int) -> None:
        """Another secret; the one before it stays good for so long."""
        signatures.key_of(secret)
        with self._file.locked():
            sources = self.read()
            before = _named(sources, name)
            old = before.secrets[0]
            kept = [msgspec.structs.replace(old, until_ms=now_ms + keep_ms)]
            fresh = [Secret(secret, now_ms), *(kept if keep_ms else [])]
            after = msgspec.structs.replace(before, secrets=fresh)
            self._write([after if one is before else one for one in sources])

    def remove(self, name: str) -> None:
        with self._file.locked():
            sources = self.read()
            gone = _named(sources, name)
            self._write([one for one in sources if one is not gone])

    def _parsed(self, content: bytes) -> list[Kept]:
        try:
            sources = msgspec.json.decode(content, type=_Sources).sources
            if len({source.name for source in sources}) != len(sources):
                raise ValueError("a name is given twice")
            for source in sources:
                Source(source)
        except (ValueError, BadValue, RecursionError) as error:
            raise self._file.unreadable(error) from error
        return sources

    def _write(self, sources: list[Kept]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_Sources(sources)), indent=2)
        self._file.replace(content + b"\n")


class Told(Protocol):
    """Hears of what became of the sources."""

    def happened(self, event: str, **fields: object) -> None: ...

    def not_read(self, what: str, error: Exception) -> None: ...


class Callbacks:
    """The sources that a running server knows."""

    def __init__(
        self, file: CallbackFile, told: Told, now_ms: Callable[[], int] = wall_ms
    ) -> None:
        """Raises if the file can't be read."""
        self._file = file
        self._told = told
        self._now_ms = now_ms
        kept, self._seen = file.look()
        self._known = {one.name: Source(one) for one in kept}

    def find(
        self, name: str, headers: Mapping[bytes, bytes], body: bytes
    ) -> tuple[Source, bytes]:
        """The source that signed the body, and the id of its message; else refuses."""
        source = self._known.get(name)
        now_ms = self._now_ms()
        keys = [] if source is None else source.keys(now_ms)
        message_id = signatures.check(keys, headers, body, now_ms)
        assert source is not None
        return source, message_id

    def queue_of(self, name: str) -> str | None:
        """The queue of a source; whether a request is really of it is not looked at."""
        source = self._known.get(name)
        return None if source is None else source.queue

    def check(self) -> None:
        """Reads the file again if it has changed; what can't be read changes nothing."""
        try:
            seen = self._file.seen()
            if seen == self._seen:
                return
            self._seen = seen
            kept, self._seen = self._file.look()
        except (BadValue, OSError) as error:
            self._told.not_read("callbacks", error)
            return
        self._known = {one.name: Source(one) for one in kept}
        self._told.happened("callbacks read", sources=len(kept))


def _named(sources: list[Kept], name: str) -> Kept:
    for source in sources:
        if source.name == name:
            return source
    raise BadValue("name", name, "there is no source of this name")
