"""Writes: all of their jobs or none, once, whatever is repeated and whoever is killed."""

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import Configure, PublishWrite, TakeIn, WritePart
from headway.core.config import QueueConfig
from headway.core.errors import QueueFull
from headway.core.partition import Partition
from headway.core.spec import JobSpec
from headway.core.write import WriteState, WriteView
from headway.runtime.door import Door
from headway.server.problems import Refused
from headway.server.staging import Place
from headway.server.writes import Bounds, Writes
from headway.wire.writes import Publication, Winner
from tests.server.dying_writes import CHUNKS, JOBS
from tests.server.process import PATIENCE_S, Serve, Served

ROOT = Path(__file__).resolve().parents[2]


def chunk_path(name: str, partition: int, attempt: str, number: int = 0) -> str:
    return f"/v1/writes/{name}/chunks/{partition}/{attempt}/{number}?queue=mail"


def put(served: Served, name: str, place: tuple[int, str, int], jobs: int = 10) -> Any:
    partition, attempt, number = place
    body = [{"kind": f"{partition}.{number}.{one}"} for one in range(jobs)]
    answer = served.ask("PUT", chunk_path(name, partition, attempt, number), body)
    assert answer.status == 200, answer
    return answer.json


def publication(count: int, *winners: tuple[int, str, int]) -> dict[str, Any]:
    named = [
        {"partition": partition, "attempt": attempt, "chunks": chunks}
        for partition, attempt, chunks in winners
    ]
    return {"winners": named, "count": count}


def until_taken(served: Served, name: str) -> Any:
    until_s = time.monotonic() + PATIENCE_S
    while (shown := served.ask("GET", f"/v1/writes/{name}").json)[
        "state"
    ] != "taken_in":
        assert time.monotonic() < until_s, shown
    return shown


def ready(served: Served, queue: str = "mail") -> int:
    answer = served.ask("GET", f"/v1/queues/{queue}")
    return int(answer.json["counts"]["ready"]) if answer.status == 200 else 0


def test_staged_jobs_are_nowhere_until_they_are_published(serve: Serve) -> None:
    served = serve()
    put(served, "w", (0, "a", 0))
    put(served, "w", (0, "a", 1))
    shown = put(served, "w", (1, "a", 0))
    assert (shown["state"], shown["jobs"], shown["chunks"]) == ("staged", 30, 3)
    assert ready(served) == 0
    body = publication(30, (0, "a", 2), (1, "a", 1))
    published = served.ask("POST", "/v1/writes/w/publish", body)
    assert (published.status, published.json["jobs"]) == (200, 30), published
    shown = until_taken(served, "w")
    assert (shown["taken"], shown["queues"]) == (30, {"mail": 30})
    assert ready(served) == 30
    until_s = time.monotonic() + PATIENCE_S
    while list((served.data / "writes").iterdir()):
        assert time.monotonic() < until_s, "its files stay"


def test_only_winning_attempts_are_published(serve: Serve) -> None:
    served = serve()
    for attempt in ("first", "second", "third"):
        put(served, "w", (0, attempt, 0), 7)
    body = publication(7, (0, "second", 1))
    assert served.ask("POST", "/v1/writes/w/publish", body).status == 200
    until_taken(served, "w")
    assert ready(served) == 7


def test_a_chunk_sent_twice_is_there_once_and_another_is_refused(serve: Serve) -> None:
    served = serve()
    put(served, "w", (0, "a", 0))
    assert put(served, "w", (0, "a", 0))["jobs"] == 10
    answer = served.ask("PUT", chunk_path("w", 0, "a"), [{"kind": "other"}])
    assert (answer.status, answer.code) == (409, "write_conflict")


def test_a_publication_that_is_repeated_changes_nothing(serve: Serve) -> None:
    served = serve()
    put(served, "w", (0, "a", 0))
    body = publication(10, (0, "a", 1))
    first = served.ask("POST", "/v1/writes/w/publish", body).json
    again = served.ask("POST", "/v1/writes/w/publish", body).json
    assert (first["is_repeated"], again["is_repeated"]) == (False, True)
    # A whole application that runs again: other attempts, other chunks.
    until_taken(served, "w")
    assert put(served, "w", (0, "b", 0), 99)["state"] == "taken_in"
    body = publication(99, (0, "b", 1))
    assert served.ask("POST", "/v1/writes/w/publish", body).json["jobs"] == 10
    assert ready(served) == 10


def test_what_is_missing_or_miscounted_is_not_published(serve: Serve) -> None:
    served = serve()
    put(served, "w", (0, "a", 0))
    for body in (
        publication(20, (0, "a", 2)),
        publication(11, (0, "a", 1)),
        publication(0, (1, "a", 1)),
    ):
        answer = served.ask("POST", "/v1/writes/w/publish", body)
        assert (answer.status, answer.code) == (409, "write_conflict"), body
    twice = publication(20, (0, "a", 1), (0, "a", 1))
    assert served.ask("POST", "/v1/writes/w/publish", twice).status == 400
    assert served.ask("GET", "/v1/writes/w").json["state"] == "staged"


def test_a_discarded_write_is_gone_and_a_published_one_stays(serve: Serve) -> None:
    served = serve()
    put(served, "w", (0, "a", 0))
    assert served.ask("DELETE", "/v1/writes/w").json["state"] == "discarded"
    assert served.ask("DELETE", "/v1/writes/w").code == "unknown_write"
    body = publication(10, (0, "a", 1))
    assert served.ask("POST", "/v1/writes/w/publish", body).code == "write_conflict"
    put(served, "w", (0, "a", 0))
    assert served.ask("POST", "/v1/writes/w/publish", body).status == 200
    told = served.ask("DELETE", "/v1/writes/w").json["state"]
    assert told in {"published", "taken_in"}
    until_taken(served, "w")
    assert ready(served) == 10


def test_names_that_are_no_file_names_are_refused(serve: Serve) -> None:
    served = serve()
    for name in ("..", ".x", "%2e%2e", "a%2Fb", "a%00", "x" * 129, "a%0A"):
        for path in (chunk_path(name, 0, "a"), chunk_path("w", 0, name)):
            answer = served.ask("PUT", path, [{}])
            assert answer.status in {400, 404}, path
        assert served.ask("GET", f"/v1/writes/{name}").status in {400, 404}
    assert not (served.data / "writes").exists()


def test_bad_jobs_are_refused_with_their_chunk(serve: Serve) -> None:
    served = serve()
    jobs = [{"kind": "k"}, {"kind": "k", "slo": "5parsecs"}]
    answer = served.ask("PUT", chunk_path("w", 0, "a"), jobs)
    assert (answer.status, answer.code) == (400, "bad_value")
    assert served.ask("GET", "/v1/writes/w").status == 404


def test_a_stream_goes_by_numbers_that_rise(serve: Serve) -> None:
    served = serve()
    for number in (0, 1, 1, 0):
        name = f"q.{number}"
        put(served, name, (0, "a", 0))
        body = {**publication(10, (0, "a", 1)), "series": "q", "number": number}
        assert served.ask("POST", f"/v1/writes/{name}/publish", body).status == 200
    until_taken(served, "q.1")
    assert ready(served) == 20


def test_keys_that_are_known_are_counted_and_not_enqueued_again(serve: Serve) -> None:
    served = serve()
    jobs: list[dict[str, Any]] = [
        {"kind": "k", "idempotency_key": "1"},
        {"kind": "k", "idempotency_key": "1"},
        {"kind": "other", "idempotency_key": "1"},
        {"kind": "k", "idempotency_key": "2"},
    ]
    assert served.ask("POST", "/v1/queues/mail/jobs", jobs[3]).status == 201
    assert served.ask("PUT", chunk_path("w", 0, "a"), jobs).status == 200
    body = publication(4, (0, "a", 1))
    assert served.ask("POST", "/v1/writes/w/publish", body).status == 200
    shown = until_taken(served, "w")
    assert (shown["taken"], shown["duplicates"], shown["conflicts"]) == (4, 2, 1)
    assert ready(served) == 2


def test_what_a_queue_may_not_hold_is_not_published(serve: Serve) -> None:
    served = serve()
    assert served.ask("PUT", "/v1/queues/mail", {"max_length": 25}).status in {200, 201}
    for name in ("one", "two"):
        put(served, name, (0, "a", 0), 20)
    body = publication(20, (0, "a", 1))
    assert served.ask("POST", "/v1/writes/one/publish", body).status == 200
    assert served.ask("POST", "/v1/writes/two/publish", body).code == "queue_full"
    assert served.ask("GET", "/v1/writes/two").json["state"] == "staged"
    until_taken(served, "one")
    assert ready(served) == 20


def test_jobs_that_are_to_come_count_for_their_queue() -> None:
    partition = Partition()
    spec = JobSpec()
    partition.decide([Configure(QueueConfig(name="mail", max_length=4))], 1)
    parts = [WritePart("mail", 3)]
    answers = partition.decide(
        [
            PublishWrite("one", "d", parts),
            PublishWrite("two", "d", parts),
            TakeIn("one", 0, "mail", [spec, spec]),
            TakeIn("one", 0, "mail", [spec, spec]),
            TakeIn("one", 2, "mail", [spec]),
        ],
        2,
    ).answers
    told = [answer for _, answer in answers]
    assert isinstance(told[1], QueueFull)
    views = [answer for answer in told if isinstance(answer, WriteView)]
    assert [view.taken for view in views] == [0, 2, 2, 3]
    assert views[-1].state is WriteState.TAKEN_IN
    queue = partition.book.queues["mail"]
    assert (queue.ready, queue.coming) == (3, 0)


def test_a_name_and_a_number_are_published_once() -> None:
    partition = Partition()
    partition.decide([Configure(QueueConfig(name="mail"))], 1)
    parts = [WritePart("mail", 3)]
    answers = partition.decide(
        [
            PublishWrite("one", "d", parts),
            PublishWrite("one", "other", [WritePart("mail", 9)]),
            PublishWrite("q.5", "d", parts, "q", 5),
            PublishWrite("q.4", "d", parts, "q", 4),
            PublishWrite("q.6", "d", parts, "q", 6),
        ],
        2,
    ).answers
    views = [answer for _, answer in answers if isinstance(answer, WriteView)]
    told = [(view.id, view.is_repeated) for view in views]
    repeated = [("one", False), ("one", True), ("q.5", False), ("q.5", True)]
    assert told == [*repeated, ("q.6", False)]
    assert partition.book.queues["mail"].coming == 9


def test_chunks_that_come_after_the_publication_are_not_kept(tmp_path: Path) -> None:
    door = Door(tmp_path / "headway.db")
    specs = [JobSpec(kind="k")]
    try:
        writes = Writes(tmp_path / "writes", door)
        writes.put("w", Place(0, "a", 0), "mail", specs)
        asked = Publication(winners=[Winner(0, "a", 1)], count=1)
        writes.publish("w", asked, lambda queues: None)
        assert writes.put("w", Place(0, "b", 0), "mail", specs).state == "published"
        assert not list((tmp_path / "writes" / "w").glob("0.b.*"))
    finally:
        door.close()


def test_a_server_killed_while_it_takes_in_goes_on_where_it_was(serve: Serve) -> None:
    served = serve()
    for number in range(10):
        put(served, "w", (number, "a", 0), 2_000)
    served.kill()
    served = serve()
    body = publication(20_000, *[(number, "a", 1) for number in range(10)])
    assert served.ask("POST", "/v1/writes/w/publish", body).status == 200
    taken = [0]
    for _ in range(3):
        until_s = time.monotonic() + PATIENCE_S
        while (now := served.ask("GET", "/v1/writes/w").json["taken"]) <= taken[-1]:
            assert time.monotonic() < until_s
        taken.append(now)
        served.kill()
        served = serve()
    assert taken == sorted(taken)
    assert until_taken(served, "w")["taken"] == 20_000
    assert ready(served) == 20_000


def test_a_server_killed_during_a_publication_has_all_of_it_or_nothing(
    serve: Serve,
) -> None:
    served = serve()
    for number in range(3):
        put(served, f"w{number}", (0, "a", 0), 500)
    body = publication(500, (0, "a", 1))
    for number in range(3):
        name = f"/v1/writes/w{number}/publish"
        asking = threading.Thread(target=_ask_once, args=(served, name, body))
        asking.start()
        asking.join(0.004 * number)
        served.kill()
        asking.join()
        served = serve()
        # Nobody knows what came of it: asked again, it is published once.
        assert served.ask("POST", name, body).json["jobs"] == 500
        until_taken(served, f"w{number}")
    assert ready(served) == 1_500


def _ask_once(served: Served, path: str, body: Any) -> None:
    with suppress(OSError, HTTPException):
        served.ask("POST", path, body)


def test_what_nobody_publishes_expires_and_is_bounded(tmp_path: Path) -> None:
    now_s = [time.time()]
    door = Door(tmp_path / "headway.db")
    bounds = Bounds(writes=1, chunks=2, bytes=1 << 20, age_s=60.0)
    specs = [JobSpec(kind="k")]
    try:
        writes = Writes(tmp_path / "writes", door, bounds, lambda: now_s[0])
        for number in range(2):
            writes.put("w", Place(0, "a", number), "mail", specs)
        with pytest.raises(Refused, match="at most 2 chunks"):
            writes.put("w", Place(0, "a", 2), "mail", specs)
        large = [JobSpec(payload=bytes(1 << 20))]
        writes.put("x", Place(0, "a", 0), "mail", large)
        with pytest.raises(Refused, match="bytes are staged"):
            writes.put("y", Place(0, "a", 0), "mail", specs)
        assert writes.tidy() == 0
        # A server that is started again knows how old they are.
        now_s[0] += 61.0
        writes = Writes(tmp_path / "writes", door, bounds, lambda: now_s[0])
        assert writes.tidy() == 2
        assert list((tmp_path / "writes").iterdir()) == []
    finally:
        door.close()


def test_a_chunk_that_was_changed_on_disk_is_told_and_not_enqueued(
    serve: Serve,
) -> None:
    served = serve()
    served.ask("PUT", "/v1/queues/mail", {})
    put(served, "w", (0, "a", 0))
    (chunk,) = (served.data / "writes" / "w").glob("0.a.0")
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")
    body = publication(10, (0, "a", 1))
    assert served.ask("POST", "/v1/writes/w/publish", body).status == 200
    until_s = time.monotonic() + PATIENCE_S
    while "write stuck" not in served.log():
        assert time.monotonic() < until_s
    assert served.ask("GET", "/v1/writes/w").json["state"] == "published"
    assert ready(served) == 0


def killed_at(root: Path, every: int) -> list[dict[str, Any]]:
    told = subprocess.run(
        [sys.executable, "-m", "tests.server.dying_writes", str(root), str(every)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-2_000:]
    return [json.loads(line) for line in told.stdout.splitlines()]


def check_stories(stories: list[dict[str, Any]], least: int) -> None:
    assert len(stories) >= least
    assert [story["ended"] for story in stories] == [9] * (len(stories) - 1) + [0]
    for story in stories:
        assert story["counts"] == {"mail": 2 * JOBS, "web": JOBS}, story
        assert (story["state"], story["taken"]) == ("taken_in", CHUNKS * JOBS), story
        assert (story["left"], story["problems"]) == ([], []), story


def test_a_write_killed_at_some_steps_and_sent_again_is_there_once(
    tmp_path: Path,
) -> None:
    check_stories(killed_at(tmp_path, 7), 6)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_a_write_killed_at_every_step_and_sent_again_is_there_once(
    tmp_path: Path,
) -> None:
    check_stories(killed_at(tmp_path, 1), 40)


def test_a_number_is_a_moment_in_a_query_too(serve: Serve) -> None:
    served = serve()
    assert served.ask("POST", "/v1/queues/mail/jobs", {"kind": "k"}).status == 201
    served.until(200, "/v1/jobs")
    until_s = time.monotonic() + PATIENCE_S
    while not (found := served.ask("GET", "/v1/jobs?since=1").json["jobs"]):
        assert time.monotonic() < until_s
    at_ms = found[0]["enqueued_ms"]
    assert served.ask("GET", f"/v1/jobs?until={at_ms}").json["jobs"] == []
    assert len(served.ask("GET", f"/v1/jobs?until={at_ms + 1}").json["jobs"]) == 1
    assert served.ask("GET", "/v1/jobs?since=999999999999999").code == "bad_value"
