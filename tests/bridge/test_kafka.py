"""Replies from Kafka, over its own protocol, to a real server."""

import subprocess
import sys
from pathlib import Path

import pytest

import headway
from tests.bridge.crossing import (
    Bridging,
    Cluster,
    Headers,
    counts,
    made_queue,
    replies,
    until,
    wait_for,
)
from tests.server.process import Serve, Served, command, make_token
from tests.worker.places import working

KEY = "order-{value.order}"


def options(cluster: Cluster, topic: str, *more: str, key: str = KEY) -> list[str]:
    return [
        *("kafka", "--brokers", cluster.brokers, "--topic", topic),
        *("--group", f"{topic}-group", "--queue", "orders", "--key", key),
        *("--report-every", "200ms", "--commit-every", "100ms"),
        # One that was killed is missed after so long.
        *("--set", "session.timeout.ms=6000"),
        *more,
    ]


def committed(cluster: Cluster, topic: str) -> dict[int, int]:
    return cluster.committed(topic, f"{topic}-group")


def test_answers_of_a_topic_find_their_jobs(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    app = headway.App(served.address)
    seen: dict[int, object] = {}

    @app.job(queue="orders")
    def ship(order: int) -> object:
        return headway.wait_for(f"order-{order}", timeout="10m")

    @ship.on_reply
    def shipped(answer: dict[str, object], order: int) -> None:
        assert order not in seen
        seen[order] = answer["status"]

    ship.enqueue_many([(order,) for order in range(40)])
    for partition in range(4):
        orders = range(partition, 40, 4)
        sent = [{"order": order, "status": f"s{order}"} for order in orders]
        cluster.send(topic, sent, partition=partition)
    with (
        working(app),
        Bridging(tmp_path, served, *options(cluster, topic)) as bridge,
    ):
        bridge.until(lambda: len(seen) == 40)
        until(lambda: committed(cluster, topic) == dict.fromkeys(range(4), 10))
        assert bridge.stop() == 0
    assert seen == {order: f"s{order}" for order in range(40)}
    told = bridge.counts()
    assert told["read"] == 40 == told["resolved"] + told["early"]
    assert told["in_flight"] == 0


def test_an_answer_before_its_question_is_kept_and_key_and_value_may_be_anywhere(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    made_queue(served)
    headers: Headers = [("correlation-id", b"c-1")]
    cluster.send(topic, [{"data": {"ok": True}}], key=b"shop", headers=headers)
    more = ("--value", "value.data")
    key = "{key}/{header.correlation-id}"
    with Bridging(tmp_path, served, *options(cluster, topic, *more, key=key)) as bridge:
        bridge.until(lambda: bridge.counts().get("early") == 1)
        wait_for(served, ["shop/c-1"])
        assert replies(served, 1) == {"shop/c-1": {"ok": True}}
        assert bridge.stop() == 0


def test_a_bridge_that_is_killed_between_reply_and_commit_changes_nothing_twice(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    keys = [f"order-{order}" for order in range(20)]
    wait_for(served, keys)
    cluster.send(topic, [{"order": order} for order in range(20)])
    never = options(cluster, topic, "--commit-every", "1h")
    with Bridging(tmp_path, served, *never) as bridge:
        bridge.until(lambda: counts(served)["waiting"] == 0)
        bridge.kill()
    assert committed(cluster, topic) == {}
    with Bridging(tmp_path, served, *options(cluster, topic)) as again:
        until(lambda: committed(cluster, topic) == {0: 20})
        assert again.stop() == 0
    assert again.counts()["repeated"] == 20
    assert set(replies(served, 20)) == set(keys)
    assert not any(counts(served).values())


def test_a_bridge_that_is_asked_to_stop_commits_what_it_has_done(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    made_queue(served)
    cluster.send(topic, [{"order": order} for order in range(20)])
    never = options(cluster, topic, "--commit-every", "1h")
    with Bridging(tmp_path, served, *never) as bridge:
        bridge.until(lambda: bridge.counts().get("early") == 20)
        assert committed(cluster, topic) == {}
        assert bridge.stop() == 0
    assert committed(cluster, topic) == {0: 20}
    assert bridge.events("stopped")[0]["in_flight"] == 0


def test_while_the_server_is_away_messages_wait_and_nothing_is_committed(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    wait_for(served, [f"order-{order}" for order in range(30)])
    cluster.send(topic, [{"order": order} for order in range(10)])
    with Bridging(tmp_path, served, *options(cluster, topic)) as bridge:
        until(lambda: committed(cluster, topic) == {0: 10})
        served.kill()
        cluster.send(topic, [{"order": order} for order in range(10, 30)])
        bridge.until(lambda: len(bridge.events("waiting")) == 1)
        bridge.until(lambda: bridge.counts()["read"] == 30)
        bridge.until(lambda: bridge.counts()["retried"] > 0)
        assert committed(cluster, topic) == {0: 10}
        back = Served(served.data, "--port", str(served.place[1]))
        try:
            until(lambda: committed(cluster, topic) == {0: 30})
            assert len(bridge.events("going on")) == 1
            assert len(replies(back, 30)) == 30
            assert bridge.stop() == 0
        finally:
            back.stop()


@pytest.mark.long
def test_a_bridge_without_room_stays_in_its_group(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    made_queue(served)
    served.kill()
    cluster.send(topic, [{"order": order} for order in range(2_500)])
    interval = ("--set", "max.poll.interval.ms=6000")
    with Bridging(tmp_path, served, *options(cluster, topic, *interval)) as bridge:
        bridge.until(lambda: bridge.counts().get("read") == 2_000)
        full = len(bridge.events("progress"))
        # Told five times a second: longer than a member may be silent.
        bridge.until(lambda: len(bridge.events("progress")) > full + 40)
        assert bridge.counts()["read"] == 2_000
        back = Served(served.data, "--port", str(served.place[1]))
        try:
            until(lambda: committed(cluster, topic) == {0: 2_500})
            assert bridge.stop() == 0
        finally:
            back.stop()
    assert bridge.counts()["early"] == 2_500
    assert len(bridge.events("assigned")) == 1
    assert bridge.events("lost") == []


def test_a_bridge_that_is_stopped_without_a_server_gives_its_messages_to_the_next(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    wait_for(served, ["order-1"])
    place = str(served.place[1])
    served.stop()
    cluster.send(topic, [{"order": 1}])
    more = options(cluster, topic, "--grace", "0s")
    with Bridging(tmp_path, served, *more) as bridge:
        bridge.until(lambda: len(bridge.events("waiting")) == 1)
        assert bridge.stop() == 0
    assert committed(cluster, topic) == {}
    back = Served(served.data, "--port", place)
    try:
        with Bridging(tmp_path, back, *options(cluster, topic)):
            assert set(replies(back, 1)) == {"order-1"}
    finally:
        back.stop()


BAD: list[object] = [
    b"{",
    {"no": "order"},
    b'{"order": 5, "order": 6}',
    {"order": {}},
    {"order": 7, "much": "x" * (1 << 20)},
    None,
]
"""The third and the fifth are refused by the server."""


def test_bad_messages_are_told_of_and_passed_over(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    wait_for(served, ["order-1", "order-2"])
    cluster.send(topic, [{"order": 1}, *BAD, {"order": 2}])
    with Bridging(tmp_path, served, *options(cluster, topic)) as bridge:
        assert set(replies(served, 2)) == {"order-1", "order-2"}
        until(lambda: committed(cluster, topic) == {0: 8})
        assert bridge.stop() == 0
    told = sorted(bridge.events("bad message"), key=lambda line: line["offset"])
    assert [line["offset"] for line in told] == [1, 2, 3, 4, 5, 6]
    assert {(line["topic"], line["partition"]) for line in told} == {(topic, 0)}
    assert told[0]["why"] == "value: it is no JSON"
    assert told[2]["why"] == "the server refuses it: bad_json"
    assert told[4]["why"] == "the server refuses it: bad_value"
    assert (bridge.counts()["bad"], bridge.counts()["resolved"]) == (6, 2)


def test_bad_messages_go_to_the_dead_topic_as_they_were(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic, dead = serve(), cluster.topic(), cluster.topic()
    wait_for(served, ["order-2"])
    headers: Headers = [("from", b"shop")]
    cluster.send(topic, [*BAD, {"order": 2}], key=b"k", headers=headers)
    more = options(cluster, topic, "--dead-topic", dead, "--on-bad", "stop")
    with Bridging(tmp_path, served, *more) as bridge:
        assert set(replies(served, 1)) == {"order-2"}
        until(lambda: committed(cluster, topic) == {0: 7})
        assert bridge.stop() == 0
    found = cluster.read(dead, len(BAD))
    places = {dict(message.headers())["headway-source"] for message in found}
    assert places == {f"{topic}/0/{offset}".encode() for offset in range(6)}
    (first,) = (message for message in found if message.value() == b"{")
    assert first.key() == b"k"
    assert dict(first.headers())["from"] == b"shop"
    assert dict(first.headers())["headway-error"] == b"value: it is no JSON"


def test_a_bad_message_stops_a_bridge_that_was_told_so(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    wait_for(served, ["order-1", "order-2"])
    cluster.send(topic, [{"order": 1}, b"{", {"order": 2}])
    for _ in range(2):
        with Bridging(
            tmp_path, served, *options(cluster, topic, "--on-bad", "stop")
        ) as bridge:
            assert bridge.ended() == 2
        last = bridge.log().splitlines()[-1]
        expected = f"headway: {topic}/0/1 is a bad message: value: it is no JSON"
        assert last == expected
    assert committed(cluster, topic) == {0: 1}


def test_a_bridge_without_leave_to_reply_stops_and_loses_nothing(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    topic = cluster.topic()
    token = make_token(tmp_path / "data", "reader", "read")
    good = make_token(tmp_path / "data", "bridge", "reply:orders")
    admin = make_token(tmp_path / "data", "admin", "admin")
    served = serve()
    made = served.ask("PUT", "/v1/queues/orders", {}, token=admin)
    assert made.status < 300
    cluster.send(topic, [{"order": 1}])
    for refused in (token, "hw_unknown"):
        with Bridging(
            tmp_path, served, *options(cluster, topic), HEADWAY_TOKEN=refused
        ) as bridge:
            assert bridge.ended() == 2
        assert "headway: the server refuses replies: " in bridge.log()
        assert refused not in bridge.log()
    assert committed(cluster, topic) == {}
    with Bridging(
        tmp_path, served, *options(cluster, topic), HEADWAY_TOKEN=good
    ) as bridge:
        bridge.until(lambda: bridge.counts().get("early") == 1)


def test_a_queue_that_is_not_there_yet_is_waited_for(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    cluster.send(topic, [{"order": 1}])
    with Bridging(tmp_path, served, *options(cluster, topic)) as bridge:
        bridge.until(lambda: len(bridge.events("waiting")) == 1)
        wait_for(served, ["order-1"])
        assert set(replies(served, 1)) == {"order-1"}


def test_settings_come_from_a_file_and_passwords_are_not_told(
    cluster: Cluster, serve: Serve, tmp_path: Path
) -> None:
    served, topic = serve(), cluster.topic()
    made_queue(served)
    cluster.send(topic, [{"order": 1}])
    file = tmp_path / "kafka.properties"
    file.write_text("# for all\n\nclient.id = me\nsasl.password=pass=word\n")
    more = ("--settings", str(file), "--set", "session.timeout.ms=7000")
    with Bridging(tmp_path, served, *options(cluster, topic, *more)) as bridge:
        bridge.until(lambda: bridge.counts().get("early") == 1)
        assert bridge.stop() == 0
    assert "pass" not in bridge.log()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--set", "group.id=x"), "--group says it"),
        (("--set", "enable.auto.commit=true"), "when their reply is durable"),
        (("--set", "error_cb=x"), "must be a setting of librdkafka"),
        (("--set", "no.such=1"), "No such configuration property"),
        (("--set", "group.id"), "is no name=value"),
        (("--settings", "{file}"), "line 2 is no NAME=VALUE"),
        (("--key", "order"), "at character 1: a path starts with one of"),
        (("--key", "order-{value.id"), "a { without its }"),
        (("--server", "ftp://x"), "must be http://HOST:PORT"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_at_the_start(
    tmp_path: Path, more: tuple[str, ...], why: str
) -> None:
    file = tmp_path / "settings"
    file.write_text("client.id=me\nsecret word\n")
    done = subprocess.run(
        command(
            *("bridge", "kafka", "--brokers", "127.0.0.1:1", "--topic", "t"),
            *("--group", "g", "--queue", "q", "--key", "value"),
            *(part.replace("{file}", str(file)) for part in more),
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done
    (line,) = [one for one in done.stderr.splitlines() if not one.startswith("{")]
    assert line.startswith("headway: ")
    assert why in line
    assert "secret word" not in done.stderr


def test_without_its_package_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "sys.argv[1:] = ['bridge', 'kafka', '--brokers', 'x', '--topic', 't',\n"
        "  '--group', 'g', '--queue', 'q', '--key', 'value']\n"
        "from headway.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'headway[kafka]'" in done.stderr
