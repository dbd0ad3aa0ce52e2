"""How a server is started: options, and the variables of the environment."""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from headway.core.errors import BadValue
from headway.runtime.throttler import NONE, Throttling
from headway.server.http.limits import Limits
from headway.server.truth import InDatabase, InFile, Truth

PORT: Final = 8080
PARTITION: Final = "p1"
DEFAULT_QUEUE: Final = "default"
STORE: Final = "headway.db"
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
INDEX: Final = "search.db"
WRITES: Final = "writes"
"""The folder of writes that were not taken in yet."""
LEASE_MS: Final = 10_000
LEASE_MIN_MS: Final = 500
LEASE_MAX_MS: Final = 600_000
PARTITIONS_MAX: Final = 1_024
_PARTITION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Secret(msgspec.Struct, frozen=True):
    """Something that no log, message or traceback may show."""

    value: str

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """How a server takes part in a cluster."""

    name: str
    advertise: str | None = None
    """Where the others reach it; without, where it listens."""
    lease_ms: int = LEASE_MS
    """It holds its partitions for so long after it was last heard of."""
    partitions: int = 1
    """With so many the first node begins."""
    databases: Mapping[str, Secret] = {}
    """Other databases that hold partitions, by name."""
    peer_ca: Path | None = None
    """Certificates that other nodes are trusted by, as PEM; without, the system's."""

    def __post_init__(self) -> None:
        if not _NODE.fullmatch(self.name):
            rule = "must have 1 to 64 letters, digits, dots, dashes and underscores"
            raise BadValue("node", self.name, rule)
        if not LEASE_MIN_MS <= self.lease_ms <= LEASE_MAX_MS:
            raise BadValue("lease", self.lease_ms, "must be from 500ms to 10m")
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            rule = f"must be from 1 to {PARTITIONS_MAX}"
            raise BadValue("partitions", self.partitions, rule)
        if self.advertise is not None:
            check_url(self.advertise)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server needs to know to start."""

    data: Path
    writes: Path | None = None
    """A folder for staged writes that nodes share, in place of one in `data`."""
    store: Secret | None = None
    """The address of a database that holds the jobs, in place of a file in `data`."""
    is_apart: bool = False
    """The file has its owner in a process of its own."""
    host: str = "127.0.0.1"
    port: int = PORT
    """0 takes any that is free."""
    partition: str = PARTITION
    default_queue: str = DEFAULT_QUEUE
    queue_length: int | None = None
    """Of the default queue: how many jobs it refuses to reach."""
    certificate: Path | None = None
    private_key: Path | None = None
    hosts: tuple[str, ...] = ()
    """Names by which it may be called, beside its address."""
    grace_s: float = 10.0
    """How long requests that are being answered may take when it stops."""
    limits: Limits = Limits()
    log_level: str = "info"
    throttling: Throttling = NONE
    """Code of the operator's that is asked before jobs of a queue start."""
    member: Member | None = None
    """Its place in a cluster, if it is a node of one."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise BadValue("port", self.port, "must be from 0 to 65535")
        check_partition(self.partition)
        if self.member is not None and self.store is None:
            raise BadValue("node", self.member.name, "needs a database: --store")
        if self.is_apart and self.store is not None:
            raise BadValue("apart", "yes", "is for a file: with --store there is none")
        if self.queue_length is not None and self.queue_length < 1:
            raise BadValue("queue_length", self.queue_length, "must be above 0")
        if (self.certificate is None) != (self.private_key is None):
            raise BadValue("tls", "", "needs a certificate and its private key")
        if self.log_level not in LOG_LEVELS:
            rule = f"must be one of {', '.join(LOG_LEVELS)}"
            raise BadValue("log_level", self.log_level, rule)

    @property
    def truth(self) -> Truth:
        """Where the jobs are."""
        if self.store is None:
            return InFile(
                self.data / STORE, is_apart=self.is_apart, throttling=self.throttling
            )
        return InDatabase(self.store.value, self.partition, self.throttling)

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def check_partition(name: str) -> str:
    if not _PARTITION.fullmatch(name):
        rule = "must have 1 to 64 letters, digits, dashes and underscores"
        raise BadValue("partition", name, rule)
    return name


def check_url(text: str) -> None:
    """Of a server: a scheme, a host and perhaps a port, and nothing else."""
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_good = is_good and parts.port != 0 and parts.username is None
    except ValueError:
        is_good = False
    if not is_good or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadValue("advertise", text, "must be a URL such as http://10.0.0.7:8080")


def from_environment(values: Mapping[str, str]) -> dict[str, object]:
    """What HTTP_PORT, PARTITION and QUEUE_LEN say; options go before them."""
    found: dict[str, object] = {}
    for name, key in (("HTTP_PORT", "port"), ("QUEUE_LEN", "queue_length")):
        if text := values.get(name, ""):
            if not (text.isascii() and text.isdecimal() and len(text) <= 12):
                raise BadValue(name, text, "must be a whole number")
            found[key] = int(text)
    if text := values.get("PARTITION", ""):
        found["partition"] = text
    return found
