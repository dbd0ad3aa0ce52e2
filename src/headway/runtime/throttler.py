"""One throttler: a thread that asks its process, and starts another when that one dies."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Final

import msgspec

from headway.core import defaults
from headway.core.commands import Judge, Verdict
from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.runtime.throttler_child import ENDED, NOT_LOADED, Child, Lost
from headway.throttling import ThrottledJob
from headway.throttling.loading import NoThrottler, check_place
from headway.throttling.messages import Batch, Key, Told

AGAIN_S: Final = 0.1
AGAIN_MAX_S: Final = 30.0
"""A process that died is started again so soon; after several in a row, so late."""
RETRY_MS: Final = 1_000
RETRY_MAX_MS: Final = 60_000
"""A job on which it failed is asked about again so soon, and later so late."""
STUBBORN: Final = 4
"""After so many failures on one job it is put off, and those behind it have their turn."""
LOG_S: Final = 10.0
LOG_MAX: Final = 20
"""Lines that one throttler may log in that time."""
TIMEOUT_MIN_MS: Final = 10
TIMEOUT_MAX_MS: Final = 60_000
log: Final = logging.getLogger("headway.throttler")


class Throttling(msgspec.Struct, frozen=True):
    """Which queues have throttlers, and how long one verdict may take."""

    places: Mapping[str, str] = {}
    """By queue: MODULE:CALLABLE."""
    timeout_ms: int = defaults.THROTTLER_TIMEOUT_MS

    def __post_init__(self) -> None:
        for queue, place in self.places.items():
            if not 1 <= len(queue) <= defaults.NAME_LENGTH_MAX:
                rule = f"must have 1 to {defaults.NAME_LENGTH_MAX} characters"
                raise BadValue("queue", queue, rule)
            try:
                check_place(place)
            except NoThrottler as error:
                raise BadValue("throttler", place, str(error)) from error
        if len(self.places) > defaults.THROTTLERS_MAX:
            rule = f"at most {defaults.THROTTLERS_MAX}"
            raise BadValue("throttlers", len(self.places), rule)
        if not TIMEOUT_MIN_MS <= self.timeout_ms <= TIMEOUT_MAX_MS:
            rule = "must be from 10ms to 60s"
            raise BadValue("throttler_timeout", self.timeout_ms, rule)


NONE: Final = Throttling()


def try_out(throttling: Throttling) -> None:
    """Loads each of them once, in a process that ends with that; BadValue says why not.

    So a wrong name is told to whoever gives it, and not to a log hours later.
    """
    trials: list[tuple[str, Child]] = []
    try:
        # All of them at once: most of the time is Python's own start.
        for queue, place in throttling.places.items():
            trials.append((place, Child(queue, place, lambda line: False)))
        for place, child in trials:
            try:
                child.load()
            except Lost as lost:
                raise BadValue("throttler", place, str(lost)) from lost
    finally:
        for _, child in trials:
            child.close()


def throttling_of(
    places: Mapping[str, str] | None,
    timeout: str | int = defaults.THROTTLER_TIMEOUT_MS,
) -> Throttling:
    """As an application gives them; they are tried out."""
    if not places:
        return NONE
    timeout_ms = parse_ms(timeout, "throttler_timeout")
    throttling = Throttling(dict(places), timeout_ms)
    try_out(throttling)
    return throttling


class Asked(msgspec.Struct, frozen=True):
    """One job of a batch."""

    job: ThrottledJob
    failures: int
    """How often there was no verdict on it."""


class Answered(msgspec.Struct, frozen=True):
    """What is to be told to the core, and what it leaves to be done."""

    judge: Judge
    error: str = ""
    """Why there is no verdict; of a batch it is told once."""
    is_own: bool = False
    """It failed on this very job, and not before or after it."""
    again_ms: int = 0
    """Where there is no verdict: after how long it is to be asked again."""


class Throttler:
    """Asks about batches of jobs, one batch at a time."""

    def __init__(
        self, queue: str, place: str, timeout_ms: int, tell: Callable[[Answered], None]
    ) -> None:
        """`tell` is called in the thread of the throttler, once for every job."""
        self._queue = queue
        self._place = place
        self._timeout_s = timeout_ms / 1_000
        self._tell = tell
        self._batches: SimpleQueue[tuple[list[Asked], Batch] | None] = SimpleQueue()
        self._turn = threading.Lock()
        self._is_closed = False
        self._child: Child | None = None
        self._counts: dict[Key, int] = {}
        """All that a new process has to know; zeros are left out."""
        self._deaths = 0
        self._up_s = 0.0
        """Not before this another process is started."""
        self._why = ""
        self._errors = Seldom()
        self._lines = Seldom()
        self._thread: threading.Thread | None = None

    def ask(self, asked: list[Asked], counts: list[tuple[Key, int]]) -> None:
        """Every job is answered, with a verdict or without."""
        if self._thread is None:
            # Not before: of many partitions few may have the queue.
            name = f"headway-throttler-{self._queue}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        self._batches.put((asked, Batch(counts, [one.job for one in asked])))

    def close(self) -> None:
        """At once, whatever its process does."""
        with self._turn:
            self._is_closed = True
            child = self._child
        self._batches.put(None)
        if child is not None:
            child.kill()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._serve_all()
        finally:
            self._drop()

    def _serve_all(self) -> None:
        while (taken := self._batches.get()) is not None:
            asked, batch = taken
            left = list(reversed(asked))
            try:
                self._serve(left, batch)
            except Lost as lost:
                self._lost(lost)
                self._fail(left, lost.error, str(lost))
            except Exception as error:
                # Whatever it is: nobody may wait for an answer that never comes.
                self._lost(Lost(ENDED, f"it can't be asked: {type(error).__name__}"))
                self._fail(left, ENDED, self._why)
            if self._is_closed:
                return

    def _serve(self, left: list[Asked], batch: Batch) -> None:
        """Takes off `left` whatever it has an answer to."""
        for key, count in batch.counts:
            if count:
                self._counts[key] = count
            else:
                self._counts.pop(key, None)
        child = self._child
        if child is None:
            if time.monotonic() < self._up_s:
                self._fail(left, "", self._why)
                return
            child = self._start()
            if child is None:
                return
            batch = Batch(list(self._counts.items()), batch.jobs)
        child.ask(batch, self._timeout_s)
        while left:
            told = child.hear(self._timeout_s)
            one = left.pop()
            self._deaths = 0
            if told.verdict:
                self._tell(Answered(_judge(one.job, told)))
            else:
                self._failed("throttler failed", told.error, told.error)
                self._tell(self._unheard(one, "raised", told.text))

    def _start(self) -> Child | None:
        with self._turn:
            if self._is_closed:
                return None
            try:
                child = Child(self._queue, self._place, self._printed)
            except OSError as error:
                text = f"its process can't be started: {error}"
                raise Lost(NOT_LOADED, text) from error
            self._child = child
        child.load()
        return child

    def _drop(self) -> None:
        with self._turn:
            child, self._child = self._child, None
        if child is not None:
            child.close()

    def _lost(self, lost: Lost) -> None:
        self._drop()
        pause_s = min(AGAIN_S * 2**self._deaths, AGAIN_MAX_S)
        self._deaths = min(self._deaths + 1, 16)
        self._up_s = time.monotonic() + pause_s
        self._why = str(lost)
        if not self._is_closed:
            self._failed("throttler lost", str(lost), lost.error)

    def _fail(self, left: list[Asked], error: str, text: str) -> None:
        """Nobody answers for these. It is laid to the one that was under way, if any."""
        if left and error not in ("", NOT_LOADED):
            self._tell(self._unheard(left.pop(), error, text))
            error = ""
        wait_ms = max(1, round((self._up_s - time.monotonic()) * 1_000))
        for one in reversed(left):
            judge = Judge(one.job.seq, Verdict.FAILED, text=text)
            self._tell(Answered(judge, error, again_ms=wait_ms))
            error = ""
        left.clear()

    def _unheard(self, one: Asked, error: str, text: str) -> Answered:
        failures = one.failures + 1
        judge = Judge(one.job.seq, Verdict.FAILED, text=text)
        again_ms = min(RETRY_MS * 2 ** min(one.failures, 16), RETRY_MAX_MS)
        if failures >= STUBBORN:
            judge.at_ms = one.job.now_ms + RETRY_MAX_MS
        return Answered(judge, error, is_own=True, again_ms=again_ms)

    def _printed(self, line: str) -> bool:
        """Whether more of it will be heard."""
        if line and self._lines.may_say():
            self._say(self._lines, "throttler output", line, text=line)
        return self._lines.left > 0

    def _failed(self, event: str, what: str, error: str) -> None:
        if self._errors.may_say():
            self._say(self._errors, event, what, error=error)

    def _say(self, seldom: "Seldom", event: str, what: str, **fields: object) -> None:
        fields |= {"event": event, "queue": self._queue}
        if seldom.left_out:
            fields["left_out"] = seldom.left_out
            seldom.left_out = 0
        extra = {"fields": fields}
        log.warning("the throttler of %r: %s", self._queue, what, extra=extra)


class Seldom:
    """Lines for the log, of which there may be some in some seconds."""

    def __init__(self) -> None:
        self.left = LOG_MAX
        self.left_out = 0
        self._since_s = time.monotonic()

    def may_say(self) -> bool:
        now_s = time.monotonic()
        if now_s >= self._since_s + LOG_S:
            self._since_s = now_s
            self.left = LOG_MAX
        if self.left == 0:
            self.left_out += 1
            return False
        self.left -= 1
        return True


def _judge(job: ThrottledJob, told: Told) -> Judge:
    verdict = Verdict(told.verdict)
    at_ms = 0
    if verdict is Verdict.LATER:
        at_ms = min(told.at_ms or job.now_ms + told.delay_ms, defaults.TIME_MAX_MS)
    return Judge(job.seq, verdict, at_ms, told.text)
