"""Tells the queue what came of jobs: whatever has ended meanwhile, in one request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import UNSET

from headway.client.errors import ClientFailure
from headway.client.origin import delays_s
from headway.client.port import AsyncPort
from headway.core.defaults import RESULT_PROBLEM_MAX
from headway.core.errors import LeaseLost, RuleBroken
from headway.runtime.errors import RuntimeFailure
from headway.wire.values import BATCH_MAX
from headway.wire.work import Failure, ResultBody
from headway.worker.attempt import Done, Moves, Outcome, Waits, told

log: Final = logging.getLogger("headway.worker")
LOST: Final = (ClientFailure, RuntimeFailure, OSError)
"""The queue does not answer, and may again."""
FAILURES_MAX: Final = 200
"""In one request: their texts and payloads are long."""


ACK_BYTES_MAX: Final = 4 << 20
"""Of results in one request."""


def _fitting(done: list[Done]) -> int:
    """How many of them are told in one request: at least the first."""
    size = 0
    for number, one in enumerate(done[:BATCH_MAX]):
        if one.result is not None and one.result.value is not UNSET:
            size += len(bytes(one.result.value))
            if size > ACK_BYTES_MAX and number:
                return number
    return BATCH_MAX


class Settling:
    """Outcomes on their way. Nothing is given up while the worker lives."""

    def __init__(self, port: AsyncPort, settled: Callable[[str], None]) -> None:
        """`settled` is told each token that the queue has heard of."""
        self._port = port
        self._settled = settled
        self._done: list[Done] = []
        self._failures: list[Failure] = []
        self._waits: list[Waits] = []
        self._moves: list[Moves] = []
        self._has_some = asyncio.Event()
        self._is_ended = False

    def add(self, outcome: Outcome) -> None:
        match outcome:
            case Done():
                self._done.append(outcome)
            case Failure():
                self._failures.append(outcome)
            case Waits():
                self._waits.append(outcome)
            case Moves():
                self._moves.append(outcome)
        self._has_some.set()

    def end(self) -> None:
        """`run` returns when all is told."""
        self._is_ended = True
        self._has_some.set()

    async def run(self) -> None:
        while True:
            await self._has_some.wait()
            self._has_some.clear()
            while self._done or self._failures or self._waits or self._moves:
                await self._flush()
            if self._is_ended:
                return

    async def _flush(self) -> None:
        fitting = _fitting(self._done)
        done, self._done = self._done[:fitting], self._done[fitting:]
        failures = self._failures[:FAILURES_MAX]
        self._failures = self._failures[FAILURES_MAX:]
        waits, self._waits = self._waits, []
        if done:
            await self._finish(done)
        if failures:
            await self._fail(failures)
        for one in waits:
            await self._wait(one)
        moves, self._moves = self._moves, []
        for move in moves:
            await self._move(move)

    async def _finish(self, done: list[Done]) -> None:
        """The jobs are done, even if the queue will not have what they returned."""
        tokens = [one.token for one in done]
        results = {one.token: one.result for one in done if one.result is not None}
        try:
            await self._tell(lambda: self._port.ack(tokens, results), tokens)
        except RuleBroken as error:
            if all(one.value is UNSET for one in results.values()):
                raise
            if len(done) > 1:
                for one in done:
                    await self._finish([one])
                return
            log.error("a result can't be told: %s", error)
            text = told(f"the result was refused: {error}")[:RESULT_PROBLEM_MAX]
            await self._finish([Done(tokens[0], ResultBody(problem=text))])

    async def _fail(self, failures: list[Failure]) -> None:
        tokens = [failure.token for failure in failures]
        try:
            await self._tell(lambda: self._port.nack(failures), tokens)
        except RuleBroken as error:
            if len(failures) > 1:
                for failure in failures:
                    await self._fail([failure])
                return
            # Not extended any more, it is tried again when its lease ends.
            log.error("a failure can't be told: %s", error)
            self._settled(tokens[0])

    async def _wait(self, one: Waits) -> None:
        def ask() -> Awaitable[Any]:
            wait = one.wait
            return self._port.wait(
                one.token,
                wait.key,
                wait.timeout_ms,
                is_done_on_reply=one.is_done_on_reply,
            )

        try:
            await self._tell(ask, [one.token])
        except LeaseLost:
            # Told twice, since the first answer was lost; or too late.
            self._settled(one.token)
        except RuleBroken as error:
            self.add(Failure(one.token, told(f"it can't wait for a reply: {error}")))

    async def _move(self, one: Moves) -> None:
        """First it is there, and then it is done here: by its key it is there once."""
        try:
            await self._tell(lambda: self._port.enqueue(one.queue, [one.spec]), [])
        except RuleBroken as error:
            text = told(f"it can't go on in queue {one.queue!r}: {error}")
            self.add(Failure(one.token, text))
            return
        await self._finish([Done(one.token)])

    async def _tell(self, ask: Callable[[], Awaitable[Any]], tokens: list[str]) -> None:
        """Until it is heard: leases are extended meanwhile, so nothing is lost."""
        for pause_s in delays_s():
            try:
                await ask()
                break
            except LOST as error:
                log.warning("what ended can't be told yet: %s", error)
                await asyncio.sleep(pause_s)
        for token in tokens:
            self._settled(token)
