"""What a bridge has done so far, in numbers."""

import msgspec


class Tally(msgspec.Struct):
    """Every message that was read ends as one of the five below, or is in flight."""

    read: int = 0
    resolved: int = 0
    """Its job goes on."""
    early: int = 0
    """Nobody waits for it yet; it is kept."""
    repeated: int = 0
    late: int = 0
    bad: int = 0
    """No key, no value, or refused for good."""
    dropped: int = 0
    """Its partition was taken away before it was over; its next reader has it."""
    retried: int = 0
    """Replies that the server could not take at once."""
