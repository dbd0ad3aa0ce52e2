"""Errors of the pipeline.

PipelineError
├── NoSpark         the optional extra is not installed
├── NoJava          there is no Java that Spark runs on
├── LakeError       something is wrong with the tables
│   ├── NoLake      there are none, or nothing was published yet
│   ├── EmptySpan   no job came in the span that was asked for
│   ├── LakeFromFuture   a newer version wrote them
│   └── LakeBusy    somebody else writes them
├── HistoryGap      events are missing between what was read and what there is
├── GateClosed      a batch broke a rule; its rows are in quarantine
├── ClaimsBusy      another driver works on the same claims
├── ClaimUnread     what a driver wrote down can't be read
├── NoRetries       this Spark never tries a failed task again
└── NoHandlers      an executor can't load the app
"""

import re
from typing import Final

_UNREADABLE: Final = re.compile(
    r"(?:reading file|FAILED_READ_FILE\S*\]?|PATH_NOT_FOUND\S*).*?"
    r"((?:file:/+|s3a?://|gs://|abfss?://)[^\s'\"]+?\.parquet)",
    re.DOTALL,
)
"""How Spark names a file that it can't read."""
LINE_LENGTH_MAX: Final = 400


class PipelineError(Exception):
    """Told to the user as it is, without a trace."""


class NoSpark(PipelineError):
    """`pip install headway[spark]` brings it."""


class NoJava(PipelineError):
    """Spark runs on Java 17 or 21."""


class LakeError(PipelineError):
    """Tables are not there, or not as they should be."""


class NoLake(LakeError):
    """There are no tables, or nothing was published yet."""


class EmptySpan(LakeError):
    """No job came in the span, or none of the queues that were named."""


class LakeFromFuture(LakeError):
    """Tables were written by a newer version of Headway."""


class LakeBusy(LakeError):
    """Another pipeline has written to the same tables meanwhile."""


class HistoryGap(PipelineError):
    """Events that nobody can read any more, or that came twice."""


class GateClosed(PipelineError):
    """A batch broke a rule, and was not published."""


class ClaimsBusy(PipelineError):
    """One driver at a time works on a folder of claims."""


class ClaimUnread(PipelineError):
    """A claim that was written by a newer version, or is damaged."""


class NoRetries(PipelineError):
    """Jobs of a task that dies are run again by its next try: there must be one."""


class NoHandlers(PipelineError):
    """The app is there for the driver, and not for its executors."""


def failure_of(error: Exception) -> PipelineError:
    """What an executor met, told in one line: Spark tells it in a hundred."""
    text = str(error)
    broken = _UNREADABLE.search(text)
    if broken is not None:
        return LakeError(f"{broken[1]} can't be read: it is damaged or missing")
    for line in reversed(text.splitlines()):
        name, _, told = line.strip().partition(": ")
        kind = name.rpartition(".")[2]
        if name.startswith("headway.") and told:
            if kind == "HistoryGap":
                return HistoryGap(told)
            return PipelineError(f"{kind}: {told}")
    for line in text.splitlines():
        _, found, told = line.partition("SparkException: ")
        if found:
            return PipelineError(told[:LINE_LENGTH_MAX])
    return PipelineError(text.splitlines()[0] if text else type(error).__name__)
