"""Bridges of one group on a real Kafka broker, one of them killed."""

from pathlib import Path

import pytest

from tests.bridge.broker import Broker
from tests.bridge.crossing import (
    PARTITIONS,
    Bridging,
    Topics,
    counts,
    replies,
    until,
    wait_for,
)
from tests.server.process import Serve, Served

EACH = 200
"""Messages of each partition."""


def send(topics: Topics, first: int, last: int) -> None:
    """The messages of these numbers, in every partition."""
    for partition in range(PARTITIONS):
        orders = [f"{partition}-{number}" for number in range(first, last)]
        topics.send("answers", [{"order": one} for one in orders], partition=partition)


def bridging(tmp_path: Path, served: Served, topics: Topics) -> Bridging:
    return Bridging(
        tmp_path,
        served,
        *("kafka", "--brokers", topics.brokers, "--topic", "answers"),
        *("--group", "headway", "--queue", "orders", "--key", "value.order"),
        *("--report-every", "200ms", "--commit-every", "100ms"),
        *("--set", "session.timeout.ms=6000"),
    )


def moved(topics: Topics) -> int:
    return sum(topics.committed("answers", "headway").values())


def has_partitions(bridge: Bridging, count: int) -> bool:
    """Told by the last time that partitions were given to it."""
    assigned = bridge.events("assigned")
    return bool(assigned) and len(assigned[-1]["partitions"]) == count


@pytest.mark.long
def test_partitions_move_between_bridges_and_every_answer_finds_its_job_once(
    serve: Serve, tmp_path: Path
) -> None:
    served = serve()
    keys = {f"{part}-{n}" for part in range(PARTITIONS) for n in range(EACH)}
    wait_for(served, sorted(keys))
    with Broker(tmp_path) as broker:
        topics = broker.topics
        broker.make("answers")
        send(topics, 0, 50)
        with bridging(tmp_path, served, topics) as first:
            until(lambda: moved(topics) == 50 * PARTITIONS)
            with bridging(tmp_path, served, topics) as second:
                # The newcomer gets half of them, and the first one lets go.
                until(lambda: has_partitions(second, PARTITIONS // 2))
                assert first.events("revoked")
                send(topics, 50, 100)
                until(lambda: moved(topics) == 100 * PARTITIONS)
                first.kill()
                send(topics, 100, 150)
                until(lambda: moved(topics) == 150 * PARTITIONS)
                assert second.stop() == 0
        send(topics, 150, EACH)
        with bridging(tmp_path, served, topics) as third:
            until(lambda: moved(topics) == EACH * PARTITIONS)
            assert third.stop() == 0
        assert third.counts()["read"] == 50 * PARTITIONS
    assert counts(served)["waiting"] == 0
    assert set(replies(served, len(keys))) == keys
