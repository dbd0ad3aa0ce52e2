"""At the gate: from where a request comes, for whom it is meant, and who sent it."""

import re
import time
from collections.abc import Callable, Iterable
from math import ceil
from typing import Final, Protocol

from headway.server.http.message import Request
from headway.server.problems import Refused
from headway.server.rates import Allowance
from headway.server.scopes import ANYBODY, NOBODY, NODE, Bearer, Verb

_BEARER: Final = b"bearer "
_HOST: Final = re.compile(rb"(\[[0-9a-f:.]+\]|[a-z0-9._-]*)(?::[0-9]{0,5})?", re.I)
_OWN: Final = frozenset({b"same-origin", b"none"})
"""Pages of this server, and what a person has typed."""
_LOOKS: Final = frozenset({Verb.READ, Verb.METRICS, Verb.OPEN})
"""A GET for one of these changes nothing, and other sites can't read its answer."""
_GOOD_MAX: Final = 100
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Tokens(Protocol):
    """The tokens that were made."""

    @property
    def is_required(self) -> bool:
        """Whether there are any; else everybody may do everything."""
        ...

    def find(self, secret: bytes) -> Bearer | None:
        """Whose token it is; None if it is nobody's, or has expired."""
        ...


class Guard:
    """Lets in whom it may."""

    def __init__(
        self,
        tokens: Tokens,
        address: str,
        hosts: Iterable[str],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hosts` are names by which the server may be called, beside its address.

        If there are none, a server with tokens may be called by any: a page that was
        led here under a false name has no token.
        """
        self._tokens = tokens
        self._now_s = now_s
        self.over_rate = 0
        """Requests that were refused since their token has made too many."""
        named = frozenset(map(host_name, hosts))
        self._is_any_host = not named
        self._hosts = LOOPBACK | {host_name(address)} | named
        self._good: set[bytes] = set()
        """Host headers that were let in: what was good once stays good."""

    def check_host(self, request: Request) -> None:
        """Refuses what was meant for another server, or led here by a false name."""
        host = request.headers.get(b"host", b"")
        if host in self._good:
            return
        match = _HOST.fullmatch(host)
        if match is None:
            raise Refused("bad_value", "it names no host", "Host")
        name = match[1].decode().lower()
        is_any = self._is_any_host and self._tokens.is_required
        if name not in self._hosts and not is_any:
            raise Refused("misdirected", f"this server is not called {name[:80]!r}")
        if len(self._good) < _GOOD_MAX:
            self._good.add(host)

    def check_site(self, request: Request, verb: Verb) -> None:
        """Refuses what another site's page made a browser send."""
        if verb in _LOOKS and request.method in (b"GET", b"HEAD"):
            return
        headers = request.headers
        if headers.get(b"sec-fetch-site", b"none").lower() not in _OWN:
            raise Refused("cross_site")
        origin = headers.get(b"origin")
        if origin is not None:
            there = origin.lower().partition(b"://")[2]
            if not there or there != headers.get(b"host", b"").lower():
                raise Refused("cross_site")

    def bearer(self, request: Request, verb: Verb) -> Bearer:
        """Who sent it. Without a token that is known there is no more to be said."""
        if verb is Verb.SIGNED:
            # Nobody, until the signature says who; on an open server, too.
            return NOBODY
        if request.is_own:
            return NODE
        if not self._tokens.is_required:
            return ANYBODY
        if verb is Verb.OPEN:
            return NOBODY
        given = request.headers.get(b"authorization")
        if given is None or given[:7].lower() != _BEARER:
            raise Refused("unauthorized", "send Authorization: Bearer and a token")
        found = self._tokens.find(given[7:].strip())
        if found is None:
            raise Refused("unauthorized", "the token is not known, or has expired")
        if found.allowance is not None and not request.is_counted:
            self._count(found, found.allowance)
            request.is_counted = True
        return found

    def _count(self, bearer: Bearer, allowance: Allowance) -> None:
        wait_s = allowance.take(self._now_s())
        if wait_s > 0:
            self.over_rate += 1
            text = f"token {bearer.name!r} may make {allowance.rate} requests"
            raise Refused("rate_limited", text, retry_s=ceil(wait_s))


def host_name(host: str) -> str:
    """A host as a Host header names it, without its port."""
    host = host.lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    # An address of IPv6 goes without brackets on the command line.
    return f"[{host}]" if host.count(":") > 1 else host.partition(":")[0]
