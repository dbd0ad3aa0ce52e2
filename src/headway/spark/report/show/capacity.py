"""How many workers it would have taken."""

from headway.spark.report import charts, words
from headway.spark.report.markup import Markup, tag
from headway.spark.report.read.capacity import Capacity, Need
from headway.spark.report.show import parts
from headway.spark.report.show.parts import Head


def show(told: Capacity) -> Markup:
    about = (
        "Worker slots that a queue would have needed, alone, to keep its promises in the "
        "worst minute of every hour, by the model that also advises a running fleet. Busy "
        "is how many slots worked on it on average. Queues peak at different times, and "
        "share workers: together they need at most the sum."
    )
    if not told.queues:
        nothing = parts.empty("Nothing became ready in this time.")
        return parts.section("capacity", "Capacity", about, nothing)
    charted = len(told.buckets.starts()) > 1
    return parts.section(
        "capacity",
        "Capacity",
        about,
        parts.table(
            "By queue, the greatest need first",
            [
                Head("Queue", "nowrap"),
                Head("Slots needed", "number"),
                Head("Busy on average", "number"),
                Head("In the hour from", "nowrap"),
                Head("Why", "long"),
            ],
            [
                [
                    one.queue,
                    words.count(one.workers),
                    f"{one.busy_s / (one.hours * 3_600):.1f}" if one.hours else "0",
                    words.moment(one.worst_s),
                    one.reason,
                ]
                for one in told.queues
            ],
        ),
        tag("h3", f"Slots needed over time, {words.bucket(told.buckets.size_s)} a bar")
        if charted
        else None,
        parts.figures(parts.figure(one.queue, _trend(told, one)) for one in told.queues)
        if charted
        else None,
    )


def _trend(told: Capacity, one: Need) -> Markup:
    about = (
        f"Slots that {one.queue} needed over time, {words.count(one.workers)} at most"
    )
    layer = charts.Layer("slots", "met", one.by_bucket)
    return charts.stacked(told.buckets, [layer], about)
