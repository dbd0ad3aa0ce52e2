"""How a server is started: options, and the variables of the environment."""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from headway.core.errors import BadValue
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
_PARTITION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Secret(msgspec.Struct, frozen=True):
    """Something that no log, message or traceback may show."""

    value: str

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server needs to know to start."""

    data: Path
    store: Secret | None = None
    """The address of a database that holds the jobs, in place of a file in `data`."""
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

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise BadValue("port", self.port, "must be from 0 to 65535")
        if not _PARTITION.fullmatch(self.partition):
            rule = "must have 1 to 64 letters, digits, dashes and underscores"
            raise BadValue("partition", self.partition, rule)
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
            return InFile(self.data / STORE)
        return InDatabase(self.store.value, self.partition)

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


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
