"""What applications test with."""

import asyncio

import pytest

import headway
from headway import testing

app = headway.App("http://127.0.0.1:1")
seen: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    seen.clear()


@app.job(queue="mail", tenant="acme")
def send(to: str, count: int = 1) -> None:
    if to == "nobody":
        raise LookupError(to)
    seen.append(to * count)


@app.job(queue="mail")
async def send_later(to: str) -> None:
    seen.append(f"later {to}")
    send.enqueue(to)


def test_inline_jobs_run_in_the_caller() -> None:
    with testing.inline(app) as recorder:
        send.enqueue("ada", count=2)
        send_later.enqueue("bob")
        with pytest.raises(LookupError):
            send.enqueue("nobody")
    assert seen == ["adaada", "later bob", "bob"]
    assert [job.kind for job in recorder.jobs][:2] == ["send", "send_later"]


def test_inline_jobs_run_under_a_running_loop() -> None:
    async def main() -> None:
        await send_later.aenqueue("bob")

    with testing.inline(app):
        asyncio.run(main())
    assert seen == ["later bob", "bob"]


def test_recorder_notes_and_runs_nothing() -> None:
    with testing.recording(app) as recorder:
        send.options(delay="5s", key="k").enqueue("ada")
        app.reply("mail", "key", {"a": 1})
        app.schedule(send, "ada", cron="0 6 * * *", name="morning")
    assert seen == []
    job = recorder.assert_enqueued(send, "ada")
    assert (job.queue, job.tenant, job.arguments) == ("mail", "acme", {"to": "ada"})
    assert (job.spec.delay_ms, job.spec.idempotency_key) == (5_000, "k")
    assert recorder.replies == [("mail", "key", {"a": 1})]
    assert [entry.name for entry in recorder.schedules] == ["morning"]
    with pytest.raises(AssertionError, match="is not among"):
        recorder.assert_enqueued(send, "bob")
    with pytest.raises(AssertionError):
        recorder.assert_enqueued(send_later, "ada")


def test_in_memory_queue_is_the_real_one() -> None:
    with testing.in_memory(app):
        send.enqueue("ada")
        send_later.enqueue("bob")
        app.work(until_empty=True)
    assert sorted(seen) == ["ada", "bob", "later bob"]


def test_app_has_its_own_queue_again_afterwards() -> None:
    own = app.ports
    with pytest.raises(KeyError), testing.recording(app):
        raise KeyError
    assert app.ports is own
