"""What sections are made of: tables, keys of charts, and the words for what is absent."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headway.core.durations import readable_ms
from headway.spark.report.markup import Inside, Markup, join, tag

GOOD: Final = 0.99
FAIR: Final = 0.9
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LEVELS: Final = 7
DRAWN: Final = tag("span", "Drawn", class_="unseen")
"""The head of a column whose bars show what another says in numbers."""


class Head(NamedTuple):
    """A column; `style` is number, long, nowrap or nothing."""

    text: Inside
    style: str = ""


def section(name: str, title: str, about: str, *inside: Inside) -> Markup:
    heading = f"{name}-title"
    return tag(
        "section",
        tag("h2", title, id=heading),
        tag("p", about, class_="about"),
        *inside,
        id=name,
        aria_labelledby=heading,
    )


def table(
    caption: str, heads: Sequence[Head], body: Iterable[Sequence[Inside]]
) -> Markup:
    """The first cell of a row is its head."""
    columns = tag(
        "tr",
        *(
            tag("th", head.text, scope="col", class_=head.style or None)
            for head in heads
        ),
    )
    lines = [
        tag(
            "tr",
            *(
                tag("td", value, class_=head.style or None)
                if place
                else tag("th", value, scope="row", class_=head.style or None)
                for place, (head, value) in enumerate(zip(heads, row, strict=True))
            ),
        )
        for row in body
    ]
    made = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", columns),
        tag("tbody", *lines),
    )
    return scrolled(made, caption)


def scrolled(made: Markup, about: str) -> Markup:
    """What is too wide for a phone moves by itself; the keyboard can move it, too."""
    return tag(
        "div", made, class_="scroll", tabindex=0, role="region", aria_label=about
    )


def figure(title: Inside, chart: Markup) -> Markup:
    return tag("figure", tag("figcaption", title), chart)


def figures(made: Iterable[Markup]) -> Markup:
    return tag("div", *made, class_="charts")


def key(*told: tuple[str, str]) -> Markup:
    """What the fillings of bars mean: style and words of each."""
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag(
                    "svg",
                    tag("rect", x=0, y=0, width=24, height=12, class_=style),
                    view_box="0 0 24 12",
                    aria_hidden="true",
                ),
                name,
            )
            for style, name in told
        ),
        class_="key",
        aria_label="Key",
    )


def empty(text: str) -> Markup:
    return tag("p", text, class_="empty")


def named(name: str) -> Inside:
    """A name; that there is none has to be said."""
    return name or tag("em", "none", class_="soft")


def lane_name(queue: str, slo_ms: int) -> Markup:
    return join((queue, " ", tag("span", readable_ms(slo_ms), class_="soft")))


def lane_text(queue: str, slo_ms: int) -> str:
    return f"{queue} ({readable_ms(slo_ms)})"


def grade(met: int, judged: int) -> str:
    """good, fair or bad: the style of a share of promises kept."""
    if not judged:
        return "none"
    share = met / judged
    return "good" if share >= GOOD else "fair" if share >= FAIR else "bad"


def left_out(shown: int, of_all: int, what: str) -> Inside:
    """Says that a table is not all there is."""
    if of_all <= shown:
        return None
    return tag("p", f"{shown:,} of {of_all:,} {what} are shown.", class_="soft")


def heat(caption: str, cells: dict[int, tuple[float, str, str]]) -> Markup:
    """By hour of the week: how strong, what is shown, and what it means in full."""
    most = max((strength for strength, _, _ in cells.values()), default=0.0)
    days = sorted({hour // 24 for hour in cells})
    hours = tag(
        "tr",
        tag("th", "UTC", scope="col", class_="day"),
        *(tag("th", f"{hour:02}", scope="col") for hour in range(24)),
    )
    body = []
    for day in range(days[0], days[-1] + 1):
        row = []
        for hour in range(24):
            strength, shown, meaning = cells.get(day * 24 + hour, (0.0, "", ""))
            level = 0
            if most and strength:
                level = max(1, min(LEVELS, round(LEVELS * strength / most)))
            full = f"{DAYS[day]} {hour:02}:00, {meaning}" if meaning else None
            row.append(tag("td", shown or "·", class_=f"h{level}", title=full))
        body.append(tag("tr", tag("th", DAYS[day], scope="row"), *row))
    made = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", hours),
        tag("tbody", *body),
        class_="heat",
    )
    return scrolled(made, caption)
