"""Which limits kept jobs waiting, when, and who held them meanwhile."""

from headway.spark.report import charts, words
from headway.spark.report.markup import Inside, Markup, join, tag
from headway.spark.report.read.limits import Blocked, Limit, Limits, Name
from headway.spark.report.show import parts
from headway.spark.report.show.parts import Head


def show(told: Limits) -> Markup:
    about = (
        "A limit is full while the job that would be next has to wait for it. Used is "
        "what was taken of its capacity, on average over the minutes in which it was in "
        "use; the most at once may be all of it without anybody waiting."
    )
    if not told.limits:
        nothing = parts.empty("No limit was in use in this time.")
        return parts.section("limits", "Limits", about, nothing)
    return parts.section(
        "limits",
        "Limits",
        about,
        tag("p", _summary(told)),
        parts.table(
            "By limit, the longest full first: the bar is what was used",
            [
                Head("Limit", "nowrap"),
                Head("Queue", "nowrap"),
                Head("Capacity", "number"),
                Head("Most at once", "number"),
                Head("Used", "number"),
                Head(parts.DRAWN),
                Head("Full", "number"),
                Head("Stops", "number"),
                Head("Worst minute", "nowrap"),
            ],
            [_row(one) for one in told.limits],
        ),
        parts.left_out(len(told.limits), told.limits_all, "limits"),
        _trends(told),
        _blocked(told.blocked),
    )


def _summary(told: Limits) -> str:
    if not told.limits_full:
        return f"None of {words.of(told.limits_all, 'limit')} kept a job waiting."
    worst = told.limits[0]
    return (
        f"{words.count(told.limits_full)} of {words.of(told.limits_all, 'limit')} kept "
        f"jobs waiting. The limit {_text(worst.name)} was full the longest: "
        f"{words.duration(worst.full_ms)}."
    )


def _row(one: Limit) -> list[Inside]:
    share = one.used_share
    return [
        _limit(one.limit_name, one.limit_value),
        one.queue,
        words.count(one.capacity),
        words.count(one.highest),
        words.NONE if share is None else words.share(share),
        charts.bar(share or 0.0, style="late" if one.full_ms else "met"),
        words.duration(one.full_ms),
        words.count(one.stops),
        words.moment(one.worst_s) if one.full_ms else words.NONE,
    ]


def _trends(told: Limits) -> Inside:
    if not told.trends:
        return None
    size_ms = told.buckets.size_s * 1_000
    charted = []
    for name, by_bucket in told.trends.items():
        shares = {at_s: ms / size_ms for at_s, ms in by_bucket.items()}
        about = (
            f"How much of the time {_text(name)} was full: "
            f"{words.share(max(shares.values(), default=0))} at most"
        )
        layers = [charts.Layer("of the time full", "late", shares)]
        chart = charts.stacked(
            told.buckets, layers, about, top=1.0, label=lambda part: f"{part:.0%}"
        )
        queue, limit, value = name
        charted.append(parts.figure(join((_limit(limit, value), f", {queue}")), chart))
    return join(
        (
            tag("h3", f"Full over time, {words.bucket(told.buckets.size_s)} a bar"),
            parts.key(("late", "part of the time in which a job had to wait for it")),
            parts.figures(charted),
        )
    )


def _blocked(told: list[Blocked] | None) -> Inside:
    if told is None:
        return None
    title = tag("h3", "Who waited while who held it")
    if not told:
        return join((title, parts.empty("Nobody had to wait for a limit.")))
    about = (
        "The time for which a tenant's next job waited at a limit, spread over those who "
        "held the limit in the same minute, by how much of it they held. A tenant can be "
        "in its own way."
    )
    return join(
        (
            title,
            tag("p", about, class_="about"),
            parts.table(
                "Waits at limits by who held them, the longest first",
                [
                    Head("Waited", "long"),
                    Head("Held by", "long"),
                    Head("Limit", "nowrap"),
                    Head("Queue", "nowrap"),
                    Head("Time", "number"),
                ],
                [
                    [
                        _tenant(one.blocked),
                        tag("em", "itself", class_="soft")
                        if one.blocked == one.holder and one.blocked is not None
                        else _tenant(one.holder),
                        _limit(one.limit_name, one.limit_value),
                        one.queue,
                        words.duration(one.ms),
                    ]
                    for one in told
                ],
            ),
        )
    )


def _tenant(name: str | None) -> Inside:
    return tag("em", "others", class_="soft") if name is None else parts.named(name)


def _limit(limit: str, value: str) -> Inside:
    return join((limit, " ", tag("span", value, class_="soft"))) if value else limit


def _text(name: Name) -> str:
    queue, limit, value = name
    return f"{limit} of {value} ({queue})" if value else f"{limit} ({queue})"
