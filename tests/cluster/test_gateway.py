"""Every request finds its partition, at whichever node it comes in."""

from collections.abc import Iterator

import pytest

from headway.server.cluster.exposition import labelled
from headway.server.cluster.pages import merged
from headway.server.cluster.rules import RULES, partition_of_job, partition_of_token
from headway.server.handlers.table import ROUTES
from tests.cluster.gated import Gated, Node, gated


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    with gated(tmp_path_factory.mktemp("gated")) as cluster:
        yield cluster


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    assert {route.operation for route in ROUTES} == set(RULES)


def test_partitions_are_read_from_ids_and_tokens() -> None:
    assert partition_of_job("p1_17") == "p1"
    assert partition_of_job("west_2_17") == "west_2"
    assert partition_of_job("17") == ""
    assert partition_of_token("p1_00ff.mail_of.things") == "p1"
    assert partition_of_token("nonsense") == ""


def test_both_nodes_take_jobs_of_both_partitions(nodes: Gated) -> None:
    nodes.place(near="p1", far="p2")
    for node in (nodes["a"], nodes["b"]):
        near = node.enqueue("near")[0]
        far = node.enqueue("far", {"tenant": "ada"})[0]
        assert near.startswith("p1_")
        assert far.startswith("p2_")
        for other in (nodes["a"], nodes["b"]):
            shown = other.ask("GET", f"/v1/jobs/{far}")
            assert shown.json["tenant"] == "ada"
            assert other.ask("GET", f"/v1/jobs/{near}/why").status == 200
            assert other.ask("HEAD", f"/v1/jobs/{far}").body == b""
        assert node.ask("DELETE", f"/v1/jobs/{far}").json == {"outcome": "cancelled"}


def test_a_job_of_no_partition_is_unknown_and_not_an_error(nodes: Gated) -> None:
    for node in (nodes["a"], nodes["b"]):
        for path in ("/v1/jobs/p9_1", "/v1/jobs/17", "/v1/jobs/p9_1/result"):
            answer = node.ask("GET", path)
            assert (answer.status, answer.code) == (404, "unknown_job"), path
        assert node.ask("POST", "/ack/p9_00").status == 404
        assert node.ask("GET", "/v1/history/p9").code == "not_found"
        assert node.ask("GET", "/v1/nowhere").code == "not_found"
        assert node.ask("DELETE", "/v1/lease").code == "method_not_allowed"
        assert node.ask("GET", "/v1/queues/-bad-/counts").code == "bad_value"


def test_what_is_wrong_is_refused_as_one_partition_refuses_it(nodes: Gated) -> None:
    for node in (nodes["a"], nodes["b"]):
        for path in ("/v1/lease", "/v1/ack", "/v1/nack", "/v1/wait"):
            assert node.ask("POST", path, b"{").code == "bad_json", path
            assert node.ask("POST", path, {"what": 1}).code == "bad_value", path
        twice = b'{"tokens": ["p1_0.a", "p2_0.a"], "tokens": ["p1_0.a", "p2_0.b"]}'
        assert node.ask("POST", "/v1/ack", twice).code == "bad_json"
        long = {"queues": ["near", "far"], "wait": "2m"}
        assert node.ask("POST", "/v1/lease", long).code == "bad_value"
        answer = node.ask("POST", "/v1/queues/far/jobs", b"{}", content_type="text/x")
        assert answer.code == "unsupported_media_type"


def test_bodies_over_the_limit_are_refused_before_anybody_is_asked(
    nodes: Gated,
) -> None:
    nodes.place(far="p2")
    before = len(nodes["b"].seen)
    connection_closed = nodes["a"].ask(
        "POST", "/v1/queues/far/jobs", b" ", content_length=str(17 << 20)
    )
    assert connection_closed.code == "too_large"
    assert len(nodes["b"].seen) == before


def test_tokens_of_several_partitions_are_settled_together(nodes: Gated) -> None:
    nodes.place(settle1="p1", settle2="p2")
    for node in (nodes["a"], nodes["b"]):
        tokens = []
        for queue in ("settle1", "settle2"):
            node.enqueue(queue, *[{"result": "1m"}] * 4)
            tokens += [job["token"] for job in node.lease(queue)]
        assert len(tokens) == 8
        extended = node.ask("POST", "/v1/extend", {"tokens": tokens, "lease": "1m"})
        assert extended.json == {"stale": [], "cancelled": []}
        mixed = [tokens[0], tokens[4], "p9_00.x", "nonsense"]
        results = {tokens[0]: {"value": 1}, tokens[4]: {"value": 2}}
        acked = node.ask("POST", "/v1/ack", {"tokens": mixed, "results": results})
        assert sorted(acked.json["stale"]) == ["nonsense", "p9_00.x"]
        again = node.ask("POST", "/v1/ack", {"tokens": [tokens[0], tokens[4]]})
        assert sorted(again.json["stale"]) == sorted([tokens[0], tokens[4]])
        failures = [{"token": tokens[1]}, {"token": tokens[5], "bury": True}]
        failures.append({"token": tokens[0]})
        nacked = node.ask("POST", "/v1/nack", {"jobs": failures})
        assert nacked.json["stale"] == [tokens[0]]
        rest = [*tokens[2:4], *tokens[6:]]
        released = node.ask("POST", "/v1/release", {"tokens": rest})
        assert released.json["stale"] == []
        shown = [node.ask("GET", f"/v1/queues/settle{n}").json for n in (1, 2)]
        assert [one["counts"]["ready"] for one in shown] == [2, 2]
        assert shown[1]["counts"]["dead"] == 1
        for queue in ("settle1", "settle2"):
            node.ask("POST", f"/v1/queues/{queue}/purge", {})
            node.ask("POST", f"/v1/queues/{queue}/dead/discard", {})


def test_results_are_told_from_afar_and_waited_for(nodes: Gated) -> None:
    nodes.place(results="p2")
    job = nodes["a"].enqueue("results", {"result": "1m"})[0]
    leased = nodes["a"].lease("results")[0]
    body = {"tokens": [leased["token"]], "results": {leased["token"]: {"value": 7}}}
    assert nodes["a"].ask("POST", "/v1/ack", body).json["stale"] == []
    told = nodes["a"].ask("GET", f"/v1/jobs/{job}/result?wait=10s")
    assert (told.status, told.json["value"]) == (200, 7)


def test_lists_of_queues_are_merged_page_by_page(nodes: Gated) -> None:
    names = [f"list-{number}" for number in range(7)]
    for number, name in enumerate(names):
        nodes.place(**{name: f"p{1 + number % 2}"})
        nodes["a"].enqueue(name, *[{}] * (number + 1))
    for node in (nodes["a"], nodes["b"]):
        found: dict[str, int] = {}
        after: str | None = "list-"
        pages = 0
        while after is not None:
            page = node.ask("GET", f"/v1/queues?limit=3&after={after}").json
            assert len(page["queues"]) <= 3
            for one in page["queues"]:
                assert one["name"] not in found
                found[one["name"]] = one["counts"]["ready"]
            after, pages = page["next"], pages + 1
        mine = {name: ready for name, ready in found.items() if name in names}
        assert mine == {name: number + 1 for number, name in enumerate(names)}
        assert list(found) == sorted(found)
        assert pages >= 3


def test_a_merged_page_ends_where_one_of_its_parts_does() -> None:
    pages = [(["a", "c", "e"], "e"), (["b", "z"], None)]
    assert merged(pages, str, 10) == (["a", "b", "c", "e"], "e")
    assert merged(pages, str, 2) == (["a", "b"], "b")
    assert merged([(["a"], None), (["a"], None)], str, 9, str.__add__) == (["aa"], None)


def test_jobs_that_run_are_listed_partition_by_partition(nodes: Gated) -> None:
    nodes.place(run1="p1", run2="p2")
    jobs = [*nodes["b"].enqueue("run1", *[{}] * 3), *nodes["b"].enqueue("run2", {}, {})]
    worker = "lister"
    leased = [*nodes["b"].lease("run1", worker=worker)]
    leased += nodes["b"].lease("run2", worker=worker)
    for node in (nodes["a"], nodes["b"]):
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = node.ask("GET", f"/v1/running?worker={worker}&limit=2{after}").json
            found += [job["id"] for job in page["jobs"]]
            after = None if page["next"] is None else f"&after={page['next']}"
        assert found == jobs
        rows = node.ask("GET", "/v1/workers").json["workers"]
        mine = next(row for row in rows if row["worker"] == worker)
        assert mine["jobs"] == 5
        one = node.ask("GET", f"/v1/running?worker={worker}&queue=run2").json
        assert len(one["jobs"]) == 2
    assert nodes["a"].ask("GET", "/v1/running?after=p9_1").code == "bad_value"
    tokens = [job["token"] for job in leased]
    assert nodes["a"].ask("POST", "/v1/ack", {"tokens": tokens}).json["stale"] == []


def test_what_is_known_of_all_partitions_is_told_together(nodes: Gated) -> None:
    nodes.place(all1="p1", all2="p2")
    for queue in ("all1", "all2"):
        for node in (nodes["a"], nodes["b"]):
            node.enqueue(queue, {"slo": "1m"})
        schedule = {"cron": "0 4 * * *"}
        made = nodes["a"].ask("PUT", f"/v1/queues/{queue}/schedules/nightly", schedule)
        assert made.status == 200
    for node in (nodes["a"], nodes["b"]):
        page = node.ask("GET", "/v1/schedules").json
        keys = [(one["queue"], one["name"]) for one in page["schedules"]]
        assert keys == [("all1", "nightly"), ("all2", "nightly")]
        wanted = node.ask("GET", "/v1/autoscale?queues=all1,all2&concurrency=2").json
        assert {lane["queue"] for lane in wanted["lanes"]} == {"all1", "all2"}
        assert node.ask("GET", "/v1/autoscale").status == 200
        ranks = node.ask("GET", "/v1/ranking?sort=name&contains=all").json
        assert [row["name"] for row in ranks["queues"]] == ["all1", "all2"]
        second = node.ask("GET", "/v1/ranking?sort=name&contains=all&skip=1").json
        assert [row["name"] for row in second["queues"]] == ["all2"]
        deep = node.ask("GET", "/v1/ranking?skip=500")
        assert deep.code == "bad_value"
        parts = node.ask("GET", "/v1/history").json["partitions"]
        assert [one["partition"] for one in parts] == ["p1", "p2"]
        for partition in ("p1", "p2"):
            path = f"/v1/history/{partition}"
            assert node.ask("GET", path).headers["content-type"].endswith("msgpack")
            reader = {"partition": partition, "position": 1}
            assert node.ask("PUT", "/v1/history/readers/r", reader).status == 200
        assert node.ask("DELETE", "/v1/history/readers/r").status == 204


def test_metrics_are_of_this_node_and_name_the_partition(nodes: Gated) -> None:
    nodes.place(measured="p2")
    nodes["a"].enqueue("measured")
    text = nodes["b"].ask("GET", "/metrics").body.decode()
    assert 'partition="p2"' in text
    assert 'partition="p1"' not in text
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    own = [line for line in samples if line.startswith("headway_node_")]
    assert all('node="b"' in line for line in own)
    assert all('partition="p2"' in line for line in samples if line not in own)
    assert labelled("up 1", "p1") == 'up{partition="p1"} 1'
    assert labelled('up{queue="a"} 1', "p1") == 'up{partition="p1",queue="a"} 1'


def test_operations_of_one_number_are_told_apart(nodes: Gated) -> None:
    nodes.place(bulk1="p1", bulk2="p2")
    for queue in ("bulk1", "bulk2"):
        nodes["a"].enqueue(queue)
        assert nodes["a"].ask("POST", f"/v1/queues/{queue}/purge", {}).status == 202
    listed = nodes["b"].ask("GET", "/v1/operations").json["operations"]
    assert {one["partition"] for one in listed} == {"p1", "p2"}
    for one in listed:
        path = f"/v1/operations/{one['id']}?partition={one['partition']}"
        assert nodes["b"].ask("GET", path).json["queue"] == one["queue"]
    assert nodes["b"].ask("GET", "/v1/operations/99999").code == "unknown_bulk"
    assert nodes["b"].ask("GET", "/v1/operations/1?partition=p9").code == "not_found"
    numbers = [one["id"] for one in listed]
    twice = next((n for n in numbers if numbers.count(n) > 1), None)
    if twice is not None:
        asked = nodes["b"].ask("GET", f"/v1/operations/{twice}")
        assert asked.code == "bad_value"


def test_writes_go_where_their_queue_is(nodes: Gated) -> None:
    nodes.place(written="p2")
    node = nodes["a"]
    path = "/v1/writes/w1/chunks/0/a/0?queue=written"
    assert node.ask("PUT", path, [{}, {}]).status == 200
    winners = [{"partition": 0, "attempt": "a", "chunks": 1}]
    body = {"series": "s", "number": 1, "winners": winners, "count": 2}
    published = node.ask("POST", "/v1/writes/w1/publish", body)
    assert published.status == 200, published
    assert published.json["queues"] == {"written": 2}
    assert node.ask("GET", "/v1/writes/w1").json["jobs"] == 2
    assert node.ask("GET", "/v1/writes/nothing").code == "unknown_write"


def test_a_page_of_a_partition_can_be_asked_for(nodes: Gated) -> None:
    for node in (nodes["a"], nodes["b"]):
        mine = node.ask("GET", "/v1/acts").json
        assert "acts" in mine
        assert node.ask("GET", "/v1/acts?partition=p2").status == 200
        assert node.ask("GET", "/v1/acts?partition=p9").code == "not_found"
        assert node.ask("GET", "/v1/trends?partition=p1").status == 200
        assert node.ask("GET", "/v1/me").json["is_open"] is True
        assert node.ask("GET", "/").status == 200
        assert node.ask("GET", "/livez").json == {"status": "ok"}
        assert node.ask("GET", "/readyz").json == {"status": "ok"}


def test_the_four_simple_endpoints_work_at_both_nodes(nodes: Gated) -> None:
    for node in (nodes["a"], nodes["b"]):
        assert node.ask("POST", "/record", {"payload": "hey"}).status == 204
        record = node.ask("GET", "/record").json
        assert record["payload"] == "hey"
        assert node.ask("POST", f"/ack/{record['id']}").status == 200
        assert node.ask("POST", f"/nack/{record['id']}").status == 404
        assert node.ask("GET", "/record").status == 204


def test_replies_find_their_job_from_afar(nodes: Gated) -> None:
    nodes.place(asking="p2")
    node: Node = nodes["a"]
    node.enqueue("asking")
    token = node.lease("asking")[0]["token"]
    body = {"token": token, "reply_key": "k", "timeout": "1m", "done_on_reply": True}
    assert node.ask("POST", "/v1/wait", body).status == 200
    said = node.ask("POST", "/v1/queues/asking/replies/k", {"payload": 1})
    assert said.json == {"fate": "resolved"}
    assert (
        node.ask("POST", "/v1/wait", {**body, "token": "p9_0.x"}).code == "lease_lost"
    )
