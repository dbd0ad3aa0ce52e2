"""What clients were told, and what was done to the processes: the account's one side."""

from collections.abc import Iterable
from dataclasses import dataclass, field

Line = tuple[str, list[str]]


@dataclass
class Told:
    """Whatever stands here was answered, or has happened."""

    accepted: dict[int, int] = field(default_factory=dict)
    """The seq of each number whose enqueue was answered."""
    cancelled: set[int] = field(default_factory=set)
    """Jobs of which somebody was told that they are cancelled."""
    workers: list[Line] = field(default_factory=list)
    """A verb and tokens, or keys: each line is one answer to a worker."""
    down: list[tuple[int, int]] = field(default_factory=list)
    """From when until when no server answered, or the machine stood still, in ms."""
    deaths: dict[str, int] = field(default_factory=dict)
    """When each worker was killed, or was seen dead."""
    closed: list[tuple[str, int, int]] = field(default_factory=list)
    """Queues whose window was surely closed from and until then."""
    opens_ms: int = 0
    """When the window opens that some jobs have of their own."""
    strange: list[str] = field(default_factory=list)
    """Answers and exits that nothing explains."""
    recovered: int = 0
    """Jobs that were known by their keys when they were sent again."""
    repeats: int = 0
    """Asks that had to be repeated, since their outcome was not known."""

    def hear(self, lines: Iterable[str]) -> None:
        """A worker's journal."""
        for line in lines:
            verb, *words = line.split()
            if verb == "strange":
                self.strange.append(line)
            else:
                self.workers.append((verb, words))


def seq_of(job_id: str) -> int:
    """The number in `p1_123`."""
    return int(job_id.rpartition("_")[2])


def token_of(text: str) -> int:
    """The number of a lease in its token; the signature is the server's to check."""
    return int(text.partition(".")[0].rpartition("_")[2][:16], 16)
