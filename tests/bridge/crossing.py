"""A bridge as its users have it: a process between a cluster and a server."""

import itertools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.server.process import Served, command

PATIENCE_S = 60.0
PARTITIONS = 4
"""Of every topic of the mock cluster."""
_numbers = itertools.count()
Headers = list[tuple[str, str | bytes | None]]


class Topics:
    """The topics of some brokers."""

    def __init__(self, brokers: str) -> None:
        self.brokers = brokers
        self._producer = Producer(
            {
                "bootstrap.servers": self.brokers,
                "message.max.bytes": 4 << 20,
                "log_level": 3,
            }
        )

    def topic(self) -> str:
        """A name that nobody has used."""
        return f"answers-{next(_numbers)}"

    def send(
        self,
        topic: str,
        values: Iterable[object],
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Messages that are in the topic when it returns; bytes go as they are."""
        failed: list[Any] = []
        for value in values:
            is_raw = value is None or isinstance(value, bytes)
            self._producer.produce(
                topic,
                value if is_raw else json.dumps(value).encode(),  # type: ignore[arg-type]
                key,
                partition,
                headers=headers,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0
        assert failed == []

    def committed(self, topic: str, group: str) -> dict[int, int]:
        """From where the next one of the group would go on, by partition."""
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": group})
        wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        until_s = time.monotonic() + PATIENCE_S
        try:
            while True:
                try:
                    found = consumer.committed(wanted, timeout=PATIENCE_S)
                    break
                except KafkaException:
                    # A broker that has just started looks for its coordinator.
                    assert time.monotonic() < until_s
        finally:
            consumer.close()
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def read(self, topic: str, count: int) -> list[Any]:
        """The messages of a topic, once there are so many."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": f"reader-{next(_numbers)}",
                "auto.offset.reset": "earliest",
            }
        )
        found: list[Any] = []
        try:
            consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
            until_s = time.monotonic() + PATIENCE_S
            while len(found) < count:
                assert time.monotonic() < until_s, found
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    found.append(message)
        finally:
            consumer.close()
        return found


class Cluster(Topics):
    """Brokers that speak Kafka's protocol: librdkafka's own, within this process."""

    def __init__(self) -> None:
        # The cluster lives as long as this producer.
        self._held = Producer(
            {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 3}
        )
        found = self._held.list_topics(timeout=PATIENCE_S).brokers.values()
        super().__init__(",".join(f"{one.host}:{one.port}" for one in found))


class Bridging:
    """`headway bridge` with these options, until the end of the block."""

    def __init__(
        self, folder: Path, served: Served, *options: str, **variables: str
    ) -> None:
        self._log = folder / f"bridge-{next(_numbers)}.log"
        self._command = command("bridge", *options, "--server", served.address)
        self._variables = {**os.environ, "HEADWAY_TOKEN": "", **variables}

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=self._variables,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def ended(self) -> int:
        return self.process.wait(PATIENCE_S)

    def log(self) -> str:
        return self._log.read_text()

    def events(self, event: str) -> list[dict[str, Any]]:
        lines = self._log.read_text().rpartition("\n")[0].splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def counts(self) -> dict[str, int]:
        """As last told."""
        told = self.events("stopped") or self.events("progress")
        return told[-1] if told else {}

    def until(self, holds: Callable[[], bool]) -> None:
        """Looks until it is so, while the bridge lives."""
        until(lambda: self.process.poll() is not None or holds())
        assert holds(), self.log()


def until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < until_s, "it does not come about"
        pause.wait(0.02)


def made_queue(served: Served) -> None:
    assert served.ask("PUT", "/v1/queues/orders", {}).status in (200, 201, 204)


def counts(served: Served) -> dict[str, int]:
    found: dict[str, int] = served.ask("GET", "/v1/queues/orders").json["counts"]
    return found


def wait_for(served: Served, keys: Iterable[str]) -> None:
    """Jobs of the queue orders, one for each key, that wait for their replies."""
    keys = list(keys)
    jobs = [{"kind": "ship", "payload": key} for key in keys]
    assert served.ask("POST", "/v1/queues/orders/jobs", jobs).status == 201
    body = {"queues": ["orders"], "max": len(keys), "wait": "20s", "lease": "10m"}
    leased = served.ask("POST", "/v1/lease", body).json["jobs"]
    assert sorted(job["payload"] for job in leased) == sorted(keys)
    for job in leased:
        wait = {"token": job["token"], "reply_key": job["payload"], "timeout": "1h"}
        assert served.ask("POST", "/v1/wait", wait).status == 200


def replies(served: Served, count: int) -> dict[str, Any]:
    """What so many jobs go on with, by the key that they waited for."""
    found: dict[str, Any] = {}
    until_s = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < until_s, found
        body = {"queues": ["orders"], "max": 100, "wait": "1s"}
        jobs = served.ask("POST", "/v1/lease", body).json["jobs"]
        for job in jobs:
            assert job["payload"] not in found, "it went on twice"
            found[job["payload"]] = job["reply"]
        if jobs:
            tokens = {"tokens": [job["token"] for job in jobs]}
            assert served.ask("POST", "/v1/ack", tokens).json["stale"] == []
    return found
