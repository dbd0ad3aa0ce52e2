"""Leases over several partitions, in the order in which their promises need them.

Every partition chooses among its own jobs by the same rules; between them the most urgent
is asked first, by hints. Where nobody has anything, all of them are waited on at once.
"""

import asyncio
import secrets
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

import msgspec

from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.server import bodies
from headway.server.call import answer
from headway.server.cluster.errand import WAIT, Errand, Unreached
from headway.server.cluster.hints import NOTHING, UNKNOWN, Hints, Queues
from headway.server.cluster.peers import PeerFailure
from headway.server.cluster.places import Places
from headway.server.cluster.reach import Reach, Waiting
from headway.server.handlers.work import WAIT_MAX_MS
from headway.server.http.message import Request, Response
from headway.server.problems import Refused, of_error
from headway.server.scopes import Verb
from headway.wire import work

TOGETHER_S: Final = 0.02
"""How long an answer is held back for what others were granted in the same moment."""
SETTLED_S: Final = 2.0
"""How long a lease that is called off may take to say what it was granted."""
WITHDRAW: Final = b"/v1/cluster/withdraw"
_body: Final["msgspec.json.Decoder[Any]"] = msgspec.json.Decoder(work.LeaseBody)
_jobs: Final = msgspec.json.Decoder(work.LeasedJobs).decode
_encode: Final = msgspec.json.Encoder().encode


class Withdrawal(msgspec.Struct):
    """Which lease waits no longer."""

    id: str


withdrawal_of: Final = msgspec.json.Decoder(Withdrawal).decode


class _Look(msgspec.Struct):
    queues: list[str] | None = None


_look: Final = msgspec.json.Decoder(_Look).decode


def queues_of(body: bytes) -> list[str] | None:
    """The queues that a lease names, at a glance; raises if it can't be read."""
    return _look(body).queues


class Poll:
    """A lease at one partition, which can be called off without losing a job."""

    def __init__(self, reach: Reach, partition: str, errand: Errand, wait_s: float):
        self.partition = partition
        self.id = secrets.token_hex(16)
        self.waiting = Waiting()
        self.is_withdrawn = False
        self.task = asyncio.ensure_future(
            reach.ask(
                partition,
                errand,
                is_long=True,
                waiting=self.waiting,
                extra={WAIT: self.id.encode()},
                patience_s=wait_s,
            )
        )

    def taken(self) -> list[work.Leased] | Response:
        """What was granted; a response if that went wrong."""
        try:
            response = self.task.result()
            if response.status != 200:
                return response
            return _jobs(response.body).jobs
        except Refused as refused:
            return of_error(refused)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            text = f"what partition {self.partition} answered can't be read"
            return of_error(_unknown(text, error))


class Leasing:
    """Leases of all partitions of a cluster."""

    def __init__(self, places: Places, reach: Reach, hints: Hints) -> None:
        self._places = places
        self._reach = reach
        self._hints = hints
        self._settling: set[asyncio.Future[None]] = set()

    async def lease(self, errand: Errand, split: Mapping[str, Queues]) -> Response:
        """Jobs of these partitions, of each by its queues."""
        body: work.LeaseBody = bodies.read(errand.request.body, _body)
        for name in body.queues or (None,):
            errand.require(Verb.WORK, name)
        wait_ms = parse_ms(body.wait, "wait")
        if wait_ms > WAIT_MAX_MS:
            raise BadValue("wait", body.wait, "at most a minute")
        lease = _Lease(self, errand, body, split, wait_ms)
        try:
            return await lease.run()
        except BaseException:
            self.settle(lease.polls)
            raise

    def poll(
        self, errand: Errand, body: work.LeaseBody, partition: str, wait_s: float
    ) -> Poll:
        return Poll(self._reach, partition, errand.with_body(_encode(body)), wait_s)

    async def order(self, split: Mapping[str, Queues]) -> list[tuple[str, int]]:
        return await self._hints.order(split)

    def granted(self, split: Mapping[str, Queues], partition: str, count: int) -> None:
        self._hints.granted(split, partition, count)

    def settle(self, polls: Iterable[tuple[Poll, Errand]]) -> None:
        """Nobody wants these any more: they are called off, and their jobs go back."""
        for poll, errand in polls:
            self._aside(self._settled(poll, errand))

    def withdraw_all(self, polls: Iterable[Poll]) -> None:
        for poll in polls:
            poll.is_withdrawn = True
            self._aside(self.withdraw(poll))

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def withdraw(self, poll: Poll) -> None:
        """Its wait is over; what it was granted it still says."""
        poll.waiting.withdraw()
        if self._places.local(poll.partition) is not None:
            return
        url = self._places.address(poll.partition)
        if url is not None:
            headers = {b"content-type": b"application/json"}
            content = _encode(Withdrawal(poll.id))
            request = Request(b"POST", WITHDRAW, headers, content)
            try:
                await self._reach.node(url, request, SETTLED_S)
            except PeerFailure:
                return  # the lease itself is hung up on, a moment later

    async def _settled(self, poll: Poll, errand: Errand) -> None:
        if not poll.task.done():
            if not poll.is_withdrawn:
                await self.withdraw(poll)
            await asyncio.wait({poll.task}, timeout=SETTLED_S)
        if not poll.task.done():
            poll.task.cancel()
            await asyncio.wait({poll.task})
        if poll.task.cancelled():
            return
        taken = poll.taken()
        if isinstance(taken, list) and taken:
            await self.release(poll.partition, errand, taken)

    async def release(
        self, partition: str, errand: Errand, jobs: list[work.Leased]
    ) -> None:
        """Jobs that nobody was given go back: nothing is counted."""
        headers = {**errand.request.headers, b"content-type": b"application/json"}
        content = _encode(work.TokensBody([job.token for job in jobs]))
        request = Request(b"POST", b"/v1/release", headers, content)
        part = errand.with_request(request)
        part.is_repeatable = True
        try:
            await self._reach.ask(partition, part)
        except Refused:
            return  # their leases end by themselves


class _Lease:
    """One lease over several partitions, on its way."""

    def __init__(
        self,
        leasing: Leasing,
        errand: Errand,
        body: work.LeaseBody,
        split: Mapping[str, Queues],
        wait_ms: int,
    ) -> None:
        self._leasing = leasing
        self._errand = errand
        self._body = body
        self._split = split
        self._wait_ms = wait_ms
        self._jobs: list[work.Leased] = []
        self._trouble: Response | None = None
        self._is_answered = False
        """Some partition has said what it has, if only that it has nothing."""
        self.polls: list[tuple[Poll, Errand]] = []
        """Whose jobs go back if nobody takes the answer."""

    async def run(self) -> Response:
        order = await self._leasing.order(self._split)
        unknown = [name for name, rank in order if rank == UNKNOWN]
        # Whoever waits hears of what comes; there is no need to ask the empty first.
        skipped = (UNKNOWN, NOTHING) if self._wait_ms else (UNKNOWN,)
        await self._take([name for name, rank in order if rank not in skipped])
        if not self._jobs and not self._is_refused:
            if self._wait_ms:
                await self._wait()
            elif unknown:
                await self._take(unknown)
        if self._jobs or (self._is_answered and not self._is_refused):
            return answer(work.LeasedJobs(self._jobs))
        if self._trouble is not None:
            return self._trouble
        return answer(work.LeasedJobs([]))

    @property
    def _is_refused(self) -> bool:
        """What one partition finds wrong with it, all would."""
        return self._trouble is not None and 400 <= self._trouble.status < 500

    async def _take(self, partitions: list[str]) -> None:
        """What is there now, one partition after another."""
        for partition in partitions:
            most = self._body.max - len(self._jobs)
            if not most or self._is_refused:
                return
            poll = self._poll(partition, most, 0)
            await asyncio.wait({poll.task})
            self._heard(poll)

    async def _wait(self) -> None:
        """All at once; the first that has something ends it for the others."""
        polls = {
            poll.task: poll
            for poll in (
                self._poll(partition, self._body.max, self._wait_ms)
                for partition in self._split
            )
        }
        while polls and not self._jobs and not self._is_refused:
            done, _ = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await self._fit(polls.pop(task))
        if not polls:
            return
        rest = list(polls.values())
        if len(self._jobs) < self._body.max:
            self._leasing.withdraw_all(rest)
            done, late = await asyncio.wait(polls, timeout=TOGETHER_S)
            for task in done:
                await self._fit(polls[task])
            rest = [polls[task] for task in late]
        if rest:
            self.polls = [one for one in self.polls if one[0] not in rest]
            self._leasing.settle((poll, self._errand) for poll in rest)

    async def _fit(self, poll: Poll) -> None:
        """Adds what it was granted if there is room, else gives it back."""
        taken = poll.taken()
        room = self._body.max - len(self._jobs)
        if isinstance(taken, list) and len(taken) > room:
            self.polls = [one for one in self.polls if one[0] is not poll]
            self._leasing.settle([(poll, self._errand)])
        else:
            self._heard(poll)

    def _poll(self, partition: str, most: int, wait_ms: int) -> Poll:
        queues = self._split[partition]
        body = work.LeaseBody(
            None if queues is None else list(queues),
            most,
            wait_ms,
            self._body.lease,
            self._body.worker,
        )
        poll = self._leasing.poll(self._errand, body, partition, wait_ms / 1_000)
        self.polls.append((poll, self._errand))
        return poll

    def _heard(self, poll: Poll) -> None:
        taken = poll.taken()
        if isinstance(taken, Response):
            self._trouble = self._trouble or taken
            return
        self._is_answered = True
        if taken:
            self._jobs += taken
            self._leasing.granted(self._split, poll.partition, len(taken))


def _unknown(text: str, error: Exception) -> Unreached:
    found = Unreached(text, is_unknown=True)
    found.__cause__ = error
    return found
