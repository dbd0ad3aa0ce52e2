"""What a peer's measurement yields, and how the best of its set-ups is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

PAYLOAD = "x" * 200
BATCH = 100


@dataclass(frozen=True, slots=True)
class PeerResult:
    """Durable full cycles of one peer: enqueued, fetched, completed."""

    jobs_per_s: float
    client_cpu_s_per_job: float
    """The producer's and the worker's."""
    server_cpu_s_per_job: float
    """The database's or the broker's."""
    notes: str
    """Versions and settings, for a reader who wants to repeat it."""

    @property
    def cpu_s_per_job(self) -> float:
        return self.client_cpu_s_per_job + self.server_cpu_s_per_job


def best(results: Sequence[PeerResult]) -> PeerResult:
    return max(results, key=lambda result: result.jobs_per_s)
