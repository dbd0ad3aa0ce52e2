"""How a SQLite store is opened; the defaults are the only ones meant for production."""

import msgspec

MIB = 1024 * 1024


class SqliteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are bounds on memory and disk, not hints."""

    vfs: str | None = None
    """A SQLite VFS by name, in place of the file system; such files are not locked."""
    is_exclusive: bool = False
    """No other connection may open the file, and no shared memory is used."""
    is_locked: bool = True
    """Without the owner's lock, only the epoch keeps two owners apart."""
    is_network_allowed: bool = False
    cache_bytes: int = 16 * MIB
    """What is sorted in at one go must fit into it, or pages are written twice. Not
    larger: a commit that moves cells between pages makes SQLite walk all of it."""
    wal_passive_bytes: int = 16 * MIB
    """Beyond this the log is copied into the file after a commit."""
    wal_truncate_bytes: int = 64 * MIB
    """Beyond this a reader stands in the way: the log is cut off if it can be."""
    pending_rows: int = 4_096
    """Beyond this a commit sorts into the tables of jobs what earlier ones have left."""
    pending_bytes: int = 4 * MIB
    """Beyond this it throws out what no longer matters of that."""
    bundle_least: int = 16
    """So many jobs that wait in a turn one behind the other are written as one row, and
    fewer as a row each."""
    busy_ms: int = 5_000
    """How long a commit waits for a foreign writer before the store stops."""
    readers_max: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.wal_passive_bytes <= self.wal_truncate_bytes:
            raise ValueError("wal_passive_bytes must be in 1 … wal_truncate_bytes")
        if self.cache_bytes < MIB:
            raise ValueError("cache_bytes must be 1 MiB or more")
        if self.pending_rows < 0 or self.pending_bytes < 0:
            raise ValueError("pending_rows and pending_bytes must not be negative")
        if self.bundle_least < 1:
            raise ValueError("bundle_least must be positive")
        if self.readers_max < 1 or self.busy_ms < 0:
            raise ValueError("readers_max must be positive, busy_ms not negative")
