"""The driver of a fleet: claims jobs, has them run by tasks, and claims again."""

import re
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Final

import msgspec

from headway.client import calls
from headway.client.blocking import Client
from headway.client.errors import ClientFailure
from headway.core.errors import BadValue
from headway.spark.errors import NoRetries, failure_of
from headway.spark.fleet.claims import Claim, Claims
from headway.spark.fleet.port import Counted
from headway.spark.fleet.task import Errand, run_shares
from headway.wire.values import BATCH_MAX
from headway.wire.work import Leased, Settled
from headway.worker.app import App
from headway.worker.heart import Heart
from headway.worker.running import LEASE_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]
CLAIM_MS: Final = 30_000
"""The lease of jobs that are not written down yet: if the driver dies before they are,
nobody has them for so long."""
CLAIM_BYTES_MAX: Final = 64 << 20
"""Payloads in one claim: the driver holds it in memory."""
LOOK_S: Final = 0.2
"""How often a driver looks whether it is to stop."""
SPARK_TRIES: Final = 4


class FleetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a fleet works."""

    app: str
    queue: str
    url: str | None = None
    token: str | None = None
    batch: int = 1_000
    """Jobs in a claim."""
    share: int = 100
    """Jobs in a task."""
    concurrency: int = 20
    """Jobs at once, in each task."""
    lease_ms: int = 300_000
    grace_ms: int = 28_000
    every_s: float | None = None
    """How long it waits when nothing is ready; None ends it then."""


class Stop:
    """A word to stop: asked again, at once."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.hurried = threading.Event()

    def __call__(self, *_: object) -> None:
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()


class Fleet:
    """One queue, one folder of claims, and one Spark to run them."""

    def __init__(
        self,
        spark: "SparkSession",
        app: App,
        claims: Claims,
        settings: FleetSettings,
        tell: Tell,
    ) -> None:
        self._spark = spark
        self._app = app
        self._claims = claims
        self._settings = settings
        self._tell = tell
        self._errand = Errand(
            app=settings.app,
            queue=settings.queue,
            url=settings.url,
            token=settings.token,
            concurrency=settings.concurrency,
            lease_ms=settings.lease_ms,
            tries=_tries(spark),
        )
        self._client = client_of(app, settings)
        self.claimed = 0
        self.counted = Counted()

    def run(self, stop: Stop) -> None:
        """Until it is stopped, or nothing is ready if that is the end."""
        try:
            with self._claims as claims:
                self._work(claims.last(), stop)
        finally:
            self._client.close()

    def _work(self, last: Claim, stop: Stop) -> None:
        if last.jobs and not stop.asked.is_set():
            self._tell(f"claim {last.number} was left open: finishing it")
            self._finish(last, stop)
        while not stop.asked.is_set():
            claim = self._claim(last.number + 1)
            if claim is not None:
                last = claim
                self._finish(claim, stop)
            elif self._settings.every_s is None:
                return
            else:
                stop.asked.wait(self._settings.every_s)

    def _claim(self, number: int) -> Claim | None:
        """Leases jobs and writes them down, before anybody runs them."""
        settings = self._settings
        worker = f"{self._spark.sparkContext.applicationId}-{number}"
        claim = Claim(number=number, queue=settings.queue, worker=worker)
        size = 0
        while len(claim.jobs) < settings.batch and size < CLAIM_BYTES_MAX:
            call = calls.lease(
                [settings.queue],
                min(LEASE_MAX, settings.batch - len(claim.jobs)),
                lease_ms=min(CLAIM_MS, settings.lease_ms),
                worker=worker,
            )
            try:
                found = self._client.ask(call)
            except ClientFailure as error:
                if not claim.jobs and settings.every_s is None:
                    raise
                self._tell(f"no jobs can be had now: {error}")
                break
            claim.jobs += found
            size += sum(map(_size, found))
            if not found:
                break
        if not claim.jobs:
            return None
        self._claims.open(claim)
        return claim

    def _finish(self, claim: Claim, stop: Stop) -> None:
        """Runs what is still ours, and gives back what could not be run."""
        began_s = time.monotonic()
        held = self._extended(claim)
        jobs = list(held.values())
        self.claimed += len(jobs)
        heart = Heart(
            lambda: self._errand.port(self._app),
            held,
            self._settings.lease_ms,
            partial(_forget, held),
        )
        heart.start()
        try:
            counted = self._run(claim.number, jobs, stop)
        except BaseException:
            self._release(jobs)
            self._claims.close(claim)
            raise
        finally:
            heart.stop()
        if counted is None:
            given = self._release(jobs)
            self._tell(f"claim {claim.number}: {given:,} jobs were given back")
        else:
            self.counted = self.counted.plus(counted)
            seconds = time.monotonic() - began_s
            self._tell(f"claim {claim.number}: {told(len(jobs), counted, seconds)}")
        self._claims.close(claim)

    def _run(self, number: int, jobs: list[Leased], stop: Stop) -> Counted | None:
        """Waits for the tasks, in another thread; None if they had to be stopped."""
        if not jobs:
            return Counted()
        running = _Running(self._spark, self._errand, number, self._cut(jobs))
        until_s: float | None = None
        while not running.ended.wait(LOOK_S):
            if stop.asked.is_set() and until_s is None:
                until_s = time.monotonic() + self._settings.grace_ms / 1_000
                self._tell(f"claim {number}: stopping; what runs has its grace")
            is_over = until_s is not None and time.monotonic() > until_s
            if is_over or stop.hurried.is_set():
                running.cancel()
                return None
        return running.outcome()

    def _cut(self, jobs: list[Leased]) -> list[bytes]:
        """Shares of about the same size: every core has one, if there are enough."""
        cores = self._spark.sparkContext.defaultParallelism
        size = max(1, min(self._settings.share, -(-len(jobs) // cores)))
        return [
            msgspec.json.encode(jobs[first : first + size])
            for first in range(0, len(jobs), size)
        ]

    def _extended(self, claim: Claim) -> dict[str, Leased]:
        """Those of its jobs that are ours, for the length of a lease from now."""
        held = {job.token: job for job in claim.jobs}
        for some in _batches(list(held)):
            got = self._client.ask(calls.extend(some, self._settings.lease_ms))
            _forget(held, got)
        return held

    def _release(self, jobs: list[Leased]) -> int:
        """Gives back what is still ours; how many those are."""
        given = 0
        for some in _batches([job.token for job in jobs]):
            got = self._client.ask(calls.release(some))
            given += len(some) - len(got.stale)
        return given


class _Running:
    """The tasks of one claim, under way."""

    def __init__(
        self, spark: "SparkSession", errand: Errand, number: int, shares: list[bytes]
    ) -> None:
        self._context = spark.sparkContext
        self._errand = errand
        self._shares = shares
        self._group = f"headway-claim-{number}"
        self._counted: Counted | None = None
        self._raised: Exception | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self._group, daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)
        self._thread.join()

    def outcome(self) -> Counted:
        if self._raised is not None:
            raise failure_of(self._raised) from self._raised
        assert self._counted is not None
        return self._counted

    def _run(self) -> None:
        context = self._context
        try:
            context.setJobGroup(self._group, self._group, interruptOnCancel=True)
            shares = context.parallelize(self._shares, len(self._shares))
            told = shares.mapPartitions(partial(run_shares, self._errand))
            self._counted = Counted(*told.reduce(_added))
        except Exception as error:  # told by `outcome`
            self._raised = error
        finally:
            self.ended.set()


def told(claimed: int, counted: Counted, seconds: float) -> str:
    """A line for whoever watches."""
    rate = (counted.done + counted.failed + counted.waiting) / max(seconds, 0.001)
    parts = [f"{claimed:,} claimed", f"{counted.done:,} done"]
    for count, name in (
        (counted.failed, "failed"),
        (counted.waiting, "wait for replies"),
        (counted.gone, "settled before or lost"),
    ):
        if count:
            parts.append(f"{count:,} {name}")
    return f"{', '.join(parts)}; {rate:,.0f} jobs/s"


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(add, one, other))


def _batches(tokens: list[str]) -> list[list[str]]:
    return [
        tokens[first : first + BATCH_MAX] for first in range(0, len(tokens), BATCH_MAX)
    ]


def _forget(held: dict[str, Leased], got: Settled) -> None:
    for token in got.stale:
        held.pop(token, None)


def _size(job: Leased) -> int:
    return sum(
        len(part)
        for part in (job.payload, job.payload_base64, job.reply, job.reply_base64)
        if part is not msgspec.UNSET
    )


def _tries(spark: "SparkSession") -> int:
    """How often Spark runs a task: on this machine its master says so."""
    context = spark.sparkContext
    local = re.fullmatch(r"local(?:\[[^\],]+(?:,\s*(\d+))?\])?", context.master)
    if local is not None:
        tries = int(local[1] or 1)
    else:
        conf = context.getConf()
        tries = int(conf.get("spark.task.maxFailures", str(SPARK_TRIES)))
    if tries < 2:
        raise NoRetries(
            f"with {context.master} a task that dies is not tried again: "
            "ask for two tries or more, as in local[4,3] or spark.task.maxFailures=4"
        )
    return tries


def client_of(app: App, settings: FleetSettings) -> Client:
    """The way to the server; refuses an app whose queue is in its own process."""
    if settings.url is not None:
        return Client(settings.url, settings.token)
    port = app.ports.blocking()
    if not isinstance(port, Client):
        app.close()
        rule = "its queue is in one process, where executors are not: name a server"
        raise BadValue("app", settings.app, rule)
    return port
