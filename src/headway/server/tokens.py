"""Tokens of those who may call: shown once, kept as hashes, read again on a change."""

import re
import secrets
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from headway.core.errors import BadValue
from headway.server.private import PrivateFile, Seen
from headway.server.rates import RATE, Allowance, RequestRate
from headway.server.scopes import Bearer, Scope, parse_scopes

FILE: Final = "tokens.json"
PREFIX: Final = "hw_"
SECRET_BYTES: Final = 32
TOKENS_MAX: Final = 10_000
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_NAME: Final = re.compile(NAME)


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is kept of a token: enough to know it again, too little to use it."""

    name: Annotated[str, Meta(pattern=NAME)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    scopes: Annotated[list[str], Meta(min_length=1)]
    created_ms: int
    expires_ms: int | None = None
    rate: Annotated[str, Meta(pattern=RATE)] | None = None


class _Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: Annotated[list[Kept], Meta(max_length=TOKENS_MAX)]


class TokenFile:
    """The tokens of a server's folder, as one file that is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._file = PrivateFile(folder / FILE, "tokens")

    @property
    def path(self) -> Path:
        return self._file.path

    def read(self) -> list[Kept]:
        return self.look()[0]

    def look(self) -> tuple[list[Kept], Seen | None]:
        """The tokens and what the file looked like; none of either without a file."""
        content, seen = self._file.look()
        return [] if content is None else self._parsed(content), seen

    def seen(self) -> Seen | None:
        return self._file.seen()

    def add(
        self,
        name: str,
        scopes: Iterable[Scope],
        now_ms: int,
        expires_ms: int | None = None,
        rate: RequestRate | None = None,
    ) -> str:
        """Makes a token. The answer is its secret, which is kept nowhere."""
        if not _NAME.fullmatch(name):
            rule = "must have 1 to 64 letters, digits, dots, dashes and underscores"
            raise BadValue("name", name, rule)
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        texts = list(dict.fromkeys(map(str, scopes)))
        with self._file.locked():
            tokens = self.read()
            if any(token.name == name for token in tokens):
                raise BadValue("name", name, "there is a token of this name")
            if len(tokens) >= TOKENS_MAX:
                raise BadValue("name", name, f"there are {TOKENS_MAX} tokens already")
            kept = hashed(secret.encode())
            written = None if rate is None else str(rate)
            made = Kept(name, kept, texts, now_ms, expires_ms, written)
            self._write([*tokens, made])
        return secret

    def revoke(self, name: str) -> int:
        """How many tokens are left."""
        with self._file.locked():
            tokens = self.read()
            left = [token for token in tokens if token.name != name]
            if len(left) == len(tokens):
                raise BadValue("name", name, "there is no token of this name")
            self._write(left)
        return len(left)

    def _parsed(self, content: bytes) -> list[Kept]:
        try:
            tokens = msgspec.json.decode(content, type=_Tokens).tokens
            if len({token.name for token in tokens}) != len(tokens):
                raise ValueError("a name is given twice")
            for token in tokens:
                parse_scopes(token.scopes)
        except (ValueError, BadValue, RecursionError) as error:
            raise self._file.unreadable(error) from error
        return tokens

    def _write(self, tokens: list[Kept]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_Tokens(tokens)), indent=2)
        self._file.replace(content + b"\n")


class Told(Protocol):
    """Hears of what became of the tokens."""

    def tokens_read(self, count: int) -> None: ...

    def not_read(self, what: str, error: Exception) -> None: ...


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Keyring:
    """The tokens that a running server knows.

    Once they are required they stay required: neither a file that is gone nor one that
    can't be read opens a server that was closed.
    """

    def __init__(
        self, file: TokenFile, told: Told, now_ms: Callable[[], int] = wall_ms
    ) -> None:
        """Raises if the file can't be read."""
        self._file = file
        self._told = told
        self._now_ms = now_ms
        self._known: dict[str, tuple[Bearer, int | None]] = {}
        self.is_required = False
        tokens, self._seen = file.look()
        self._take(tokens)

    def find(self, secret: bytes) -> Bearer | None:
        """Whose token it is; None if it is nobody's, or has expired."""
        # How long the look takes tells something of the hash, and so nothing of use.
        known = self._known.get(hashed(secret))
        if known is None:
            return None
        bearer, expires_ms = known
        if expires_ms is not None and self._now_ms() >= expires_ms:
            return None
        return bearer

    def check(self) -> None:
        """Reads the file again if it has changed; what can't be read changes nothing.

        But a server that was open is open no more: somebody meant to close it.
        """
        try:
            seen = self._file.seen()
            if seen == self._seen:
                return
            self._seen = seen
            tokens, self._seen = self._file.look()
        except (BadValue, OSError) as error:
            self.is_required = True
            self._told.not_read("tokens", error)
            return
        self._take(tokens)
        self._told.tokens_read(len(tokens))

    def _take(self, tokens: list[Kept]) -> None:
        before, self._known = self._known, {}
        for token in tokens:
            was, _ = before.get(token.sha256, (None, None))
            bearer = Bearer(
                token.name, parse_scopes(token.scopes), _allowance(token, was)
            )
            self._known[token.sha256] = bearer, token.expires_ms
        self.is_required = self.is_required or bool(tokens)


def _allowance(token: Kept, was: Bearer | None) -> Allowance | None:
    """A fresh one, unless the token had one of this rate: no file fills it again."""
    if token.rate is None:
        return None
    rate = RequestRate.parse(token.rate)
    if was is not None and was.allowance is not None and was.allowance.rate == rate:
        return was.allowance
    return Allowance(rate)


def hashed(secret: bytes) -> str:
    """What is kept of a secret.

    A plain hash is enough: salt and slowness protect what people think up, and nobody
    can try 256 random bits.
    """
    return sha256(secret).hexdigest()
