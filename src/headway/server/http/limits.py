"""Bounds of a connection, in one place."""

import msgspec

MIB: int = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may cost before it is told off, or cut off."""

    target_bytes: int = 8 << 10
    header_bytes: int = 32 << 10
    headers: int = 100
    body_bytes: int = 16 * MIB
    head_s: float = 10.0
    """From the first byte of a request to the end of its headers."""
    body_s: float = 30.0
    """From there to the end of its body."""
    idle_s: float = 75.0
    """Between two requests."""
    write_s: float = 30.0
    """How long a client may leave its answer unread."""
    linger_s: float = 2.0
    """How long a client that was refused may still send, so that it hears why."""
    sweep_s: float = 1.0
    """How often these times are looked at."""
    pipelined: int = 16
    """Requests that may wait behind one that is being answered."""
    connections: int = 10_000
    connections_each: int = 8_000
    """Connections from one address."""
