"""The stores' errors: what became of the truth, and whether the store can go on.

StoreError
├── Fenced            another owner has taken over; nothing was written
├── Contradiction     a batch that can't be true: a bug of ours; nothing was written
├── HistoryGone       the wanted history was dropped already
├── NotOpen           before take_over or after close
├── StoreFailed       can't be known what was written; of no use any more
│   ├── StoreFull     no space left; the batch was not written; of no use any more
│   └── Corrupt       what was read back can't be what was written
├── StoreLocked       another process owns the file
├── SchemaUnknown     written by a newer version; refused
├── SchemaBehind      a database that has to be migrated first; refused
├── NotDurable        a database that may lose what it confirms; refused
├── NotAStore         a file, but not one of ours
├── NotLocal          on a network file system, where locks and flushes may lie
└── BackupRefused     the target exists, or there is nothing to back up

A store that has failed once raises the same error at every later call: only opening it
anew, which recovers from the disk, tells what is there.
"""


class StoreError(Exception):
    """Something is wrong with a store or with what was asked of it."""


class Fenced(StoreError):
    """The epoch is not the newest: another owner has taken over."""

    def __init__(self, epoch: int, newest: int) -> None:
        self.epoch = epoch
        self.newest = newest
        super().__init__(f"epoch {epoch} was replaced by {newest}")


class Contradiction(StoreError, AssertionError):
    """The batch contradicts what is stored. Our own bug, never a caller's."""


class HistoryGone(StoreError):
    """`oldest` is the first number that is still there."""

    def __init__(self, first: int, oldest: int) -> None:
        self.first = first
        self.oldest = oldest
        super().__init__(f"history {first} was dropped; the oldest is {oldest}")


class NotOpen(StoreError):
    """take_over comes before every other call, and nothing comes after close."""


class StoreFailed(StoreError):
    """The store stopped: only opening it anew tells what was written."""


class StoreFull(StoreFailed):
    """No space is left. The batch was not written."""


class Corrupt(StoreFailed):
    """The file is damaged."""


class StoreLocked(StoreError):
    """Another process owns the file."""


class SchemaUnknown(StoreError):
    """The file was written by a newer version."""


class SchemaBehind(StoreError):
    """The database lacks tables that this version needs: `headway migrate` makes them."""


class NotDurable(StoreError):
    """The database is set up so that it may lose what it has confirmed."""


class NotAStore(StoreError):
    """The file is something else; it is left alone."""


class NotLocal(StoreError):
    """The file lies on a network file system."""


class BackupRefused(StoreError):
    """Nothing was written, and what was there is as it was."""
