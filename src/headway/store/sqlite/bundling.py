"""Which jobs that come together become bundles, and which rows."""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final

from headway.store.port import Row
from headway.store.sqlite.pending import Spot
from headway.store.sqlite.statements import BODY_INLINE_BYTES

JOBS_MAX: Final = 128
"""Jobs of one bundle. All of them are read to find one."""
_spot: Final = itemgetter(1, 2, 3)
Loose = tuple[Any, ...]
"""A row where it only passes through: compiled code would take it apart, make numbers of
its own of what is in it, and put another one together."""


def split(
    puts: list[Row], least: int, spots: Collection[Spot] | None = None
) -> tuple[list[list[Row]], list[Row]]:
    """What to make bundles of, and the rest. `puts` are in the order of their seqs.

    Only so many or more that follow each other in one turn are worth it; with `spots`,
    only there.
    """
    if _is_one_line(puts):
        first_row: Any = puts[0]
        is_wanted = spots is None or _spot(first_row) in spots
        if len(puts) < least or not is_wanted or first_row[1] < 0 or first_row[0] < 1:
            return [], puts
        return [puts[at : at + JOBS_MAX] for at in range(0, len(puts), JOBS_MAX)], []
    bundles: list[list[Row]] = []
    rest: list[Row] = []
    begin = 0
    while begin < len(puts):
        seq, lane, turn, first, _, _, _ = puts[begin]
        end = _end_of_run(puts, begin)
        run = puts[begin:end]
        begin = end
        is_wanted = spots is None or (lane, turn, first) in spots
        if len(run) < least or not is_wanted or lane < 0 or seq < 1:
            rest += run
            continue
        fit = _in_line(run)
        if len(fit) < least:
            rest += run
            continue
        if len(fit) < len(run):
            kept = {row[0] for row in fit}
            rest += [row for row in run if row[0] not in kept]
        bundles += [fit[at : at + JOBS_MAX] for at in range(0, len(fit), JOBS_MAX)]
    return bundles, rest


def _is_one_line(puts: Sequence[Loose]) -> bool:
    """Whether all stand in one turn as they came, and are small: mostly they do."""
    if not puts:
        return False
    its_first: int = puts[0][3]
    latest: int = puts[0][4]
    its_lane: int = puts[0][1]
    its_turn: bytes = puts[0][2]
    for row in puts:
        lane: int = row[1]
        turn: bytes = row[2]
        first: int = row[3]
        second: int = row[4]
        body: bytes = row[6]
        if lane != its_lane or first != its_first or second < latest:
            return False
        if row[5] is not None or len(body) > BODY_INLINE_BYTES:
            return False
        if turn is not its_turn and turn != its_turn:
            return False
        latest = second
    return True


def _end_of_run(puts: Sequence[Loose], begin: int) -> int:
    """Where those end that stand in the same turn and have the same first key."""
    first_row = puts[begin]
    turn: bytes = first_row[2]
    first: object = first_row[3]
    lane: object = first_row[1]
    end = begin + 1
    while end < len(puts):
        row = puts[end]
        if row[2] != turn or row[3] != first or row[1] != lane:
            break
        end += 1
    return end


def _in_line(run: Sequence[Loose]) -> list[Any]:
    """Those that are small and as they came, and stand in the order of their seqs."""
    fit: list[Loose] = []
    latest: Any = run[0][4]
    for row in run:
        second = row[4]
        if row[5] is None and second >= latest and len(row[6]) <= BODY_INLINE_BYTES:
            latest = second
            fit.append(row)
    return fit
