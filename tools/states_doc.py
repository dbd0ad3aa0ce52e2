"""Writes docs/states.md and its drawing from the one table of transitions."""

from pathlib import Path

from headway.core import states
from tools.states_drawing import DRAWING, drawing

PAGE = Path("docs/states.md")

HEAD = """# The life of a job

Written by `make docs` from `src/headway/core/states.py`, the one table that the code,
the tests and this page follow. A job is in exactly one state, and only these verbs
move it.

"""


def page() -> str:
    drawn = "![The states of a job, and the verbs that move it](images/states.svg)"
    return f"{HEAD}{drawn}\n\n{table()}\n{ends()}"


def table() -> str:
    """Verbs as rows, in the order of the code; states by the arrows they have."""
    rows = ["| verb | from | to |", "|---|---|---|"]
    arrows: dict[tuple[str, states.JobState], list[str]] = {}
    for verb, source, target in states.TRANSITIONS:
        arrows.setdefault((verb, target), []).append(source or "nothing")
    for (verb, target), sources in arrows.items():
        rows.append(f"| {verb} | {', '.join(sources)} | {target} |")
    return "\n".join(rows) + "\n"


def ends() -> str:
    live = ", ".join(states.LIVE)
    others = ", ".join(state for state in states.JobState if state not in states.LIVE)
    return f"Live states: {live}. A job has come to an end in: {others}.\n"


def main() -> None:
    PAGE.write_text(page())
    DRAWING.write_text(drawing())
    print(f"wrote {PAGE} and {DRAWING}")


if __name__ == "__main__":
    main()
