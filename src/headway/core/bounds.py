"""How much of a partition memory holds."""

import msgspec


class Bounds(msgspec.Struct, frozen=True):
    """How much of a partition memory holds."""

    jobs_max: int = 100_000
    """About so many ready jobs, over all turns."""
    turns_max: int = 20_000
    scheduled_max: int = 20_000
    keys_max: int = 50_000
    """Idempotency keys of one queue; the others are looked up."""
    reads_max: int = 64
    """Times that the store is read in one step; the rest comes with the next one."""
