"""Those who use the cluster meanwhile: they write down all that they ask and are told."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from random import Random
from typing import Final, Protocol
from urllib.parse import quote

from tests.cluster.chaos.asking import TIMEOUT_S, Asker, Told
from tests.cluster.chaos.records import Delivery, Op, Records

PAUSE_S: Final = (0.0, 0.03)
LEASE_MS: Final = (1_500, 4_000)
WAIT_MS: Final = 300
BATCH: Final = 5
RECENT: Final = 200
LIVE: Final = ("ready", "scheduled", "leased", "waiting")
INDEXED: Final = "indexed"
"""The owner does not have the job any more: the answer is the index's."""
_never: Final = threading.Event()


class Places(Protocol):
    """Whom a client can ask for a queue."""

    def nodes_of(self, queue: str) -> Sequence[str]: ...

    def nodes_of_job(self, job: str) -> Sequence[str]: ...

    def nodes(self) -> Sequence[str]: ...

    def queues_at(self, node: str) -> Sequence[str]:
        """The queues that can be leased from there."""
        ...


def pause(seconds: float) -> None:
    _never.wait(seconds)


class Shared:
    """What all clients of a run have in common."""

    def __init__(self, records: Records, places: Places, ports: dict[str, int]) -> None:
        self.records = records
        self.places = places
        self.ports = ports
        self.is_over = threading.Event()
        self.open: dict[int, str] = {}
        """Jobs of whose enqueue nobody knows the outcome, and their queues."""
        self.accepted: deque[str] = deque(maxlen=RECENT)
        """The newest jobs of queues that are not worked on."""
        self.settled: deque[str] = deque(maxlen=RECENT)
        """The newest jobs that were acked."""
        self._number = 0
        self._turn = threading.Lock()

    def numbers(self, count: int) -> list[int]:
        with self._turn:
            first = self._number
            self._number += count
        return list(range(first, first + count))


class Client(ABC):
    """One thread, with its own connections and its own chance."""

    timeout_s = TIMEOUT_S

    def __init__(self, shared: Shared, name: str, seed: str) -> None:
        self.shared = shared
        self.name = name
        self.chance = Random(f"{seed} {name}")
        self.asker = Asker(shared.ports, timeout_s=self.timeout_s)

    def run(self) -> None:
        with closing(self.asker):
            while not self.shared.is_over.is_set():
                self.step()
                pause(self.chance.uniform(*PAUSE_S))

    @abstractmethod
    def step(self) -> None:
        """Asks something."""

    def node(self, queue: str = "") -> str:
        places = self.shared.places
        return self.chance.choice(places.nodes_of(queue) if queue else places.nodes())

    def told(
        self, op: Op, path: str, body: object, then: Callable[[Told], None]
    ) -> None:
        """Asks, and writes down what came of it."""
        method = "GET" if body is None else "POST"
        records = self.shared.records
        op.began_s = records.now_s()
        told = self.asker.ask(op.node, method, path, body)
        op.ended_s = records.now_s()
        op.outcome, op.code = told.outcome, told.code
        if told.outcome == "ok":
            then(told)
        records.add(op)

    def op(self, verb: str, node: str, queue: str = "") -> Op:
        return Op(client=self.name, verb=verb, node=node, queue=queue, began_s=0.0)


class Producer(Client):
    """Enqueues; what is not known is asked again at another node, or left open."""

    queues: Sequence[str] = ()
    is_kept = False
    """Nobody works on these queues before the faults are over."""

    def step(self) -> None:
        queue = self.chance.choice(self.queues)
        numbers = self.shared.numbers(self.chance.choice([1, 1, 2, BATCH]))
        for number in numbers:
            self.shared.open[number] = queue
        for _ in range(self.chance.choice([1, 2, 3])):
            if self.send(queue, numbers):
                break
            pause(self.chance.uniform(0.05, 0.3))

    def send(self, queue: str, numbers: list[int]) -> bool:
        """Whether the outcome is known."""
        op = self.op("enqueue", self.node(queue), queue)
        op.numbers = numbers
        jobs = [
            {
                "kind": "chaos",
                "payload": number,
                "attempts": 1_000,
                "idempotency_key": f"job-{number}",
            }
            for number in numbers
        ]

        def done(told: Told) -> None:
            op.ids = [job["id"] for job in told.content["jobs"]]

        self.told(op, f"/v1/queues/{quote(queue)}/jobs", jobs, done)
        if op.outcome != "ok":
            return False
        for number in numbers:
            self.shared.open.pop(number, None)
        if self.is_kept:
            self.shared.accepted.extend(op.ids)
        return True


class Worker(Client):
    """Leases anywhere; acks, gives back, fails, or forgets what it has."""

    is_careful = False
    """Acks everything, as fast as it can."""
    is_idle = False
    """The last lease brought nothing."""

    def step(self) -> None:
        jobs = self.lease()
        self.is_idle = not jobs
        if not jobs:
            return
        if not self.is_careful:
            pause(self.chance.uniform(0.0, 0.1))
        fate = 1.0 if self.is_careful else self.chance.random()
        if fate < 0.05:
            return  # the leases end by themselves
        tokens = [job.token for job in jobs]
        if fate < 0.10:
            self.settle("release", tokens, {"tokens": tokens})
        elif fate < 0.15:
            failed = [{"token": token, "retry_in": "50ms"} for token in tokens]
            self.settle("nack", tokens, {"jobs": failed})
        else:
            self.ack(jobs, tokens)

    def lease(self) -> list[Delivery]:
        node = self.node()
        op = self.op("lease", node)
        body = {
            "queues": list(self.shared.places.queues_at(node)),
            "max": self.chance.choice([1, 5, 20]),
            "wait": WAIT_MS,
            "lease": self.chance.randint(*LEASE_MS),
            "worker": self.name,
        }

        def done(told: Told) -> None:
            op.jobs = [
                Delivery(job["id"], job["token"], job["payload"])
                for job in told.content["jobs"]
            ]

        self.told(op, "/v1/lease", body, done)
        return op.jobs

    def ack(self, jobs: list[Delivery], tokens: list[str]) -> None:
        """Once more, perhaps, where nobody knows: a token counts once."""
        for _ in range(self.chance.choice([1, 2, 3])):
            op = self.settle("ack", tokens, {"tokens": tokens})
            if op.outcome == "ok":
                stale = set(op.stale)
                done = [job.id for job in jobs if job.token not in stale]
                self.shared.settled.extend(done)
                if done and self.chance.random() < 0.05:
                    # Answered long since: it must be stale now.
                    self.settle("ack", tokens, {"tokens": tokens})
                return
            pause(self.chance.uniform(0.05, 0.3))

    def settle(self, verb: str, tokens: list[str], body: object) -> Op:
        queue = tokens[0].partition(".")[2]
        op = self.op(verb, self.node(queue))
        op.tokens = tokens

        def done(told: Told) -> None:
            op.stale = told.content["stale"]

        self.told(op, f"/v1/{verb}", body, done)
        return op


class Reader(Client):
    """Looks at jobs that were accepted or acked, and counts queues nobody works on.

    It gives up soon: a node that sleeps must find questions of late when it wakes.
    """

    timeout_s = 0.6

    queues: Sequence[str] = ()

    def step(self) -> None:
        fate = self.chance.random()
        if fate < 0.5:
            self.count(self.chance.choice(self.queues))
        elif fate < 0.75 and self.shared.accepted:
            self.show(self.chance.choice(list(self.shared.accepted)[-20:]))
        elif self.shared.settled:
            self.show(self.chance.choice(list(self.shared.settled)[-20:]))

    def count(self, queue: str, node: str = "") -> int:
        op = self.op("count", node or self.node(queue), queue)

        def done(told: Told) -> None:
            counts = told.content["counts"]
            op.count = sum(counts[state] for state in LIVE)

        self.told(op, f"/v1/queues/{quote(queue)}", None, done)
        return op.count

    def show(self, job: str) -> None:
        op = self.op("show", self.chance.choice(self.shared.places.nodes_of_job(job)))
        op.ids = [job]

        def done(told: Told) -> None:
            # Only its owner has the payload; what the index tells may be a little old.
            is_owner = "payload" in told.content
            op.state = told.content["state"] if is_owner else INDEXED

        self.told(op, f"/v1/jobs/{quote(job)}", None, done)
