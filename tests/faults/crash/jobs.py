"""What a job of the crash tests is, told by its name alone.

Both sides know it: the process that is killed, and the one that keeps the account.
"""

from typing import Final
from zlib import crc32

import headway
from headway.core.spec import JobSpec
from headway.runtime.verbs import JobFields

QUEUES: Final = ("mail", "calls")
LONG_MS: Final = 3_600_000
SHORT_MS: Final = 120
_SIZES_BYTES: Final = (0, 0, 200, 3_000)
_DAY_MS: Final = 86_400_000


def configs() -> list[headway.QueueConfig]:
    """No job of them dies by itself: whatever goes, somebody has ended."""
    return [
        headway.QueueConfig(
            name=name,
            attempts_max=100_000,
            timeout_ms=_DAY_MS,
            lifetime_ms=90 * _DAY_MS,
        )
        for name in QUEUES
    ]


def is_keyed(name: str) -> bool:
    """With an idempotency key: it may be enqueued again if nobody knows."""
    return name.startswith("i")


def queue_of(name: str) -> str:
    return QUEUES[int(name[1])]


def payload_of(name: str) -> bytes:
    number = crc32(name.encode())
    size_bytes = _SIZES_BYTES[(number >> 4) % len(_SIZES_BYTES)]
    return name.encode() + b" " + bytes([number % 251]) * size_bytes


def name_of(payload: bytes) -> str:
    """The name; "garbled" if the payload is not what was enqueued."""
    name = payload.split(b" ", 1)[0].decode(errors="replace")
    return name if payload_of(name) == payload else "garbled"


def fields_of(name: str) -> JobFields:
    """The same for every attempt to enqueue it."""
    number = crc32(name.encode())
    fields = JobFields(
        tenant=f"tenant-{number % 5}",
        slo=("5s", "30s")[number >> 8 & 1],
        delay=(number >> 10) % 150 if number % 7 == 0 else 0,
    )
    if is_keyed(name):
        fields["idempotency_key"] = name
    return fields


def spec_of(name: str) -> JobSpec:
    return headway.spec(payload_of(name), **fields_of(name))
