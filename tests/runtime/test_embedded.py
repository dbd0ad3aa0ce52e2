"""The whole queue in a process: real threads, a real file, the real clock."""

import asyncio
import threading
from pathlib import Path

import pytest

import headway
from headway.core.errors import IdempotencyConflict, LeaseLost, UnknownQueue
from headway.core.states import JobState
from headway.runtime.embedded import AsyncOperator, Operator

QUEUE = headway.QueueConfig(name="mail")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def test_a_job_goes_through_its_life(path: Path) -> None:
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        seq = queue.enqueue("mail", b"hello", tenant="acme", slo="5s")
        (job,) = queue.lease("mail", worker="w1")
        assert (job.seq, job.payload, job.spec.tenant) == (seq, b"hello", "acme")
        assert queue.show(seq).state is JobState.LEASED
        assert queue.ack(job.token) == []
        assert queue.ack(job.token) == [job.token]
        assert queue.counts("mail").ready == 0


def test_what_was_accepted_is_there_after_a_restart(path: Path) -> None:
    """P1: and a job that was leased stays leased, by the same token."""
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        first = queue.enqueue("mail", b"1")
        second = queue.enqueue("mail", b"2")
        (job,) = queue.lease(lease="1h")
        assert job.seq == first
    with headway.open(path) as queue:
        (other,) = queue.lease()
        assert other.seq == second
        assert queue.lease() == []
        assert queue.ack(job.token, other.token) == []
        assert queue.counts("mail").leased == 0
        assert queue.enqueue("mail") > second


def test_a_broken_rule_is_raised_to_its_caller(path: Path) -> None:
    with headway.open(path) as queue:
        with pytest.raises(UnknownQueue):
            queue.enqueue("nowhere")
        queue.configure(QUEUE)
        with pytest.raises(LeaseLost):
            queue.nack(12345)


def test_an_idempotency_key_outlives_its_owner(path: Path) -> None:
    """P6, invariant 19."""
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        seq = queue.enqueue("mail", b"1", idempotency_key="k")
    with headway.open(path) as queue:
        assert queue.enqueue("mail", b"1", idempotency_key="k") == seq
        with pytest.raises(IdempotencyConflict):
            queue.enqueue("mail", b"2", idempotency_key="k")


def test_a_waiting_worker_is_served_when_a_job_comes(path: Path) -> None:
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        got: list[headway.LeasedJob] = []
        worker = threading.Thread(
            target=lambda: got.extend(queue.lease("mail", wait="1m"))
        )
        worker.start()
        seq = queue.enqueue("mail")
        worker.join()
        assert [job.seq for job in got] == [seq]


def test_callers_that_wait_are_told_when_the_queue_is_closed(path: Path) -> None:
    queue = headway.open(path)
    queue.configure(QUEUE)
    errors: list[Exception] = []
    started = threading.Event()

    def work() -> None:
        started.set()
        try:
            queue.lease("mail", wait="10m")
        except headway.OwnerStopped as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    started.wait()
    queue.close()
    worker.join()
    assert len(errors) == 1
    with pytest.raises(headway.OwnerStopped):
        queue.enqueue("mail")


def test_many_threads_share_one_queue(path: Path) -> None:
    """Invariants 1-3: each of 400 jobs is delivered once."""
    done: list[int] = []
    with headway.open(path) as queue:
        queue.configure(QUEUE)

        def produce(number: int) -> None:
            for _ in range(10):
                queue.enqueue_many("mail", [headway.spec(b"x")] * 10)

        def consume() -> None:
            while jobs := queue.lease(most=7, wait="200ms"):
                assert queue.ack(*(job.token for job in jobs)) == []
                done.extend(job.seq for job in jobs)

        threads = [threading.Thread(target=produce, args=(n,)) for n in range(4)]
        threads += [threading.Thread(target=consume) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while jobs := queue.lease(most=50):
            queue.ack(*(job.token for job in jobs))
            done.extend(job.seq for job in jobs)
    assert sorted(done) == list(range(1, 401))


def test_asyncio_has_the_same_verbs(path: Path) -> None:
    async def run() -> None:
        async with await headway.open_async(path) as queue:
            await queue.configure(QUEUE)
            seqs = await asyncio.gather(*(queue.enqueue("mail") for _ in range(20)))
            jobs = await queue.lease("mail", most=50)
            assert sorted(job.seq for job in jobs) == sorted(seqs)
            assert await queue.ack(*(job.token for job in jobs)) == []

    asyncio.run(run())


def test_a_large_purge_blocks_its_caller_and_nobody_else(path: Path) -> None:
    """It returns when all is purged; what others bring meanwhile stays."""

    async def run() -> None:
        async with await headway.open_async(path) as queue:
            await queue.configure(QUEUE)
            await queue.configure(headway.QueueConfig(name="other"))
            for _ in range(4):
                await queue.enqueue_many("mail", [headway.spec(b"x")] * 1_000)
            purge = asyncio.ensure_future(queue.purge("mail"))
            while not await queue.operate.bulks():
                await asyncio.sleep(0)
            (bulk,) = await queue.operate.bulks()
            await queue.enqueue("mail", b"later")
            await queue.enqueue("other")
            assert len(await queue.lease("other", wait="1m")) == 1
            assert await purge == bulk.matched_total == 4_000
            assert (await queue.counts("mail")).ready == 1

    asyncio.run(run())


def test_a_cancelled_lease_takes_no_job(path: Path) -> None:
    """Whoever was granted a job in that very moment gives it back uncounted."""

    async def run() -> None:
        async with await headway.open_async(path) as queue:
            await queue.configure(QUEUE)
            waiting = asyncio.ensure_future(queue.lease("mail", wait="1h"))
            await queue.counts("mail")
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            seq = await queue.enqueue("mail")
            (job,) = await queue.lease("mail", wait="1m")
            assert (job.seq, job.attempt) == (seq, 1)

    asyncio.run(run())


def test_both_faces_list_the_same_verbs() -> None:
    def verbs(face: type) -> set[str]:
        return {name for name in vars(face) if not name.startswith("_")}

    assert verbs(headway.Headway) == verbs(headway.AsyncHeadway)
    assert verbs(Operator) == verbs(AsyncOperator)


def test_the_public_names_exist() -> None:
    assert len(headway.__all__) <= 25
    assert all(hasattr(headway, name) for name in headway.__all__)


@pytest.mark.parametrize(
    "fields", [{"tenant": "\ud800"}, {"kind": "a\udfff"}, {"labels": {"\ud800": "x"}}]
)
def test_half_a_character_is_refused_and_stops_nobody(
    path: Path, fields: dict[str, object]
) -> None:
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
        with pytest.raises(headway.RuleBroken, match="half a character"):
            queue.enqueue("mail", **fields)  # type: ignore[arg-type]
        with pytest.raises(headway.RuleBroken, match="half a character"):
            queue.pause("\udc00")
        assert queue.enqueue("mail") == 1
