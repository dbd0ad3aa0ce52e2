"""What is asked of the server: queues with all kinds of rules, and jobs by number.

A job is told by its number alone, so that it is the same however often it is sent. Its
kind says what its worker does with it.
"""

import time
from random import Random
from typing import Any, Final

VITAL: Final = "vital"
"""The kind of all critical jobs, and of no others."""
SHORT: Final = "short"
"""Jobs that always fail, and have fewer attempts than their queue gives."""
SHORT_ATTEMPTS: Final = 2
WINDOW: Final = "window"
"""Jobs that have a window of their own."""
TICK: Final = "tick"
TICKS: Final = "ticks"
SCHEDULE: Final = "beat"
NIGHT: Final = "night"
ASKS: Final = "asks"
RANKED_MAX: Final = 150
NEAR_S: Final = 20
"""So soon the next minute has to begin for jobs to wait for a window that opens then."""

_ALL_DAY: Final = [{"span": "00:00-12:00"}, {"span": "12:00-00:00"}]


def _concurrency(name: str, most: int, per: str | None = None) -> dict[str, Any]:
    return {"type": "concurrency", "name": name, "max": most, "per": per}


def _shares(*, lending: bool) -> dict[str, Any]:
    percent = {"east": 50, "north": 30, "west": 20}
    return {
        "type": "shares",
        "name": "regions",
        "max": 15,
        "by": "region",
        "percent": percent,
        "lending": lending,
    }


QUEUES: Final[dict[str, dict[str, Any]]] = {
    "bulk": {"slo": "30s", "weight": 2.0, "lease": "2s", "attempts": 6},
    "mail": {
        "slo": "5s",
        "slos": ["1s", "5s", "30s"],
        "lease": "2s",
        "attempts": 5,
        "retry": {"type": "fixed", "delay": "100ms"},
        "limits": [
            _concurrency("partner", 20),
            _concurrency("each", 8, "tenant"),
        ],
    },
    "calls": {
        "slo": "2s",
        "lease": "3s",
        "attempts": 6,
        "retry": {"type": "exponential", "first": "50ms", "max": "400ms"},
        "limits": [
            _concurrency("server", 6, "server"),
            {"type": "rate", "name": "pace", "count": 500, "burst": 100},
        ],
    },
    "regions": {"lease": "2s", "floor": 0.05, "limits": [_shares(lending=False)]},
    "lent": {"lease": "2s", "limits": [_shares(lending=True)]},
    "ranked": {"order": "priority", "lease": "2s", "max_length": RANKED_MAX},
    ASKS: {
        "lease": "2s",
        "attempts": 8,
        "retry": {"type": "delays", "delays": ["50ms"] * 7},
        "limits": [_concurrency("partner", 25), _concurrency("line", 6, "line")],
    },
    NIGHT: {"lease": "2s", "windows": _ALL_DAY},
    TICKS: {"lease": "2s", "order": "time"},
}
for _rules in QUEUES.values():
    _rules.setdefault("retry", {"type": "fixed", "delay": "50ms"})
    _rules.setdefault("attempts", 5)

WORKER_SETS: Final[tuple[list[str] | None, ...]] = (
    None,
    ["mail", "calls", ASKS],
    ["bulk", "regions", "lent", "ranked"],
    None,
)
"""Which queues the workers ask for, in turn."""

_SHARES: Final = {
    "bulk": 42,
    "mail": 16,
    "calls": 10,
    "regions": 8,
    "lent": 6,
    "ranked": 6,
    ASKS: 10,
    NIGHT: 2,
}
_KINDS: Final = {
    "plain": 800,
    "fails-once": 40,
    "fails-twice": 20,
    "later": 15,
    "changed": 15,
    SHORT: 5,
    "bury": 8,
    "release": 20,
    "beats": 10,
    "doomed": 3,
    "expires": 5,
    VITAL: 40,
    "delayed": 15,
    WINDOW: 4,
}
_ASKING: Final = {"early": 20, "timely": 40, "late": 10, "twice": 20, "ends": 10}
_CALM: Final = {"plain": 90, "release": 5, "beats": 5}
"""For the queue that is closed when nothing may be put off till its window opens."""


class Plan:
    """All jobs of one run."""

    def __init__(self, seed: int, jobs: int) -> None:
        self.seed = seed
        self.jobs = jobs
        self._deaths = max(400, jobs // 60)
        self._lines = 1 + jobs // 50_000
        """Few enough for jobs to stand in line: restarts must find limits in full use."""
        now_s = int(time.time())
        opens_s = now_s - now_s % 60 + 60
        self._is_near = opens_s - now_s <= NEAR_S
        clock = [time.strftime("%H:%M", time.gmtime(opens_s + m * 60)) for m in (0, 90)]
        self.opening = [{"span": "-".join(clock)}]
        """A window that opens when the next minute begins."""
        self.opens_ms = opens_s * 1_000

    def chance(self, *what: object) -> Random:
        return Random(f"{self.seed} {what}")

    def queue(self, number: int) -> str:
        return _drawn(self.chance("queue", number), _SHARES)

    def body(self, number: int) -> dict[str, Any]:
        """The job as it is sent."""
        chance = self.chance("job", number)
        queue = self.queue(number)
        kind = self._kind(chance, queue, number)
        body: dict[str, Any] = {
            "kind": kind,
            "payload": payload(number),
            "tenant": f"tenant-{min(chance.randrange(7), chance.randrange(7))}",
            "cost": chance.choice([1, 1, 1, 2, 3]),
            "priority": chance.randrange(10),
            "idempotency_key": f"job-{number}",
        }
        if queue == "mail":
            body["slo"] = chance.choice(["1s", "5s", "30s"])
            if chance.random() < 0.05:
                body["weight"] = chance.choice([0.5, 1.0, 4.0])
        elif queue == "calls":
            body["labels"] = {"server": f"s{chance.randrange(4)}"}
        elif queue == ASKS:
            body["labels"] = {"line": f"line-{chance.randrange(self._lines)}"}
        elif queue in ("regions", "lent"):
            body["labels"] = {"region": chance.choice(["east", "north", "west"])}
        body.update(self._of_kind(kind, chance))
        return body

    def _kind(self, chance: Random, queue: str, number: int) -> str:
        if queue == NIGHT:
            return _drawn(chance, _CALM)
        if number % self._deaths == 7:
            return "dies"
        return _drawn(chance, _ASKING if queue == ASKS else _KINDS)

    def _of_kind(self, kind: str, chance: Random) -> dict[str, Any]:
        match kind:
            case "vital":
                return {"critical": True}
            case "short":
                return {"attempts": SHORT_ATTEMPTS}
            case "delayed":
                return {"delay": chance.randrange(50, 1_500)}
            case "expires":
                delay_ms = chance.choice([0, 60_000])
                return {"delay": delay_ms, "lifetime": chance.randrange(200, 1_000)}
            case "window":
                more = {} if self._is_near else {"lifetime": "2s"}
                return {"windows": self.opening, **more}
        return {}


def payload(number: int) -> dict[str, Any]:
    return {"number": number, "fill": "x" * (number % 97)}


def attempts_max(queue: str, kind: str) -> int:
    return SHORT_ATTEMPTS if kind == SHORT else int(QUEUES[queue]["attempts"])


def _drawn(chance: Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]
