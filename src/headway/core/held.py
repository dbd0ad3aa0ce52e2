"""Clocks that stand still: time spent held does not count against a promise."""


class HeldClock:
    """The time of something that can be held, within the time of what holds it.

    Nested: a strand's clock runs in its queue's time, so time for which both are
    held counts once.
    """

    __slots__ = ("held_ms", "holds", "since_ms")

    def __init__(self) -> None:
        self.holds = 0
        """Bits, one for each reason."""
        self.held_ms = 0
        """All time held so far, but for a hold under way."""
        self.since_ms = 0

    def time(self, outer_ms: int) -> int:
        return (self.since_ms if self.holds else outer_ms) - self.held_ms

    def set_hold(self, reason: int, outer_ms: int, *, is_on: bool) -> None:
        was = self.holds
        self.holds = was | reason if is_on else was & ~reason
        if self.holds and not was:
            self.since_ms = outer_ms
        elif was and not self.holds:
            self.held_ms += outer_ms - self.since_ms
