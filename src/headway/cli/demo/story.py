"""What the demonstration shows: its queues, who sends what, and when it is too much."""

from typing import Any, Final

import msgspec

SLOTS: Final = 8
"""Jobs that one worker process runs at once."""
WORKERS: Final = 3
RUN_MS: Final = (300, 600)
"""How long a job runs, between these."""
TENANTS: Final = ("acme", "globex", "initech", "umbrella")
FLOODER: Final = "hooli"
PARTNERS: Final = ("north", "east", "south", "west")
LENGTH_MAX: Final = 20_000
"""Of a queue: whoever blocks one does not fill the disk."""
FAILING: Final = 0.03
"""The share of webhooks whose first attempt fails."""
FATAL: Final = 0.006
"""The share that is buried at once, so that there are dead letters to look at."""
ERRORS: Final = (
    "partner answered 503",
    "TimeoutError: no answer within 30 s",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
)
FATAL_ERROR: Final = "PermissionError: the partner has revoked our key"
ASKING: Final = 0.05
"""The share of default jobs that wait for an answer from outside."""


class Lane(msgspec.Struct, frozen=True):
    """The measured jobs of one queue."""

    queue: str
    kind: str
    slo_ms: int
    calm: float
    """Jobs a second, of all tenants together."""
    rush: float


class Phase(msgspec.Struct, frozen=True):
    """A part of the story."""

    name: str
    seconds: float
    text: str


class Story(msgspec.Struct, frozen=True):
    """Lanes and phases; the phases come again and again."""

    lanes: tuple[Lane, ...]
    phases: tuple[Phase, ...]
    flood: float
    """Jobs a second that one tenant adds to the shortest promise."""

    def phase(self, elapsed_s: float) -> tuple[Phase, float]:
        """The phase of a moment, and how many seconds of it are left."""
        left_s = elapsed_s % sum(phase.seconds for phase in self.phases)
        for phase in self.phases:
            if left_s < phase.seconds:
                return phase, phase.seconds - left_s
            left_s -= phase.seconds
        return self.phases[-1], 0.0  # a rounding error beyond the end

    def rates(self, elapsed_s: float) -> dict[tuple[str, str], float]:
        """Jobs a second by queue and tenant."""
        name = self.phase(elapsed_s)[0].name
        found = {
            (lane.queue, tenant): (lane.rush if name == "rush" else lane.calm)
            / len(TENANTS)
            for lane in self.lanes
            for tenant in TENANTS
        }
        if name == "flood":
            found[self.lanes[0].queue, FLOODER] = self.flood
        return found

    def lane(self, queue: str) -> Lane:
        return next(lane for lane in self.lanes if lane.queue == queue)


def story(*, is_quick: bool, has_flood: bool = False) -> Story:
    """The long one can be watched for hours; the quick one has a flood if wanted."""
    slos_ms = (1_000, 3_000, 8_000) if is_quick else (2_000, 10_000, 60_000)
    seconds = (3, 7, 13, 5, 12) if has_flood else (3, 10, 17)
    if not is_quick:
        seconds = (12, 60, 100, 40, 70)
    lanes = (
        Lane("payment", "charge", slos_ms[0], 6, 15),
        Lane("default", "order", slos_ms[1], 9, 27),
        Lane("webhook", "notify", slos_ms[2], 10, 52),
    )
    texts = (
        ("calm", "all is calm"),
        ("rush", "everybody sends about twice what the workers can do"),
        ("calm", "the rush is over: what was put off is caught up with"),
        ("flood", f"{FLOODER} alone floods payment with more than the workers can do"),
        ("calm", "the flood is over"),
    )
    phases = tuple(
        Phase(name, length, text)
        for (name, text), length in zip(texts, seconds, strict=False)
    )
    return Story(lanes, phases, 50)


def rules(told: Story, hour_utc: int) -> dict[str, dict[str, Any]]:
    """The queues; reports may start only in hours that are far from now."""
    payment, default, webhook = told.lanes
    opens, closes = (hour_utc + 9) % 24, (hour_utc + 14) % 24
    return {
        payment.queue: {
            "slo": payment.slo_ms,
            "attempts": 3,
            "max_length": LENGTH_MAX,
        },
        default.queue: {"slo": default.slo_ms, "max_length": LENGTH_MAX},
        webhook.queue: {
            "slo": webhook.slo_ms,
            "max_length": LENGTH_MAX,
            "attempts": 4,
            "retry": {"type": "exponential", "first": "2s", "max": "30s"},
            "limits": [
                {"type": "concurrency", "name": "partner", "max": 10, "per": "partner"}
            ],
        },
        "report": {
            "slo": "1h",
            "windows": [{"span": f"{opens:02}:00-{closes:02}:00", "zone": "UTC"}],
        },
    }
