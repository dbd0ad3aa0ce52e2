"""History over HTTP: by number, whole commits, kept for those who said so."""

import pytest

from headway.client import history
from headway.client.blocking import Client
from headway.core.errors import RuleBroken
from headway.core.events import Acked, Enqueued, Leased
from headway.runtime.journal import READERS_MAX
from headway.runtime.records import unpack_chapter
from headway.wire.history import read
from tests.server.process import Served


def test_every_event_is_told_once_and_in_order(served: Served) -> None:
    for number in range(20):
        body = {"kind": "k", "payload": number}
        assert served.ask("POST", "/v1/queues/past/jobs", body).status == 201
    leased = served.ask("POST", "/v1/lease", {"queues": ["past"], "max": 20}).json
    tokens = [job["token"] for job in leased["jobs"]]
    assert served.ask("POST", "/v1/ack", {"tokens": tokens}).status == 200
    client = Client(served.address)
    (there,) = client.ask(history.histories())
    numbers: list[int] = []
    kinds: dict[type, int] = {}
    for commit in history.commits(client, there.partition, there.first, there.next):
        chapter = unpack_chapter(commit.blob)
        assert len(chapter.events) == commit.count
        numbers += range(commit.first, commit.first + commit.count)
        for event in chapter.events:
            if event.queue == "past":
                kinds[type(event)] = kinds.get(type(event), 0) + 1
    assert numbers == list(range(there.first, there.next))
    assert (kinds[Enqueued], kinds[Leased], kinds[Acked]) == (20, 20, 20)
    client.close()


def test_a_page_holds_the_event_that_was_asked_for(served: Served) -> None:
    jobs = [{"kind": "k"}] * 5
    assert served.ask("POST", "/v1/queues/other/jobs", jobs).status == 201
    client = Client(served.address)
    (there,) = client.ask(history.histories())
    middle = there.next - 3
    (commit, *_) = client.ask(history.page(there.partition, middle, there.next, 1))
    assert commit.first <= middle < commit.first + commit.count
    assert client.ask(history.page(there.partition, there.next, there.next + 1)) == []
    client.close()


def fill_up(client: Client, names: list[str], partition: str) -> None:
    for name in names:
        client.ask(history.follow(name, partition, 1))


def test_an_unknown_partition_is_not_found(served: Served) -> None:
    answer = served.ask("GET", "/v1/history/other?first=1")
    assert (answer.status, answer.json["code"]) == (404, "not_found")


def test_readers_are_bounded_and_the_servers_own_is_not_theirs(served: Served) -> None:
    client = Client(served.address)
    (there,) = client.ask(history.histories())
    assert client.ask(history.follow("lake", there.partition, 1)) is False
    with pytest.raises(RuleBroken, match="own"):
        client.ask(history.follow("search", there.partition, 1))
    names = [f"reader-{number}" for number in range(READERS_MAX)]
    for name in names[:-2]:
        client.ask(history.follow(name, there.partition, 1))
    with pytest.raises(RuleBroken, match="already"):
        fill_up(client, names[-2:], there.partition)
    for name in ["lake", *names]:
        assert served.ask("DELETE", f"/v1/history/readers/{name}").status == 204
    assert client.ask(history.follow("another", there.partition, 1)) is False
    assert served.ask("DELETE", "/v1/history/readers/another").status == 204
    client.close()


def test_packed_history_says_what_it_is(served: Served) -> None:
    assert served.ask("POST", "/v1/queues/other/jobs", {"kind": "k"}).status == 201
    answer = served.ask("GET", "/v1/history/p1")
    assert answer.headers["content-type"] == "application/vnd.headway.history+msgpack"
    assert read(answer.body)[0].first >= 1
