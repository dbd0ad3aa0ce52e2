"""At the gate: from where a request comes, for whom it is meant, and who sent it."""

from typing import Final, Protocol

from headway.server.http.message import Request
from headway.server.problems import Refused
from headway.server.scopes import ANYBODY, NOBODY, Bearer, Verb

_BEARER: Final = b"bearer "
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})


class Tokens(Protocol):
    """The tokens that were made."""

    def find(self, secret: bytes) -> Bearer | None:
        """Whose token it is; None if it is nobody's, or has expired."""
        ...


class Guard:
    """Lets in whom it may."""

    def __init__(self, tokens: Tokens | None, hosts: frozenset[str]) -> None:
        """Without tokens everybody may do everything, from this machine."""
        self._tokens = tokens
        self._hosts = hosts
        """Names by which the server may be called; empty means: by any."""

    def check_place(self, request: Request) -> None:
        """Refuses what a browser was tricked into sending."""
        headers = request.headers
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = _name(host)
        if self._hosts and name not in self._hosts:
            raise Refused("misdirected", f"this server is not called {name[:80]!r}")
        if request.method in (b"GET", b"HEAD"):
            return
        if headers.get(b"sec-fetch-site", b"same-origin").lower() == b"cross-site":
            raise Refused("cross_site")
        origin = headers.get(b"origin")
        if origin is not None:
            there = origin.decode("latin-1").lower().partition("://")[2]
            if there != host:
                raise Refused("cross_site")

    def bearer(self, request: Request, verb: Verb) -> Bearer:
        """Who sent it. Without a token that is known there is no more to be said."""
        if self._tokens is None:
            return ANYBODY
        given = request.headers.get(b"authorization")
        if verb is Verb.OPEN and given is None:
            return NOBODY
        if given is None or given[:7].lower() != _BEARER:
            raise Refused("unauthorized", "send Authorization: Bearer and a token")
        found = self._tokens.find(given[7:].strip())
        if found is None:
            raise Refused("unauthorized", "the token is not known, or has expired")
        return found


def _name(host: str) -> str:
    """The host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
