"""Who got what, and who paid for it."""

from headway.spark.report import charts, words
from headway.spark.report.markup import Inside, Markup, tag
from headway.spark.report.read.tenants import Costs, Displaced, Evenness, Tenants
from headway.spark.report.show import parts
from headway.spark.report.show.parts import Head


def show(told: Tenants) -> Markup:
    about = (
        "A tenant's share is its part of a queue's run time. Entitled is it to a part by "
        "its weight, in every hour in which it had something to do; the upright line is "
        "that part. A tenant that asks for less than its part leaves the rest to others."
    )
    if not told.tenants:
        nothing = parts.empty("No tenant had anything to do in this time.")
        return parts.section("tenants", "Tenants", about, nothing)
    return parts.section(
        "tenants",
        "Tenants",
        about,
        parts.table(
            "Share of run time against what the weight entitles to",
            [
                Head("Tenant", "long"),
                Head("Queue", "nowrap"),
                Head("Weight", "number"),
                Head("Share", "number"),
                Head("Entitled", "number"),
                Head(parts.DRAWN),
                Head("Jobs came", "number"),
                Head("Starts", "number"),
                Head("Late", "number"),
                Head("Mean wait", "number"),
            ],
            [
                [
                    parts.named(one.tenant),
                    one.queue,
                    f"{one.weight:g}",
                    words.share(one.share),
                    words.share(one.entitled),
                    charts.bar(one.share, mark=one.entitled),
                    words.count(one.arrivals),
                    words.count(one.starts),
                    words.percent(one.misses, one.starts) if one.misses else "0 %",
                    words.duration(one.wait_ms / one.starts)
                    if one.starts
                    else words.NONE,
                ]
                for one in told.tenants
            ],
        ),
        parts.left_out(len(told.tenants), told.tenants_all, "tenants and queues"),
        _even(told),
        _displacement(told.displaced),
    )


def _even(told: Tenants) -> Inside:
    if told.evenness is None or told.buckets is None:
        return None
    head = tag("h3", "How even it was")
    if not told.evenness:
        text = "In no hour had two tenants of a queue something to do."
        return [head, parts.empty(text)]
    lines = [
        [
            one.queue,
            f"{one.mean:.3f}",
            f"{one.worst:.3f}",
            words.moment(one.worst_s),
            charts.bar(one.mean, mark=one.worst),
        ]
        for one in told.evenness
    ]
    drawn: list[Markup] = []
    size_s = told.buckets.size_s
    if len(told.buckets.starts()) > 1:
        drawn = [parts.figure(one.queue, _index(told, one)) for one in told.evenness]
    return [
        head,
        tag(
            "p",
            "Jain's index of run time by weight: 1 is even, and 1 divided by the number "
            "of tenants is all for one. Hours with one tenant alone are left out.",
            class_="about",
        ),
        parts.table(
            "By queue, weighed by run time; the upright line is the worst hour",
            [
                Head("Queue", "nowrap"),
                Head("Index", "number"),
                Head("Worst hour", "number"),
                Head("Which was", "nowrap"),
                Head(parts.DRAWN),
            ],
            lines,
        ),
        tag("p", f"The worst of {words.bucket(size_s)}:", class_="soft")
        if drawn
        else None,
        parts.figures(drawn) if drawn else None,
    ]


def _index(told: Tenants, one: Evenness) -> Markup:
    assert told.buckets is not None
    about = f"Jain's index of {one.queue} over time, at worst {one.worst:.3f}"
    layer = charts.Layer("at worst", "met", one.by_bucket)
    return charts.stacked(
        told.buckets, [layer], about, top=1.0, label=lambda value: f"{value:.2f}"
    )


def _displacement(told: list[Displaced] | None) -> Inside:
    if told is None:
        return None
    head = tag("h3", "Who displaced whom")
    if not told:
        text = "Nobody: no tenant that started late lacked what it was entitled to."
        return [head, parts.empty(text)]
    return [
        head,
        parts.table(
            "Run time that tenants lacked while they started late, and who had it",
            [
                Head("Lacked", "long"),
                Head("Had more than its part", "long"),
                Head("Queue", "nowrap"),
                Head("Run time", "number"),
                Head("Hours", "number"),
                Head("Most in the hour", "nowrap"),
            ],
            [
                [
                    parts.named(one.displaced),
                    parts.named(one.displacing),
                    one.queue,
                    words.duration(one.ms),
                    words.count(one.hours),
                    words.moment(one.worst_s),
                ]
                for one in told
            ],
        ),
    ]


def show_costs(told: Costs) -> Markup:
    about = (
        "Jobs that are over, by tenant and whole days in UTC: how long workers had them, "
        "and the units of limits that they cost."
    )
    if not told.tenants:
        nothing = parts.empty("No job ended in this time.")
        return parts.section("costs", "Costs", about, nothing)
    return parts.section(
        "costs",
        "Costs",
        about,
        parts.table(
            f"{words.duration(told.run_ms)} of run time and {words.count(told.cost)} "
            "units in all",
            [
                Head("Tenant", "long"),
                Head("Run time", "number"),
                Head("Share", "number"),
                Head(parts.DRAWN),
                Head("Units", "number"),
                Head("Jobs", "number"),
                Head("Done", "number"),
                Head("Attempts a job", "number"),
                Head("Run time a job", "number"),
            ],
            [
                [
                    parts.named(one.tenant),
                    words.duration(one.run_ms),
                    words.share(one.share),
                    charts.bar(one.share),
                    words.count(one.cost),
                    words.count(one.jobs),
                    words.percent(one.done, one.jobs),
                    f"{one.attempts / one.jobs:.2f}" if one.jobs else words.NONE,
                    words.duration(one.run_ms / one.jobs) if one.jobs else words.NONE,
                ]
                for one in told.tenants
            ],
        ),
        parts.left_out(len(told.tenants), told.tenants_all, "tenants"),
    )
