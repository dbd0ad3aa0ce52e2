"""Bugs to be planted in the store that is a file; what `bugs.py` says holds here."""

from typing import Any

import apsw
import pytest

from headway.store.sqlite import (
    bundle_statements,
    bundles,
    log,
    pragmas,
    rows,
    statements,
    store,
    writes,
)
from headway.store.sqlite.pending import Pending


def does_not_flush(patch: pytest.MonkeyPatch) -> None:
    kept = [pragma for pragma in pragmas.WRITING if pragma[0] != "synchronous"]
    patch.setattr(pragmas, "WRITING", (*kept, ("synchronous", "OFF", 0)))


def does_not_renew_the_log(patch: pytest.MonkeyPatch) -> None:
    """After a failed flush the log is trusted as it is read."""
    patch.setattr(log, "renew", lambda connection, path, vfs: None)


def forgets_what_is_pending(patch: pytest.MonkeyPatch) -> None:
    """A new owner reads the tables of jobs, and not what was to be sorted in there."""
    patch.setattr(store, "load", lambda connection: Pending())


def drops_what_is_pending(patch: pytest.MonkeyPatch) -> None:
    """What is to be sorted in is taken for sorted in."""
    real = writes.sort_in

    def sort_in(connection: apsw.Connection, pending: Pending, *rest: Any) -> Pending:
        doomed = pending.copy()
        doomed.number = pending.number
        doomed.puts = {seq: row for seq, row in pending.puts.items() if seq % 5}
        return real(connection, doomed, *rest)

    for module in (writes, rows):
        patch.setattr(module, "sort_in", sort_in)


def thins_too_much(patch: pytest.MonkeyPatch) -> None:
    """Jobs that are over are left out when what is pending is written anew."""
    real = Pending.packed

    def packed(self: Pending) -> bytes:
        kept = self.copy()
        kept.ends.clear()
        return real(kept)

    patch.setattr(Pending, "packed", packed)


def forgets_who_has_left_a_bundle(patch: pytest.MonkeyPatch) -> None:
    """Jobs that are over while others of their bundle are not are there again."""
    nobody = "INSERT INTO gone SELECT ?, ? WHERE FALSE"
    patch.setattr(bundle_statements, "GONE", nobody)


def ends_bundles_early(patch: pytest.MonkeyPatch) -> None:
    """A bundle goes when the first of its jobs does."""
    real = bundles.leave

    def leave(
        connection: apsw.Connection, left: dict[int, list[int]], pending: Pending
    ) -> None:
        real(connection, left, pending)
        connection.executemany(
            "DELETE FROM bundles WHERE seq = ?", [(bundle,) for bundle in left]
        )

    patch.setattr(bundles, "leave", leave)


def forgets_that_members_are_held(patch: pytest.MonkeyPatch) -> None:
    """Leased jobs of bundles are ready for the next owner."""
    nobody = "SELECT seq, change FROM held WHERE seq BETWEEN ? AND ? AND FALSE"
    patch.setattr(bundle_statements, "HELD_BETWEEN", nobody)


def reads_past_members(patch: pytest.MonkeyPatch) -> None:
    """Of every read of bundles the last job is taken for read."""
    real = bundles.in_order

    def in_order(*of: Any) -> list[Any]:
        found = real(*of)
        return found[:-2] + found[-1:]

    patch.setattr(bundles, "in_order", in_order)


def keeps_its_epoch(patch: pytest.MonkeyPatch) -> None:
    """A new owner has the epoch of the one before it."""
    patch.setattr(statements, "RAISE_EPOCH", "SELECT 1")
