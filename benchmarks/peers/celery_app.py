"""What Celery's workers run: one task that does nothing. Run as a program, it enqueues
as many as it is told, once its input ends, and says what CPU that took.
"""

import os
import sys
import time
from typing import Any

from celery import Celery
from celery.signals import worker_ready

from benchmarks.peers.drain import First
from benchmarks.peers.peer import PAYLOAD

app = Celery("bench", broker=os.environ["BENCH_BROKER"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=int(os.environ["BENCH_PREFETCH"]),
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)


first = First()


def do_nothing(payload: str) -> None:
    """The job."""
    first()


def say_ready(**_: Any) -> None:
    print("worker is ready", flush=True)


noop = app.task(name="noop")(do_nothing)
worker_ready.connect(say_ready)


def produce(jobs: int) -> None:
    # One connection for all, which is Celery's fastest documented way to enqueue.
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        print("ready", flush=True)
        sys.stdin.read()
        began_s = time.process_time()
        for _ in range(jobs):
            noop.apply_async((PAYLOAD,), producer=producer, ignore_result=True)
        print("used", time.process_time() - began_s, flush=True)


if __name__ == "__main__":
    produce(int(sys.argv[1]))
