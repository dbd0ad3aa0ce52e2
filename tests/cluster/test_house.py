"""What leaves a house whose partition may be another's by now."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

from headway.server.callbacks import CallbackFile, Callbacks
from headway.server.guard import Guard
from headway.server.house import Ground, Host, House, open_house
from headway.server.http.message import Request, Response
from headway.server.log import Watcher
from headway.server.tokens import Keyring, TokenFile
from headway.server.truth import InFile
from tests.server.process import PATIENCE_S


class Unheard:
    def replaced(self) -> None:
        raise AssertionError("nobody else has taken over")

    def found(self, queue: str) -> None:
        raise AssertionError("there is no inbox")

    def refused(self, queue: str, why: str) -> None:
        raise AssertionError("there is no inbox")


async def opened(folder: Path, is_held: Callable[[], bool]) -> House:
    watch = Watcher("error", io.StringIO())
    guard = Guard(Keyring(TokenFile(folder), watch), "127.0.0.1", ())
    host = Host(guard, Callbacks(CallbackFile(folder), watch), watch)
    ground = Ground(
        partition="p1",
        truth=InFile(folder / "jobs.db"),
        data=folder,
        writes=folder / "writes",
        key=bytes(32),
        default_queue="default",
        is_held=is_held,
    )
    return await open_house(ground, host, Unheard())


async def asked(house: House, path: bytes, then: Callable[[], None]) -> Response:
    """What comes of a request; `then` happens while it is on its way."""
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    request = Request(b"GET", path, {b"host": b"localhost"})
    house.app.handle(request, answer.set_result)
    assert not answer.done()
    then()
    return await asyncio.wait_for(answer, PATIENCE_S)


def test_an_answer_leaves_only_while_the_partition_is_held(tmp_path: Path) -> None:
    """Reads included: whoever asks the next owner would be told otherwise."""
    lost = asyncio.Event()

    async def story() -> list[int]:
        house = await opened(tmp_path, lambda: not lost.is_set())
        path = b"/v1/queues/default"
        try:
            first = await asked(house, path, lambda: None)
            second = await asked(house, path, lost.set)
        finally:
            await house.close()
        return [first.status, second.status]

    assert asyncio.run(story()) == [200, 503]


def test_whoever_steers_the_cluster_is_answered_by_a_partition_that_has_moved(
    tmp_path: Path,
) -> None:
    """It is no answer of the partition's, and what was done is done."""
    lost = asyncio.Event()

    async def story() -> list[int]:
        house = await opened(tmp_path, lambda: not lost.is_set())
        try:
            about = await asked(house, b"/v1/partitions", lost.set)
            jobs = await asked(house, b"/v1/queues/default", lambda: None)
        finally:
            await house.close()
        return [about.status, jobs.status]

    assert asyncio.run(story()) == [200, 503]
