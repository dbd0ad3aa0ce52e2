"""What signals do while a worker runs, and when it has ended."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from headway.worker.signals import STOPPING, stopped_by_signals


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_signal_stops_a_loop_that_waits(number: signal.Signals) -> None:
    async def run() -> None:
        stopped = asyncio.Event()
        with stopped_by_signals(stopped.set):
            os.kill(os.getpid(), number)
            assert await asyncio.wait_for(stopped.wait(), 60)

    asyncio.run(run())


@pytest.mark.parametrize("is_last", [False, True])
def test_there_is_no_moment_in_which_a_signal_kills(
    is_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one that is heard it becomes the one before, or none, at one stroke."""

    def before(number: int, frame: object) -> None: ...

    set_: list[object] = []
    real = signal.signal

    async def run() -> None:
        real(signal.SIGTERM, before)

        def noted(number: signal.Signals, handler: object) -> object:
            if number is signal.SIGTERM:
                set_.append(handler)
            return real(number, handler)  # type: ignore[arg-type]

        monkeypatch.setattr(signal, "signal", noted)
        with stopped_by_signals(lambda: None, is_last=is_last):
            pass

    asyncio.run(run())
    assert set_[1:] == [signal.SIG_IGN if is_last else before]
    assert len(set_) == 2


def test_in_another_thread_there_are_none_to_be_had() -> None:
    async def run() -> None:
        with stopped_by_signals(lambda: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    seen: list[object] = []
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
    assert seen == [before]
