"""The actor that is measured, and `python -m ... N`, which enqueues N of its messages."""

import os
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.drain import First
from benchmarks.peers.peer import PAYLOAD

broker = RedisBroker(url=f"unix://{os.environ['BENCH_SOCKET']}")
dramatiq.set_broker(broker)
first = First()


def do_nothing(payload: str) -> None:
    first()


noop = dramatiq.actor(do_nothing, actor_name="noop", queue_name="bench")


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        noop.send(PAYLOAD)
