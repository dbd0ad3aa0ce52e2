"""How long jobs waited for their start, and how long they ran."""

from headway.spark.report import charts, words
from headway.spark.report.markup import Inside, Markup, tag
from headway.spark.report.read.waits import AllWaits, Runs, Waits
from headway.spark.report.show import parts
from headway.spark.report.show.parts import Head
from headway.spark.report.source import Quantiles

_QUANTILES = [Head("p50", "number"), Head("p95", "number"), Head("p99", "number")]
_DRAWN = "dot p50, stroke p95, arrow p99, on a scale of tenfold steps"


def show(told: AllWaits) -> Markup:
    about = (
        "From being ready to a worker's hands, but for time that a job was paused, "
        "blocked, or outside its window. Quantiles come of sketches that add up exactly "
        "over minutes and lanes, and are off by half a percent of ranks at most."
    )
    if not told.lanes:
        nothing = parts.empty("No job started in this time.")
        return parts.section("waits", "Waits", about, nothing)
    on = charts.scale(
        [
            *(lane.slo_ms for lane in told.lanes),
            *(lane.longest_ms for lane in told.lanes),
            *(lane.quantiles.p50 for lane in told.lanes if lane.quantiles),
        ]
    )
    return parts.section(
        "waits",
        "Waits",
        about,
        parts.table(
            f"By lane: {_DRAWN}; the upright line is the SLO",
            [
                Head("Lane", "nowrap"),
                Head("Starts", "number"),
                *_QUANTILES,
                Head("Longest", "number"),
                Head("Mean", "number"),
                Head("Held, in all", "number"),
                Head(str(on)),
            ],
            [_row(lane, on) for lane in told.lanes],
        ),
        tag("h3", f"Over time, {words.bucket(told.buckets.size_s)} a point"),
        tag(
            "p",
            "Whole line: p50. Broken line: p99. Dotted: the SLO.",
            class_="about",
        ),
        parts.figures(
            parts.figure(parts.lane_name(*lane), _trend(told, lane, by_bucket))
            for lane, by_bucket in told.trends.items()
        ),
    )


def _trend(
    told: AllWaits, lane: tuple[str, int], by_bucket: dict[int, Quantiles]
) -> Markup:
    p50 = {at_s: float(one.p50) for at_s, one in by_bucket.items()}
    p99 = {at_s: float(one.p99) for at_s, one in by_bucket.items()}
    about = (
        f"Waits of {parts.lane_text(*lane)} over time: p99 between "
        f"{words.duration(min(p99.values()))} and {words.duration(max(p99.values()))}"
    )
    drawn = [charts.Line("p50", "first", p50), charts.Line("p99", "second", p99)]
    return charts.lines(told.buckets, drawn, about, mark=("SLO", lane[1]))


def _row(lane: Waits, on: charts.Scale) -> list[Inside]:
    return [
        parts.lane_name(lane.queue, lane.slo_ms),
        words.count(lane.starts),
        *_quantiles(lane.quantiles),
        words.duration(lane.longest_ms),
        words.duration(lane.wait_ms / lane.starts) if lane.starts else words.NONE,
        words.duration(lane.held_ms),
        _spread(on, lane.quantiles, lane.slo_ms),
    ]


def show_runs(told: Runs) -> Markup:
    about = (
        "How long attempts were in the hands of workers, whatever became of them. An "
        "attempt that was neither failed nor lost is done, gave its job back, or waits "
        "for a reply."
    )
    if not told.kinds:
        nothing = parts.empty("No attempt ended in this time.")
        return parts.section("runs", "Runs", about, nothing)
    on = charts.scale(
        [
            *(one.longest_ms for one in told.kinds),
            *(one.quantiles.p50 for one in told.kinds if one.quantiles),
        ]
    )
    return parts.section(
        "runs",
        "Runs",
        about,
        parts.table(
            f"By kind of job, those with the most run time first: {_DRAWN}",
            [
                Head("Kind", "long"),
                Head("Queue", "nowrap"),
                Head("Attempts", "number"),
                Head("Done", "number"),
                *_QUANTILES,
                Head("Longest", "number"),
                Head("In all", "number"),
                Head(str(on)),
            ],
            [
                [
                    one.kind,
                    one.queue,
                    words.count(one.attempts),
                    words.percent(one.acks, one.attempts),
                    *_quantiles(one.quantiles),
                    words.duration(one.longest_ms),
                    words.duration(one.run_ms),
                    _spread(on, one.quantiles, None),
                ]
                for one in told.kinds
            ],
        ),
        parts.left_out(len(told.kinds), told.kinds_all, "kinds"),
    )


def _quantiles(found: Quantiles | None) -> list[Inside]:
    if found is None:
        return [words.NONE] * 3
    return [words.duration(one) for one in (found.p50, found.p95, found.p99)]


def _spread(on: charts.Scale, found: Quantiles | None, slo_ms: int | None) -> Inside:
    if found is None:
        return ""
    return charts.spread(on, found.p50, found.p95, found.p99, slo_ms)
