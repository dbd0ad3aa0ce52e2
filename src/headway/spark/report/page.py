"""The whole page: one file that needs nothing else, and runs nothing."""

import base64
import hashlib
from collections.abc import Iterator
from importlib import resources
from typing import Final

from headway.spark.report import charts, words
from headway.spark.report.figures import Figures
from headway.spark.report.markup import Inside, Markup, join, tag, trusted
from headway.spark.report.read.promises import Kept, Promises
from headway.spark.report.show import (
    capacity,
    limits,
    parts,
    promises,
    tenants,
    troubles,
    waits,
)

TITLE: Final = "Promises kept"
_TERMS: Final = {
    "Lane": "The jobs of a queue that have the same SLO.",
    "SLO": "How long a job may wait for its start. That is the promise.",
    "Kept": "Starts in time, of all promises whose end is known: kept ≥ 99 %, nearly "
    "≥ 90 %. Shares of promises are rounded down, so 100 % means all.",
    "p50, p95, p99": "Half, 95 % and 99 % of the values are at most this.",
}


def page(figures: Figures, title: str | None = None) -> str:
    """HTML with its style in it; the policy in its head forbids all else."""
    shown = title or TITLE
    css = resources.files("headway.spark.report").joinpath("style.css").read_text()
    sections = list(_sections(figures))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(css)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", shown),
        tag("style", trusted(css)),
    )
    body = tag(
        "body",
        tag("a", "To the figures", href="#main", class_="skip"),
        charts.PATTERNS,
        tag(
            "div",
            tag(
                "header",
                tag("h1", shown),
                tag("p", _when(figures), class_="when"),
                _verdict(figures.promises),
                _tiles(figures),
                _contents(sections),
            ),
            tag("main", *(made for _, _, made in sections), id="main"),
            _footer(figures),
            class_="page",
        ),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _sections(figures: Figures) -> Iterator[tuple[str, str, Markup]]:
    """Name, title and markup of those whose tables are there."""
    if figures.promises is not None:
        yield "promises", "Promises", promises.show(figures.promises)
    week = promises.show_week(figures.promises, figures.waits, figures.arrivals)
    if week is not None:
        yield "week", "Hours of the week", week
    if figures.waits is not None:
        yield "waits", "Waits", waits.show(figures.waits)
    if figures.runs is not None:
        yield "runs", "Runs", waits.show_runs(figures.runs)
    if figures.tenants is not None:
        yield "tenants", "Tenants", tenants.show(figures.tenants)
    if figures.limits is not None:
        yield "limits", "Limits", limits.show(figures.limits)
    if figures.failures is not None:
        yield "failures", "Failures", troubles.show_failures(figures.failures)
    if figures.schedules is not None:
        yield "schedules", "Schedules", troubles.show_schedules(figures.schedules)
    if figures.replies is not None:
        yield "replies", "Replies", troubles.show_replies(figures.replies)
    if figures.costs is not None:
        yield "costs", "Costs", tenants.show_costs(figures.costs)
    if figures.capacity is not None:
        yield "capacity", "Capacity", capacity.show(figures.capacity)


def _policy(css: str) -> str:
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"


def _when(figures: Figures) -> str:
    since, before = figures.span.since_s, figures.span.before_s
    begun = "from the first event" if since is None else f"from {words.moment(since)}"
    last = words.moment(figures.as_of_s if before is None else before)
    return (
        f"{begun.capitalize()} to {last} UTC. The tables know "
        f"{words.of(figures.events, 'event')}, up to {words.moment(figures.as_of_s)}."
    )


def _verdict(told: Promises | None) -> Markup:
    if told is None or not told.total.judged:
        nothing = "No promise fell due in this time, so none was kept or missed."
        return tag("p", nothing, class_="verdict")
    total = told.total
    grade = parts.grade(total.met, total.judged)
    share = f"{words.percent(total.met, total.judged)} of"
    all_of = words.of(total.judged, "promise")
    if not total.missed:
        rest = f" in {words.of(told.lanes_all, 'lane')}. Nothing was sacrificed."
        text = join((tag("strong", f"All of {all_of} were kept"), rest))
        return tag("p", text, class_="verdict good")
    flawless = told.lanes_all - told.lanes_missing
    worst = max(told.lanes, key=lambda lane: lane.kept.missed)
    kept = worst.kept
    text = join(
        (
            tag("strong", f"{share} {all_of} were kept."),
            f" {words.of(flawless, 'lane') if flawless else 'No lane'} of "
            f"{told.lanes_all} kept every one. ",
            "Most were missed by ",
            tag("strong", parts.lane_text(worst.queue, worst.slo_ms)),
            f", which kept {words.percent(kept.met, kept.judged)}: {_missed(kept)}.",
        )
    )
    return tag("p", text, class_=f"verdict {grade}")


def _missed(kept: Kept) -> str:
    late = f"{words.of(kept.late, 'job')} started late"
    if not kept.overdue:
        return late
    overdue = f"{words.count(kept.overdue)} past their time have not started"
    return f"{late}, and {overdue}" if kept.late else overdue


def _tiles(figures: Figures) -> Markup:
    tiles: list[tuple[str, str, str]] = []
    if figures.promises is not None:
        total = figures.promises.total
        kept = words.percent(total.met, total.judged)
        tiles.append(("Promises kept", kept, f"of {words.count(total.judged)}"))
        late = f"{words.count(total.late)} late, {words.count(total.overdue)} overdue"
        tiles.append(("Missed", words.count(total.missed), late))
    if figures.waits is not None:
        told = f"longest wait {words.duration(figures.waits.longest_ms)}"
        tiles.append(("Starts", words.count(figures.waits.starts), told))
    if figures.failures is not None:
        failed = f"of {words.of(figures.failures.failures, 'failure')}"
        tiles.append(("Dead letters", words.count(figures.failures.dead), failed))
    if figures.runs is not None:
        told = f"in {words.of(figures.runs.attempts, 'attempt')}"
        tiles.append(("Run time", words.duration(figures.runs.run_ms), told))
    if figures.costs is not None:
        number = words.count(figures.costs.tenants_all)
        tiles.append(("Tenants", number, "whose jobs ended"))
    return tag(
        "dl",
        *(
            tag(
                "div",
                tag("dt", name),
                tag("dd", value),
                tag("dd", note, class_="note"),
                class_="tile",
            )
            for name, value, note in tiles
        ),
        class_="tiles",
    )


def _contents(sections: list[tuple[str, str, Markup]]) -> Inside:
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in sections)
    return tag("nav", tag("ul", *links), aria_label="Sections")


def _footer(figures: Figures) -> Markup:
    terms = join(
        join((tag("dt", name), tag("dd", about))) for name, about in _TERMS.items()
    )
    made = (
        f"Made by headway report from batch {figures.batch} of the lake. "
        "All times are in UTC."
    )
    return tag("footer", tag("h2", "Words"), tag("dl", terms), tag("p", made))
