"""The rules of a queue, divided between its partitions so that the sum is the whole."""

from hashlib import blake2b
from typing import Final

import msgspec

from headway.core.cluster import Placement
from headway.server.problems import Refused
from headway.wire import queues

_PERCENT: Final = 100


def divided(rules: queues.QueueRules, count: int) -> list[queues.QueueRules]:
    """The rules of each part. Refuses what can't be divided without leaving one part
    with too little to start anything at all."""
    limits: list[list[queues.Limit]] = [[] for _ in range(count)]
    for limit in rules.limits:
        for mine, part in zip(limits, _limit(limit, count, rules.cost), strict=True):
            mine.append(part)
    lengths: list[int | None] = [None] * count
    if rules.max_length is not None:
        lengths = list(_parts(rules.max_length, count, "max_length"))
    return [
        msgspec.structs.replace(rules, limits=mine, max_length=length)
        for mine, length in zip(limits, lengths, strict=True)
    ]


def parted(rules: queues.QueueRules, placement: Placement) -> list[queues.QueueRules]:
    """The rules of each partition. One that is leaving takes nothing, but has its part
    of the limits until it is empty."""
    parts = divided(rules, len(placement.partitions))
    for place, partition in enumerate(placement.partitions):
        if partition in placement.leaving:
            part = parts[place]
            # One that would shed does not take, either.
            parts[place] = msgspec.structs.replace(
                part, max_length=0, when_full="refuse"
            )
    return parts


def divided_cap(cap: int | None, count: int) -> list[int | None]:
    """A cap of a tenant or kind; 0 and -1, which lifts it, are the same for all."""
    if cap is None or cap < 1:
        return [cap] * count
    return list(_parts(cap, count, "cap"))


def home_of(key: str, partitions: tuple[str, ...]) -> str:
    """The partition of an idempotency key; few keys move when one is added."""
    return ranked(key, partitions)[0]


def ranked(key: str, partitions: tuple[str, ...]) -> list[str]:
    """Partitions in an order of the key's own."""

    def weight(partition: str) -> bytes:
        text = f"{partition}/{key}".encode("utf-8", "surrogatepass")
        return blake2b(text, digest_size=8).digest()

    return sorted(partitions, key=weight, reverse=True)


def _limit(limit: queues.Limit, count: int, cost: int) -> list[queues.Limit]:
    name = f"limits.{limit.name}"
    replace = msgspec.structs.replace
    if isinstance(limit, queues.RateLimit):
        counts = _parts(limit.count, count, name, cost)
        # Without a burst it is as large as the count, in each part as in the whole.
        whole = limit.count if limit.burst is None else limit.burst
        bursts = _parts(whole, count, name, cost)
        return [
            replace(limit, count=one, burst=None if limit.burst is None else burst)
            for one, burst in zip(counts, bursts, strict=True)
        ]
    parts = _parts(limit.max, count, name, cost)
    if isinstance(limit, queues.ShareLimit):
        for value, percent in limit.percent.items():
            if percent and parts[-1] * percent < _PERCENT * max(1, cost):
                text = f"{percent} % for {value!r} of a part of {count} are none"
                raise Refused("bad_value", text, name)
    return [replace(limit, max=one) for one in parts]


def _parts(whole: int, count: int, name: str, least: int = 1) -> list[int]:
    """As even as can be; the first have one more where it does not come out even."""
    if whole == 0:
        return [0] * count
    each, more = divmod(whole, count)
    if each < max(1, least):
        text = f"{whole} can't be divided between {count} partitions"
        raise Refused("bad_value", text, name)
    return [each + (place < more) for place in range(count)]
