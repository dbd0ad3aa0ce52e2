"""Queues of several partitions: one queue, whoever asks."""

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.server.cluster.dividing import divided, divided_cap, ranked
from headway.server.cluster.rules import partition_of_job
from headway.server.cluster.wide_shapes import whole
from headway.server.problems import Refused
from headway.wire import queues
from tests.cluster.gated import Gated, gated

_numbers = count()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    with gated(tmp_path_factory.mktemp("gated"), a=["p1", "p3"], b=["p2"]) as cluster:
        yield cluster


@pytest.fixture
def queue(nodes: Gated) -> str:
    """A queue of one partition."""
    name = f"wide-{next(_numbers)}"
    nodes.place(**{name: "p1"})
    assert nodes["a"].ask("PUT", f"/v1/queues/{name}", {}).status == 200
    return name


def _widen(nodes: Gated, queue: str, number: int) -> list[str]:
    answer = nodes["b"].ask("PUT", f"/v1/queues/{queue}/partitions", {"count": number})
    assert answer.status == 200, answer
    partitions: list[str] = answer.json["partitions"]
    return partitions


def _at(ids: list[str]) -> set[str]:
    return {partition_of_job(job) for job in ids}


def test_jobs_go_round_and_counts_are_of_all(nodes: Gated, queue: str) -> None:
    nodes["a"].enqueue(queue)
    assert sorted(_widen(nodes, queue, 3)) == ["p1", "p2", "p3"]
    shown = nodes["a"].ask("GET", f"/v1/queues/{queue}/partitions").json
    assert shown["partitions"][0] == "p1"
    ids = [job for _ in range(6) for job in nodes["b"].enqueue(queue)]
    assert _at(ids) == {"p1", "p2", "p3"}
    for node in (nodes["a"], nodes["b"]):
        assert node.ask("GET", f"/v1/queues/{queue}").json["counts"]["ready"] == 7
        page = node.ask("GET", "/v1/queues?limit=1000").json["queues"]
        mine = [one for one in page if one["name"] == queue]
        assert [one["counts"]["ready"] for one in mine] == [7]
        ranks = node.ask("GET", f"/v1/ranking?contains={queue}").json["queues"]
        assert [row["counts"]["ready"] for row in ranks if row["name"] == queue] == [7]
    got = nodes["a"].lease(queue, max=100)
    assert len(got) == 7
    tokens = [job["token"] for job in got]
    assert nodes["b"].ask("POST", "/v1/ack", {"tokens": tokens}).json["stale"] == []


def test_a_key_is_known_at_whichever_node_it_comes_again(
    nodes: Gated, queue: str
) -> None:
    _widen(nodes, queue, 3)
    path = f"/v1/queues/{queue}/jobs"
    for number in range(6):
        first = nodes["a"].ask("POST", path, {}, idempotency_key=f"k{number}").json
        again = nodes["b"].ask("POST", path, {"idempotency_key": f"k{number}"}).json
        assert again["duplicates"] == 1
        assert again["jobs"][0]["id"] == first["jobs"][0]["id"]
    batch = [{"idempotency_key": f"k{number}"} for number in range(12)]
    body = [*batch[:4], {"kind": "free"}, *batch[4:]]
    told = nodes["a"].ask("POST", path, body)
    assert told.status == 201, told
    assert told.json["duplicates"] == 6
    assert len(told.json["jobs"]) == 13
    ids = [job["id"] for job in told.json["jobs"]]
    assert nodes["a"].ask("GET", f"/v1/jobs/{ids[4]}").json["kind"] == "free"
    lines = b"\n".join(b'{"idempotency_key": "k%d"}' % number for number in range(12))
    kind = "application/x-ndjson"
    same = nodes["b"].ask("POST", path, lines, content_type=kind).json
    assert same["duplicates"] == 12
    assert [job["id"] for job in same["jobs"]] == [*ids[:4], *ids[5:]]
    assert nodes["b"].ask("POST", path, b"{").code == "bad_json"
    two = nodes["b"].ask("POST", path, [{}, {}], idempotency_key="k")
    assert two.code == "bad_value"


def test_a_full_partition_is_passed_over_until_all_are_full(
    nodes: Gated, queue: str
) -> None:
    nodes["a"].ask("PUT", f"/v1/queues/{queue}", {"max_length": 7})
    _widen(nodes, queue, 3)
    path = f"/v1/queues/{queue}/jobs"
    answers = [nodes["a"].ask("POST", path, {}) for _ in range(12)]
    taken = sum(answer.status == 201 for answer in answers)
    assert taken == 7
    assert {answer.code for answer in answers[-4:]} == {"queue_full"}
    assert nodes["b"].ask("GET", f"/v1/queues/{queue}").json["counts"]["ready"] == 7


def test_limits_are_divided_and_shown_as_one(nodes: Gated, queue: str) -> None:
    limit = {"type": "concurrency", "name": "smtp", "max": 7}
    rules = {"limits": [limit], "slo": "9s"}
    nodes["a"].ask("PUT", f"/v1/queues/{queue}", rules)
    _widen(nodes, queue, 3)
    for _ in range(10):
        nodes["a"].enqueue(queue, {}, {})
    got = nodes["b"].lease(queue, max=100)
    assert len(got) == 7
    shown = nodes["a"].ask("GET", f"/v1/queues/{queue}").json
    assert shown["rules"]["limits"][0]["max"] == 7
    assert shown["limits"][0] == {"name": "smtp", "value": "", "used": 7, "max": 7}
    change = {"limits": [{**limit, "max": 9}]}
    patched = nodes["b"].ask("PATCH", f"/v1/queues/{queue}", change)
    assert patched.status == 200, patched
    assert patched.json["rules"]["limits"][0]["max"] == 9
    assert patched.json["rules"]["slo"] == "9s"
    assert len(nodes["a"].lease(queue, max=100)) == 2
    few = {"limits": [{**limit, "max": 2}]}
    assert nodes["b"].ask("PATCH", f"/v1/queues/{queue}", few).code == "bad_value"
    unknown = nodes["b"].ask("PATCH", f"/v1/queues/{queue}", {"nothing": 1})
    assert unknown.code == "bad_value"


def test_holds_and_rules_of_tenants_reach_every_partition(
    nodes: Gated, queue: str
) -> None:
    path = f"/v1/queues/{queue}"
    nodes["a"].ask("PUT", f"{path}/tenants/ada", {"cap": 6, "weight": 2.0})
    nodes["a"].ask("POST", f"{path}/block")
    _widen(nodes, queue, 3)
    for _ in range(9):
        nodes["a"].enqueue(queue, {"tenant": "ada"})
    assert nodes["a"].lease(queue) == []
    assert nodes["b"].ask("POST", f"{path}/unblock").json["is_blocked"] is False
    assert len(nodes["b"].lease(queue, max=100)) == 6
    tenants = nodes["b"].ask("GET", f"{path}/tenants").json["tenants"]
    assert tenants == [{"tenant": "ada", "weight": 2.0, "is_paused": False, "cap": 6}]
    assert nodes["b"].ask("PUT", f"{path}/tenants/ada", {"cap": 9}).status == 200
    assert len(nodes["a"].lease(queue, max=100)) == 3
    assert nodes["b"].ask("PUT", f"{path}/tenants/ada", {"cap": 2}).code == "bad_value"
    assert nodes["a"].ask("POST", f"{path}/pause").json["is_paused"] is True
    assert nodes["b"].ask("GET", path).json["is_paused"] is True
    busy = nodes["a"].ask("GET", f"{path}/busy").json["tenants"]
    assert [(row["tenant"], row["leased"]) for row in busy] == [("ada", 9)]


def test_dead_letters_of_all_partitions_are_listed_and_purged(
    nodes: Gated, queue: str
) -> None:
    path = f"/v1/queues/{queue}"
    _widen(nodes, queue, 3)
    ids = [job for _ in range(6) for job in nodes["a"].enqueue(queue)]
    failures = [
        {"token": job["token"], "bury": True} for job in nodes["a"].lease(queue, max=9)
    ]
    assert nodes["a"].ask("POST", "/v1/nack", {"jobs": failures}).json["stale"] == []
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        answer = nodes["b"].ask("GET", f"{path}/dead?limit=2{after}")
        assert answer.status == 200, answer
        page = answer.json
        found += [job["id"] for job in page["jobs"]]
        after = None if page["next"] is None else f"&cursor={page['next']}"
    assert sorted(found) == sorted(ids)
    preview = nodes["b"].ask("POST", f"{path}/dead/redrive", {"preview": True}).json
    assert preview["matched"] == 6
    assert nodes["b"].ask("POST", f"{path}/dead/redrive", {}).status == 202


def test_replies_find_the_partition_whose_job_waits(nodes: Gated, queue: str) -> None:
    _widen(nodes, queue, 3)
    for number in range(3):
        nodes["a"].enqueue(queue)
        token = nodes["a"].lease(queue)[0]["token"]
        key = f"key-{number}"
        body = {"token": token, "reply_key": key, "timeout": "1m"}
        nodes["a"].ask("POST", "/v1/wait", {**body, "done_on_reply": True})
        path = f"/v1/queues/{queue}/replies/{key}"
        assert nodes["b"].ask("POST", path, {"payload": 1}).json["fate"] == "resolved"


def test_widening_waits_for_what_runs_and_else_changes_nothing(
    nodes: Gated, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.server.cluster.widening.FITS_S", 0.1)
    path = f"/v1/queues/{queue}"
    limit = {"type": "concurrency", "name": "smtp", "max": 4}
    nodes["a"].ask("PUT", path, {"limits": [limit]})
    nodes["a"].enqueue(queue, *[{}] * 6)
    running = nodes["a"].lease(queue)
    assert len(running) == 4
    refused = nodes["a"].ask("PUT", f"{path}/partitions", {"count": 2})
    assert (refused.status, refused.code) == (409, "wrong_state")
    assert nodes["a"].ask("GET", path).json["rules"]["limits"][0]["max"] == 4
    assert nodes.map.queues[queue] == ("p1",)
    tokens = {"tokens": [job["token"] for job in running[:2]]}
    nodes["a"].ask("POST", "/v1/ack", tokens)
    assert len(_widen(nodes, queue, 2)) == 2


def test_what_can_not_be_widened_is_refused(nodes: Gated, queue: str) -> None:
    path = f"/v1/queues/{queue}/partitions"
    assert nodes["a"].ask("PUT", path, {"count": 4}).code == "bad_value"
    assert nodes["a"].ask("PUT", path, {"count": 0}).code == "bad_value"
    rules = {"limits": [{"type": "rate", "name": "calls", "count": 1}]}
    nodes["a"].ask("PUT", f"/v1/queues/{queue}", rules)
    assert nodes["a"].ask("PUT", path, {"count": 2}).code == "bad_value"
    nodes["a"].ask("PUT", f"/v1/queues/{queue}", {})
    assert len(_widen(nodes, queue, 2)) == 2
    assert len(_widen(nodes, queue, 2)) == 2
    assert _widen(nodes, queue, 1) == ["p1"]
    simple = nodes["a"].ask("PUT", "/v1/queues/default/partitions", {"count": 2})
    assert simple.code == "bad_value"
    nodes.place(nobody="p2")
    new = nodes["a"].ask("PUT", "/v1/queues/nobody/partitions", {"count": 2})
    assert new.code == "unknown_queue"


_limits = st.one_of(
    st.builds(queues.ConcurrencyLimit, st.just("c"), st.integers(0, 99)),
    st.builds(
        queues.RateLimit,
        st.just("r"),
        st.integers(1, 99),
        burst=st.none() | st.integers(1, 99),
    ),
    st.builds(
        queues.ShareLimit,
        st.just("s"),
        st.integers(0, 99),
        st.just("region"),
        st.just({"east": 40, "west": 60}),
    ),
)


@given(
    st.lists(_limits, max_size=4),
    st.none() | st.integers(1, 50),
    st.integers(1, 9),
)
def test_parts_are_never_more_than_the_whole(
    limits: list[queues.Limit], length: int | None, number: int
) -> None:
    rules = queues.QueueRules(limits=limits, max_length=length)
    try:
        parts = divided(rules, number)
    except Refused:
        return
    assert len(parts) == number
    assert whole(parts) == rules


@given(st.integers(-1, 50), st.integers(1, 9))
def test_caps_are_divided_without_loss(cap: int, number: int) -> None:
    try:
        caps = divided_cap(cap, number)
    except Refused:
        assert 0 < cap < number
        return
    if cap > 0:
        assert sum(one or 0 for one in caps) == cap
        assert min(one or 0 for one in caps) >= 1
    else:
        assert set(caps) == {cap}


def test_few_keys_move_when_a_partition_is_added() -> None:
    keys = [f"key {number}" for number in range(1_000)]
    two = {key: ranked(key, ("p1", "p2"))[0] for key in keys}
    three = {key: ranked(key, ("p1", "p2", "p3"))[0] for key in keys}
    assert all(three[key] in (two[key], "p3") for key in keys)
    assert 200 < sum(three[key] == "p3" for key in keys) < 470
