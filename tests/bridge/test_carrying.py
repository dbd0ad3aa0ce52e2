"""The bridge between a source that does as it is told and a real server."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest

from headway.bridge.carrying import ROOTS, Bridge, Crossing
from headway.bridge.port import Gone, Marks, Message, NotNow, Place, SourceFailed
from headway.client import calls
from headway.client.awaited import AsyncClient
from headway.client.errors import Unreachable
from headway.wire.expressions import parse
from tests.bridge.crossing import made_queue, replies, until, wait_for
from tests.server.process import Serve, Served

CROSSING = Crossing(
    queue="orders",
    key=parse("value.k", "key", ROOTS),
    value=parse("value", "value", ROOTS),
    commit_s=0.01,
    grace_s=0.0,
)


class Script:
    """A source whose messages, failures and losses are put in from outside."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.lost: list[Place] = []
        self.failures: list[Exception] = []
        self.refusals = 0
        self.committed: dict[Place, int] = {}
        self.left: list[Marks] = []
        self.polled: list[int] = []
        self.is_closed = False
        self._gone: Gone = lambda _: {}

    is_over = False

    def open(self, gone: Gone) -> None:
        self._gone = gone

    def poll(self, most: int, wait_s: float) -> list[Message]:
        self.polled.append(most)
        if self.failures:
            raise self.failures.pop()
        if self.lost:
            self.left.append(self._gone([self.lost.pop()]))
        found, self.messages = self.messages[:most], self.messages[most:]
        return found

    def commit(self, marks: Marks) -> None:
        if self.refusals:
            self.refusals -= 1
            raise NotNow("not the coordinator")
        self.committed.update(marks)

    def close(self) -> None:
        self.is_closed = True


class Heard:
    def __init__(self) -> None:
        self.events: list[str] = []

    def happened(self, event: str, **_: Any) -> None:
        self.events.append(event)

    warned = failed = happened


def message(key: str, offset: int, partition: int = 0) -> Message:
    return Message(
        "t", partition, offset, b'{"k": "%s", "n": %d}' % (key.encode(), offset)
    )


class Lossy(AsyncClient):
    """Its first request is lost, when all others that would go had time to go."""

    is_lost = False

    async def reply(self, queue: str, reply_key: str, payload: bytes) -> str:
        if not self.is_lost:
            self.is_lost = True
            for _ in range(100):
                await asyncio.sleep(0)
            raise Unreachable("lost")
        return await self.ask(calls.reply(queue, reply_key, payload))


@contextmanager
def running(
    script: Script,
    served: Served,
    heard: Heard,
    client_class: type[AsyncClient] = AsyncClient,
) -> Iterator[Bridge]:
    """A bridge in a thread; what it raises is raised at the end."""
    made: Future[tuple[Bridge, asyncio.AbstractEventLoop]] = Future()
    ended: Future[None] = Future()

    async def run() -> None:
        client = client_class(served.address, tries=1)
        bridge = Bridge(CROSSING, script, client, heard)
        made.set_result((bridge, asyncio.get_running_loop()))
        try:
            await bridge.run()
        finally:
            await client.close()

    def target() -> None:
        try:
            asyncio.run(run())
            ended.set_result(None)
        except BaseException as error:
            ended.set_exception(error)

    thread = Thread(target=target)
    thread.start()
    bridge, loop = made.result(60)
    try:
        yield bridge
    finally:
        if not ended.done():
            loop.call_soon_threadsafe(bridge.stop)
        thread.join(60)
    ended.result(60)


def run_to_its_end(script: Script, served: Served, heard: Heard) -> None:
    with running(script, served, heard):
        until(lambda: script.is_closed)


def test_a_partition_that_is_revoked_leaves_what_is_done_and_drops_the_rest(
    serve: Serve,
) -> None:
    served, script, heard = serve(), Script(), Heard()
    made_queue(served)
    script.messages = [message("a", 5), message("b", 6), message("x", 0, 1)]
    with running(script, served, heard) as bridge:
        until(lambda: script.committed == {("t", 0): 7, ("t", 1): 1})
        served.stop()
        script.messages = [message("c", 7), message("y", 1, 1)]
        until(lambda: bridge.tally.retried > 0 and bridge.tally.read == 5)
        script.lost = [("t", 0)]
        until(lambda: script.left == [{}])
        back = Served(served.data, "--port", str(served.place[1]))
        try:
            until(lambda: script.committed == {("t", 0): 7, ("t", 1): 2})
            until(lambda: bridge.tally.dropped == 1)
            # Its next reader has it, and gives it.
            script.messages = [message("c", 7)]
            until(lambda: script.committed[("t", 0)] == 8)
        finally:
            back.stop()
    assert bridge.tally.early == 5
    assert script.is_closed


def test_of_two_replies_of_one_key_the_earlier_counts_even_if_it_is_lost_first(
    serve: Serve,
) -> None:
    served, script, heard = serve(), Script(), Heard()
    wait_for(served, ["a", "b"])
    script.messages = [message("a", 1), message("a", 2), message("b", 3)]
    with running(script, served, heard, Lossy) as bridge:
        until(lambda: script.committed == {("t", 0): 4})
    assert (bridge.tally.resolved, bridge.tally.repeated) == (2, 1)
    found = replies(served, 2)
    assert {key: value["n"] for key, value in found.items()} == {"a": 1, "b": 3}


def test_a_commit_that_fails_is_tried_again_and_covers_what_came_since(
    serve: Serve,
) -> None:
    served, script, heard = serve(), Script(), Heard()
    made_queue(served)
    script.refusals = 3
    script.messages = [message("a", 1)]
    with running(script, served, heard):
        until(lambda: script.refusals == 0)
        script.messages = [message("b", 2)]
        until(lambda: script.committed == {("t", 0): 3})
    assert heard.events.count("not committed") == 3


def test_a_full_window_rests_the_source_and_goes_on_later(serve: Serve) -> None:
    served, script, heard = serve(), Script(), Heard()
    made_queue(served)
    served.stop()
    script.messages = [message(f"k{number}", number) for number in range(2_600)]
    with running(script, served, heard) as bridge:
        until(lambda: bridge.tally.read == 2_000 and script.polled[-1] == 0)
        back = Served(served.data, "--port", str(served.place[1]))
        try:
            until(lambda: script.committed == {("t", 0): 2_600})
        finally:
            back.stop()
    assert bridge.tally.early == 2_600


def test_a_source_that_fails_ends_the_bridge_with_its_reason(serve: Serve) -> None:
    served, script, heard = serve(), Script(), Heard()
    made_queue(served)
    script.failures = [SourceFailed("fenced")]
    with pytest.raises(SourceFailed, match="fenced"):
        run_to_its_end(script, served, heard)
    assert script.is_closed
    assert heard.events == ["stopped"]
