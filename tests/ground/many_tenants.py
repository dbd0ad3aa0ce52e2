"""`python -m tests.ground.many_tenants LIMITS`: batches beside thousands of turns.

It prints whether batches look ahead, and what was started, in its order, as a digest.
"""

import random
import sys
from hashlib import blake2b
from typing import Final

from headway.core import prefetch
from headway.core.commands import Ack, Command, Configure, Enqueue, Granted, Lease
from headway.core.config import Concurrency, Limit, QueueConfig
from headway.core.partition import Partition
from headway.core.spec import JobSpec

TENANTS: Final = 6_000
"""More than from which on it is worth to look ahead."""
BATCH: Final = 150
"""More than what is asked for at one go."""
LIMITS: Final[dict[str, tuple[Limit, ...]]] = {
    "none": (),
    "tenants": (Concurrency("each", 1, per="tenant"),),
    "strands": (Concurrency("server", 2, per="server"), Concurrency("all", 9_000)),
    "two strands": (
        Concurrency("server", 2, per="server"),
        Concurrency("kind", 5_000, per="kind"),
    ),
    "weights": (Concurrency("each", 2, per="tenant"),),
    "one tenant": (Concurrency("server", 2, per="server"),),
}


def play(limits: str) -> tuple[int, str]:
    """How many were started, and their digest."""
    partition, draw = Partition(), random.Random(5)
    partition.decide([Configure(QueueConfig(name="q", limits=LIMITS[limits]))], 0)
    digest = blake2b(digest_size=16)
    tokens: list[int] = []
    started = 0
    specs = [_spec(limits, draw, number) for number in range(TENANTS)]
    partition.decide([Enqueue("q", specs)], 1)
    for now_ms in range(10, 2_000, 10):
        draw.shuffle(tokens)
        done, tokens = tokens[:BATCH], tokens[BATCH:]
        arrivals = [_spec(limits, draw, draw.randrange(TENANTS)) for _ in range(BATCH)]
        # One lease is over long since, and of one nobody has heard.
        batch: list[Command] = [Ack([*done, 1, 1 << 70]), Enqueue("q", arrivals)]
        batch.append(Lease(max=BATCH + 20))
        for _, answer in partition.decide(batch, now_ms).answers:
            if isinstance(answer, Granted):
                tokens += [job.token for job in answer.jobs]
                started += len(answer.jobs)
                digest.update(repr([job.seq for job in answer.jobs]).encode())
    return started, digest.hexdigest()


def _spec(limits: str, draw: random.Random, number: int) -> JobSpec:
    return JobSpec(
        kind=f"kind-{number % 3}",
        tenant="one" if limits == "one tenant" else f"tenant-{number}",
        weight=1.0 + number % 4 if limits == "weights" else None,
        labels={"server": f"server-{number % 5_000}"},
        priority=draw.randrange(3),
    )


if __name__ == "__main__":
    sys.stdout.write(f"looks ahead: {prefetch.is_here()}\n")
    sys.stdout.write(f"started {play(sys.argv[1])}\n")
