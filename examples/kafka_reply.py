"""Request and reply over Kafka: the bridge finds the job that an answer is for.

$KAFKA_BROKERS names the brokers; without it librdkafka plays them. Needs headway[kafka].
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from confluent_kafka import Consumer, Producer

import headway

HEADWAY = [sys.executable, "-m", "headway.cli.main"]
REQUESTS, ANSWERS = "shipping-requests", "shipping-answers"
ORDERS = range(3)
seen: list[int] = []


class Answer(TypedDict):
    order: int
    status: str


def run(address: str, producer: Producer) -> None:
    app = headway.App(address)

    @app.job(queue="orders", timeout="15m")
    def ship(order: int) -> object:
        """Asks the carrier over one topic; the answer comes over another."""
        producer.produce(REQUESTS, json.dumps({"order": order}).encode())
        producer.flush()
        return headway.wait_for(f"order-{order}", timeout="10m")

    @ship.on_reply
    def shipped(answer: Answer, order: int) -> None:
        print(f"order {order} is {answer['status']}")
        seen.append(order)

    ship.enqueue_many([(order,) for order in ORDERS])
    while len(seen) < len(ORDERS):
        app.work(until_empty=True)
    app.close()


def carrier(brokers: str, is_over: threading.Event) -> None:
    """Somebody else's service: it reads requests, and writes answers."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "carrier",
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": brokers})
    consumer.subscribe([REQUESTS])
    while not is_over.is_set():
        request = consumer.poll(0.2)
        if request is not None and request.error() is None:
            order = json.loads(request.value() or b"{}")["order"]
            answer = {"order": order, "status": "on its way"}
            producer.produce(ANSWERS, json.dumps(answer).encode())
            producer.flush()
    consumer.close()


@contextmanager
def command(
    *arguments: str, is_read: bool = False
) -> Iterator["subprocess.Popen[str]"]:
    """A process of Headway's own, for as long as it is needed."""
    stdout = subprocess.PIPE if is_read else None
    with subprocess.Popen([*HEADWAY, *arguments], stdout=stdout, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def main() -> None:
    settings = {"bootstrap.servers": os.environ.get("KAFKA_BROKERS", "none")}
    if "KAFKA_BROKERS" not in os.environ:
        settings |= {"test.mock.num.brokers": "1", "log_level": "3"}
    producer = Producer(settings)
    for topic in (REQUESTS, ANSWERS):
        known = producer.list_topics(topic, timeout=30).brokers.values()
    brokers = ",".join(f"{broker.host}:{broker.port}" for broker in known)
    is_over = threading.Event()
    with (
        tempfile.TemporaryDirectory() as data,
        command("serve", "--data", data, "--port", "0", is_read=True) as server,
    ):
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        partner = threading.Thread(target=carrier, args=(brokers, is_over))
        partner.start()
        with command(
            *("bridge", "kafka", "--brokers", brokers, "--topic", ANSWERS),
            *("--group", "headway", "--queue", "orders", "--server", address),
            *("--key", "order-{value.order}"),
        ):
            try:
                run(address, producer)
            finally:
                is_over.set()
                partner.join()


if __name__ == "__main__":
    main()
