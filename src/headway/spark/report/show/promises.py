"""Promises kept: by lane, over time, what was sacrificed, and by the hour of the week."""

from headway.spark.report import charts, words
from headway.spark.report.markup import Inside, Markup, join, tag
from headway.spark.report.read.promises import Kept, Lane, Promises, Spell
from headway.spark.report.read.waits import AllWaits
from headway.spark.report.show import parts
from headway.spark.report.show.parts import Head

_SAID = {"good": "✓ kept", "fair": "≈ nearly", "bad": "✗ missed", "none": words.NONE}
_LAYERS = (
    ("in time", "met"),
    ("late", "late"),
    ("overdue, not started yet", "overdue"),
)


def show(told: Promises) -> Markup:
    about = (
        "Every wait is promised for the minute in which its SLO runs out. It is kept by a "
        "start before that. A start after it is late; a job that has not started by then "
        "is overdue, and counts as missed as well. What was cancelled, put off or expired "
        "before its time counts as neither."
    )
    if not told.lanes:
        nothing = parts.empty("No promise fell due in this time.")
        return parts.section("promises", "Promises", about, nothing)
    size = words.bucket(told.buckets.size_s)
    return parts.section(
        "promises",
        "Promises",
        about,
        parts.table(
            "By lane: a queue and its SLO, the shortest first",
            [
                Head("Lane", "nowrap"),
                Head("Verdict"),
                Head("Kept", "number"),
                Head(parts.DRAWN),
                Head("Promises", "number"),
                Head("In time", "number"),
                Head("Late", "number"),
                Head("Overdue", "number"),
                Head("Withdrawn", "number"),
            ],
            [_row(lane) for lane in told.lanes],
        ),
        parts.left_out(len(told.lanes), told.lanes_all, "lanes"),
        tag("h3", "What was sacrificed, and when"),
        _sacrificed(told),
        tag("h3", f"Over time, {size} a bar"),
        parts.key(*((style, name) for name, style in _LAYERS)),
        parts.figures(
            parts.figure(
                join((parts.lane_name(*lane), " ", _in_short(by_bucket))),
                _trend(told, lane, by_bucket),
            )
            for lane, by_bucket in told.trends.items()
        ),
    )


def _in_short(by_bucket: dict[int, Kept]) -> Markup:
    total = sum(by_bucket.values(), Kept())
    text = f"· {words.percent(total.met, total.judged)} kept"
    return tag("span", text, class_="soft")


def _trend(told: Promises, lane: tuple[str, int], by_bucket: dict[int, Kept]) -> Markup:
    total = sum(by_bucket.values(), Kept())
    counted = {
        "met": {at_s: kept.met for at_s, kept in by_bucket.items()},
        "late": {at_s: kept.late for at_s, kept in by_bucket.items()},
        "overdue": {at_s: kept.overdue for at_s, kept in by_bucket.items()},
    }
    layers = [charts.Layer(name, style, counted[style]) for name, style in _LAYERS]
    about = (
        f"Promises of {parts.lane_text(*lane)} over time: {words.count(total.met)} in "
        f"time, {words.count(total.late)} late, {words.count(total.overdue)} overdue"
    )
    return charts.stacked(told.buckets, layers, about)


def _row(lane: Lane) -> list[Inside]:
    kept = lane.kept
    grade = parts.grade(kept.met, kept.judged)
    return [
        parts.lane_name(lane.queue, lane.slo_ms),
        tag("span", _SAID[grade], class_=f"status {grade}"),
        words.percent(kept.met, kept.judged),
        charts.bar(kept.met / kept.judged) if kept.judged else "",
        words.count(kept.judged),
        words.count(kept.met),
        words.count(kept.late),
        words.count(kept.overdue),
        words.count(kept.withdrawn),
    ]


def _sacrificed(told: Promises) -> Markup:
    if not told.spells:
        return parts.empty("Nothing: no promise was missed.")
    size_s = told.buckets.size_s
    lines = [_spell(spell, size_s) for spell in told.spells]
    return tag("ul", *(tag("li", line) for line in lines), class_="spells")


def _spell(spell: Spell, size_s: int) -> Markup:
    kept, worst = spell.kept, spell.worst
    still = ""
    if kept.overdue == kept.missed:
        still = ", none of which has started yet"
    elif kept.overdue:
        still = f", {words.count(kept.overdue)} of which have not started yet"
    told = (
        f" missed {words.count(kept.missed)} of {words.of(kept.judged, 'promise')}{still}, "
        f"{words.between(spell.since_s, spell.until_s, size_s)}"
    )
    if spell.until_s - spell.since_s > size_s:
        told += (
            f"; at worst {words.count(worst.missed)} of {words.count(worst.judged)} "
            f"at {words.moment_in(spell.worst_s, size_s)}"
        )
    name = tag("strong", parts.lane_text(spell.queue, spell.slo_ms))
    return join((name, told, "."))


def show_week(
    promises: Promises | None, waits: AllWaits | None, arrivals: dict[int, int] | None
) -> Markup | None:
    """Heat maps; None if none of the tables is there."""
    maps = []
    if arrivals is not None:
        came = {
            hour: (float(number), words.short(number), words.of(number, "job"))
            for hour, number in arrivals.items()
            if number
        }
        maps.append(_map("Jobs that came", "No job came in this time.", came))
    if waits is not None:
        waited = {
            hour: (
                float(one.p95),
                words.tiny_duration(one.p95),
                f"95 % of the waits were at most {words.duration(one.p95)}",
            )
            for hour, one in waits.weekly.items()
        }
        maps.append(_map("Waits: p95", "No job started in this time.", waited))
    if promises is not None:
        maps.append(_misses(promises))
    if not maps:
        return None
    about = (
        "All weeks of this time laid over each other, in UTC. Darker (lighter on a dark "
        "page) is more, in seven steps up to the most; every cell also says its value, "
        "and a dot that there was nothing."
    )
    return parts.section("week", "Hours of the week", about, *maps)


def _misses(promises: Promises) -> Markup:
    missed = {
        hour: (
            kept.missed / kept.judged,
            _few(100 * kept.missed / kept.judged),
            f"{words.count(kept.missed)} of {words.of(kept.judged, 'promise')} missed",
        )
        for hour, kept in promises.weekly.items()
        if kept.judged
    }
    return _map("Promises missed, %", "No promise fell due in this time.", missed)


def _few(percent: float) -> str:
    """A percentage in a small cell; little is not nothing."""
    if not percent or percent >= 9.95:
        return f"{percent:.0f}"
    return f"{percent:.1f}" if percent >= 0.1 else "<.1"


def _map(title: str, nothing: str, cells: dict[int, tuple[float, str, str]]) -> Markup:
    if not cells:
        return join((tag("h3", title), parts.empty(nothing)))
    return join((tag("h3", title), parts.heat(f"{title}, by hour of the week", cells)))
