"""Failures by error, schedules and their punctuality, partners and their replies."""

from headway.spark.report import words
from headway.spark.report.markup import Inside, Markup, join, tag
from headway.spark.report.read.troubles import Failure, Failures, Partner, Schedule
from headway.spark.report.show import parts
from headway.spark.report.show.parts import Head
from headway.spark.report.source import Quantiles

_QUANTILES = [Head("p50", "number"), Head("p95", "number"), Head("p99", "number")]


def show_failures(told: Failures) -> Markup:
    about = (
        "Errors by their first line, with a word in the place of numbers and ids that "
        "vary. A failure is tried again, or its job is a dead letter."
    )
    if not told.errors:
        nothing = parts.empty("No attempt failed in this time.")
        return parts.section("failures", "Failures", about, nothing)
    return parts.section(
        "failures",
        "Failures",
        about,
        parts.table(
            f"{words.of(told.failures, 'failure')}, of which "
            f"{words.of(told.dead, 'dead letter')}; those that killed most jobs first",
            [
                Head("Error", "long"),
                Head("Reason", "nowrap"),
                Head("Queue and kind"),
                Head("Failures", "number"),
                Head("Tried again", "number"),
                Head("Dead letters", "number"),
                Head("First", "nowrap"),
                Head("Last", "nowrap"),
            ],
            [
                [
                    _error(one),
                    one.reason or words.NONE,
                    join((one.queue, " ", tag("span", one.kind, class_="soft"))),
                    words.count(one.failures),
                    words.count(one.retries),
                    tag("strong", words.count(one.dead)) if one.dead else "0",
                    words.moment(one.first_s),
                    words.moment(one.last_s),
                ]
                for one in told.errors
            ],
        ),
        parts.left_out(len(told.errors), told.errors_all, "errors"),
    )


def _error(one: Failure) -> Inside:
    line = tag("code", one.error) if one.error else tag("em", "nothing was told")
    if not one.sample or one.sample == one.error:
        return line
    sample = tag("details", tag("summary", "one of them"), tag("pre", one.sample))
    return [line, sample]


def show_schedules(told: list[Schedule]) -> Markup:
    about = (
        "How long after its time a tick came, and its job started, by whole days in UTC. "
        "A tick is skipped when its queue is full; starts are counted when their job is "
        "over."
    )
    if not told:
        nothing = parts.empty("No schedule ticked in this time.")
        return parts.section("schedules", "Schedules", about, nothing)
    return parts.section(
        "schedules",
        "Schedules",
        about,
        parts.table(
            "Ticks, and starts after the tick's time",
            [
                Head("Schedule", "long"),
                Head("Queue", "nowrap"),
                Head("Ticks", "number"),
                Head("Skipped", "number"),
                Head("Tick late, mean", "number"),
                Head("Tick late, most", "number"),
                Head("Starts", "number"),
                *_QUANTILES,
                Head("Latest start", "number"),
            ],
            [
                [
                    one.schedule,
                    one.queue,
                    words.count(one.ticks),
                    words.count(one.skipped),
                    words.duration(one.tick_late_ms / one.ticks)
                    if one.ticks
                    else words.NONE,
                    words.duration(one.tick_latest_ms),
                    words.count(one.starts),
                    *_quantiles(one.quantiles),
                    words.duration(one.start_latest_ms),
                ]
                for one in told
            ],
        ),
    )


def show_replies(told: list[Partner]) -> Markup:
    about = (
        "Partners are told apart by the letters that a reply key begins with. An early "
        "reply was there before its job asked; one that came after the wait had ended is "
        "late, and one that came again is repeated."
    )
    if not told:
        nothing = parts.empty("No job waited for a reply in this time.")
        return parts.section("replies", "Replies", about, nothing)
    return parts.section(
        "replies",
        "Replies",
        about,
        parts.table(
            "How long partners took to answer",
            [
                Head("Partner", "long"),
                Head("Queue", "nowrap"),
                Head("Waits", "number"),
                Head("Replies", "number"),
                Head("Early", "number"),
                Head("None in time", "number"),
                Head("Late", "number"),
                Head("Repeated", "number"),
                *_QUANTILES,
                Head("Longest", "number"),
            ],
            [
                [
                    parts.named(one.partner),
                    one.queue,
                    words.count(one.waits),
                    words.count(one.replies),
                    words.count(one.early),
                    words.count(one.timeouts),
                    words.count(one.late),
                    words.count(one.repeated),
                    *_quantiles(one.quantiles),
                    words.duration(one.longest_ms),
                ]
                for one in told
            ],
        ),
    )


def _quantiles(found: Quantiles | None) -> list[Inside]:
    if found is None:
        return [words.NONE] * 3
    return [words.duration(one) for one in (found.p50, found.p95, found.p99)]
