"""Figures made by hand, with names that would break a page that trusts them."""

from headway.spark.report.figures import Figures
from headway.spark.report.read.capacity import Capacity, Need
from headway.spark.report.read.limits import Blocked, Limit, Limits
from headway.spark.report.read.promises import Kept, Lane, Promises, spells
from headway.spark.report.read.tenants import (
    Cost,
    Costs,
    Displaced,
    Evenness,
    Tenant,
    Tenants,
)
from headway.spark.report.read.troubles import Failure, Failures, Partner, Schedule
from headway.spark.report.read.waits import AllWaits, Kind, Runs, Waits
from headway.spark.report.source import HOUR_S, Quantiles, Span, buckets

AT_S = 1_794_765_600
"""A full hour on a Sunday."""
ATTACK = "<script>alert(1)</script>"
QUOTED = "\"'><img src=x onerror=alert(1)>&\x00\x1b[31m\u202e"
NAMES = (ATTACK, QUOTED)


def whole() -> Figures:
    """Every section has something to show, and every text is an attack."""
    lane = (ATTACK, 5_000)
    parts = buckets(AT_S, AT_S + 3 * 60)
    by_bucket = {AT_S: Kept(9, 0, 0, 1), AT_S + 60: Kept(5, 3, 2, 0)}
    trends = {lane: by_bucket}
    total = sum(by_bucket.values(), Kept())
    some = Quantiles(12, 3_400, 61_000)
    hours = buckets(AT_S, AT_S + 2 * HOUR_S, HOUR_S)
    return Figures(
        span=Span(),
        as_of_s=AT_S + 300,
        events=1_234,
        batch=3,
        promises=Promises(
            [Lane(*lane, total)],
            total,
            1,
            1,
            parts,
            trends,
            spells(trends, parts),
            {6 * 24 + 18: total},
        ),
        waits=AllWaits(
            [
                Waits(*lane, 17, 90_000, 10, 61_000, some),
                Waits(QUOTED, 1, 0, 0, 0, 0, None),
            ],
            17,
            61_000,
            parts,
            {lane: {AT_S: some}},
            {0: some},
        ),
        runs=Runs([Kind(ATTACK, QUOTED, 20, 17, 40_000, 9_000, some)], 1, 20, 40_000),
        arrivals={0: 17, 167: 2},
        tenants=Tenants(
            [Tenant(ATTACK, QUOTED, 2.0, 20, 17, 3, 90_000, 40_000, 0.75, 0.5)],
            40,
            [Evenness(ATTACK, 0.7, AT_S, 0.9, {AT_S: 0.7, AT_S + HOUR_S: 1.0})],
            hours,
            [Displaced(ATTACK, QUOTED, ATTACK, 12_000.5, 1, AT_S)],
        ),
        limits=full_limits(),
        costs=Costs([Cost(QUOTED, 17, 16, 20, 40_000, 17, 1.0)], 1, 40_000, 17),
        failures=Failures(
            [Failure(ATTACK, QUOTED, ATTACK, QUOTED, 3, 2, 1, AT_S, AT_S, ATTACK)],
            1,
            3,
            1,
        ),
        schedules=[Schedule(ATTACK, QUOTED, 4, 1, 80, 50, 3, 900, some)],
        replies=[Partner(ATTACK, QUOTED, 4, 3, 1, 1, 0, 0, None, None)],
        capacity=Capacity(
            [Need(ATTACK, 2, 900.0, 7, AT_S, QUOTED, {AT_S: 7})],
            hours,
        ),
    )


def full_limits() -> Limits:
    """Limits that kept somebody waiting, and one that did not."""
    parts = buckets(AT_S, AT_S + 3 * 60)
    return Limits(
        [
            Limit(ATTACK, QUOTED, ATTACK, 3, 3, 0.9, 12, 50_000, AT_S),
            Limit(QUOTED, ATTACK, "", 0, 1, None, 0, 0, AT_S),
        ],
        2,
        1,
        parts,
        {(ATTACK, QUOTED, ATTACK): {AT_S: 60_000, AT_S + 60: 10_000}},
        [
            Blocked(ATTACK, QUOTED, ATTACK, QUOTED, ATTACK, 40_000.5),
            Blocked(ATTACK, QUOTED, "", ATTACK, ATTACK, 20_000.0),
            Blocked(ATTACK, QUOTED, "", None, None, 10_000.0),
        ],
    )


def hollow() -> Figures:
    """All tables are there, and nothing is in them."""
    parts = buckets(AT_S, AT_S)
    return Figures(
        span=Span(AT_S, AT_S + 60),
        as_of_s=AT_S,
        events=0,
        batch=1,
        promises=Promises([], Kept(), 0, 0, parts, {}, [], {}),
        waits=AllWaits([], 0, None, parts, {}, {}),
        runs=Runs([], 0, 0, 0),
        arrivals={},
        tenants=Tenants([], 0, [], parts, []),
        limits=Limits([], 0, 0, parts, {}, []),
        costs=Costs([], 0, 0, 0),
        failures=Failures([], 0, 0, 0),
        schedules=[],
        replies=[],
        capacity=Capacity([], parts),
    )
