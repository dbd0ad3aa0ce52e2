"""Results over HTTP: asked for with the job, sent with the ack, read until they end."""

import asyncio
import itertools
import threading
from typing import Any

import pytest

from headway.core.commands import Configure, Enqueue
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.runtime.results import Watch
from headway.runtime.service import Service
from headway.server.desk import Desk
from headway.store.memory import MemoryStore
from tests.server.process import Answer, Serve, Served
from tests.worker.places import until

_numbers = itertools.count()


@pytest.fixture
def queue() -> str:
    """Of each test's own."""
    return f"mail-{next(_numbers)}"


@pytest.fixture
def mail(served: Served, queue: str) -> "Mail":
    return Mail(served, queue)


class Mail:
    """One queue of a server."""

    def __init__(self, served: Served, queue: str = "mail") -> None:
        self.served = served
        self.queue = queue

    def enqueue(self, **fields: object) -> str:
        path = f"/v1/queues/{self.queue}/jobs"
        accepted = self.served.ask("POST", path, {"kind": "send", **fields})
        assert accepted.status == 201, accepted
        return str(accepted.json["jobs"][0]["id"])

    def lease(self) -> dict[str, Any]:
        body = {"queues": [self.queue], "lease": "1h"}
        answer = self.served.ask("POST", "/v1/lease", body)
        found: dict[str, Any] = answer.json["jobs"][0]
        return found

    def ack(self, **result: object) -> Answer:
        """Whatever job is next."""
        return self.finish(str(self.lease()["token"]), **result)

    def finish(self, token: str, **result: object) -> Answer:
        body = {"tokens": [token], "results": {token: result}}
        return self.served.ask("POST", "/v1/ack", body)

    def result(self, job: str, wait: str = "") -> Answer:
        query = f"?wait={wait}" if wait else ""
        return self.served.ask("GET", f"/v1/jobs/{job}/result{query}")


def test_result_is_202_while_the_job_is_open_and_200_with_its_value(
    mail: Mail,
) -> None:
    job = mail.enqueue(result="1h")
    waiting = mail.result(job)
    assert (waiting.status, waiting.json["state"]) == (202, "ready")
    assert "value" not in waiting.json
    leased = mail.lease()
    assert leased["wants_result"] is True
    assert mail.result(job, "10ms").json["state"] == "leased"
    value = {"sent": [1, 2.5]}
    assert mail.finish(leased["token"], value=value).json["stale"] == []
    found = mail.result(job)
    assert (found.status, found.json["state"]) == (200, "done")
    assert found.json["value"] == value
    kept_ms = found.json["kept_until_ms"] - found.json["ended_ms"]
    assert kept_ms == 3_600_000


def test_what_nobody_asked_for_is_not_found(mail: Mail) -> None:
    job = mail.enqueue()
    assert mail.result(job).code == "not_found"
    leased = mail.lease()
    assert "wants_result" not in leased
    assert mail.finish(leased["token"], value=1).status == 200
    assert (mail.result(job).status, mail.result(job).code) == (404, "not_found")
    assert mail.result("p1_999999").code == "not_found"
    assert mail.result("elsewhere_1").code == "unknown_job"


def test_result_that_is_over_is_not_found(mail: Mail) -> None:
    job = mail.enqueue(result="1ms")
    assert mail.ack(value=1).status == 200
    until(lambda: mail.result(job).code == "not_found")


def test_ack_without_a_result_and_a_problem_are_told(mail: Mail) -> None:
    job = mail.enqueue(result="1h")
    body = {"tokens": [mail.lease()["token"]]}
    assert mail.served.ask("POST", "/v1/ack", body).status == 200
    assert mail.result(job).json["value"] is None
    job = mail.enqueue(result="1h")
    mail.ack(problem="it can't be JSON")
    found = mail.result(job).json
    assert (found["state"], found["problem"]) == ("done", "it can't be JSON")
    assert "value" not in found


def test_result_that_is_too_large_completes_its_job(mail: Mail) -> None:
    job = mail.enqueue(result="1h")
    assert mail.ack(value="x" * 300_000).status == 200
    found = mail.result(job).json
    assert found["state"] == "done"
    assert "may be kept" in found["problem"]


def test_cancelled_and_dead_jobs_say_what_became_of_them(mail: Mail) -> None:
    job = mail.enqueue(result="1h")
    mail.served.ask("DELETE", f"/v1/jobs/{job}")
    found = mail.result(job)
    assert (found.status, found.json["state"]) == (200, "cancelled")
    job = mail.enqueue(result="1h")
    nack = {"jobs": [{"token": mail.lease()["token"], "error": "no", "bury": True}]}
    assert mail.served.ask("POST", "/v1/nack", nack).status == 200
    found = mail.result(job)
    assert (found.status, found.json["state"]) == (200, "dead")
    assert [error["text"] for error in found.json["errors"]] == ["no"]


def in_thread(served: Served, job: str) -> tuple[threading.Thread, list[Answer]]:
    """Waits for the result on a connection of its own."""
    answers: list[Answer] = []

    def wait() -> None:
        connection = served._connect()
        connection.request("GET", f"/v1/jobs/{job}/result?wait=60s")
        got = connection.getresponse()
        answers.append(Answer(got.status, {}, got.read()))
        connection.close()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, answers


def test_answer_is_held_back_until_the_ack(mail: Mail) -> None:
    job = mail.enqueue(result="1h")
    thread, answers = in_thread(mail.served, job)
    mail.ack(value="sent")
    thread.join(60)
    assert answers[0].status == 200
    assert answers[0].json["value"] == "sent"


def test_a_desk_that_closes_answers_those_who_wait_for_results() -> None:
    async def main() -> list[Any]:
        service = Service(MemoryStore())
        loop = asyncio.get_running_loop()
        desk = Desk(service, loop)
        answered: asyncio.Future[list[Any]] = loop.create_future()
        desk.ask(
            [
                Configure(QueueConfig(name="q")),
                Enqueue("q", [JobSpec(result_ms=9_000)]),
            ],
            lambda _: None,
        )
        asking = desk.ask([Watch(1, 60_000)], answered.set_result)
        assert asking.is_waiting
        desk.end_waits()
        found = await asyncio.wait_for(answered, 30)
        await asyncio.to_thread(service.close)
        return found

    [found] = asyncio.run(main())
    assert found.state is JobState.READY


@pytest.mark.parametrize("wait", ["61s", "-1", "soon", ""])
def test_waits_are_checked(mail: Mail, wait: str) -> None:
    job = mail.enqueue(result="1h")
    path = f"/v1/jobs/{job}/result?wait={wait}"
    answer = mail.served.ask("GET", path)
    assert (answer.status, answer.code) == (400, "bad_value")


def test_result_survives_a_kill_right_behind_the_answer(serve: Serve) -> None:
    mail = Mail(serve())
    job = mail.enqueue(result="1h")
    assert mail.ack(value=17).status == 200
    mail.served.kill()
    mail.served.stop()
    assert Mail(serve()).result(job).json["value"] == 17
