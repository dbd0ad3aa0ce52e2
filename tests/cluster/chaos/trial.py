"""One run: clients and a nemesis at once, a drain when all is well, and the verdict."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import psycopg

from tests.cluster.chaos.alone import Apart
from tests.cluster.chaos.asking import Asker
from tests.cluster.chaos.checker import DRAIN, KEPT, Checker
from tests.cluster.chaos.clients import Producer, Reader, Shared, Worker, pause
from tests.cluster.chaos.history import Told, chapters
from tests.cluster.chaos.nemesis import Nemesis
from tests.cluster.chaos.nodes import START_S, Nodes
from tests.cluster.chaos.records import Op, Records
from tests.cluster.chaos.relay import Relays
from tests.endtoend.processes import ROOT
from tests.postgres.cluster import Cluster as Postgres
from tests.postgres.cluster import running

QUEUES: Final = 9
KEPT_QUEUES: Final = 6
WIDE: Final = 3
"""Partitions of the first queue of each kind."""
PRODUCERS, KEEPERS, WORKERS, READERS = 3, 4, 6, 8
DRAIN_S: Final = 90.0

TABLES: Final = (
    "SELECT 'node', row_to_json(n)::text FROM headway.nodes AS n",
    "SELECT 'holding', row_to_json(h)::text FROM headway.holdings AS h",
    "SELECT 'placement', row_to_json(p)::text FROM headway.placements AS p",
)


class Trial:
    """Nodes over one database, and everybody who has to do with them."""

    def __init__(
        self, folder: Path, seed: int, *, nodes: int = 3, is_cluster: bool = True
    ) -> None:
        self.seconds = 0.0
        self.checker: Checker | None = None
        self.faults: list[str] = []
        self._folder = folder
        self._seed = f"seed {seed}"
        self._names = [f"n{number + 1}" for number in range(nodes)]
        self._is_cluster = is_cluster
        self._drained_s = 0.0
        self._broken: list[str] = []
        self._threads: list[threading.Thread] = []
        self._nemesis: Nemesis | None = None
        self._records = Records(folder / "records.jsonl")

    def run(self, seconds: float) -> list[str]:
        """All that is wrong."""
        began_s = time.monotonic()
        with ExitStack() as stack:
            database = stack.enter_context(running())
            relays = Relays()
            stack.callback(relays.close)
            _migrate(database)
            kind = Nodes if self._is_cluster else Apart
            nodes = kind(self._names, self._folder, relays, database)
            for node in nodes.all.values():
                stack.callback(node.close)
                node.spawn()
            for node in nodes.all.values():
                node.answers()
            self._under_faults(nodes, database, seconds)
            self._stop(nodes)
            self.faults += self._verdict(database)
        self._records.close()
        self.seconds = time.monotonic() - began_s
        return self.faults

    def figures(self) -> dict[str, object]:
        """What is worth knowing of the run."""
        assert self.checker is not None
        assert self._nemesis is not None
        outcomes = Counter(
            f"{op.verb}: {op.outcome}" for op in self._records.ops if op.verb != DRAIN
        )
        return {
            **dict(sorted(self._nemesis.counts.items())),
            **dict(sorted(outcomes.items())),
            **dict(sorted(self.checker.figures.items())),
            **{f"faults: {k}": count for k, count in self.checker.kinds().items()},
            "longest stop of a node, s": round(self._nemesis.longest_stop_s, 1),
            "drain of all queues, s": round(self._drained_s, 1),
            "seconds": round(self.seconds, 1),
        }

    def _under_faults(self, nodes: Nodes, database: Postgres, seconds: float) -> None:
        worked = [f"work-{number}" for number in range(QUEUES)]
        kept = [f"{KEPT}{number}" for number in range(KEPT_QUEUES)]
        nodes.queues = worked
        shared = Shared(self._records, nodes, nodes.ports())
        producers = [Producer(shared, f"p{n}", self._seed) for n in range(PRODUCERS)]
        keepers = [Producer(shared, f"k{n}", self._seed) for n in range(KEEPERS)]
        workers = [Worker(shared, f"w{n}", self._seed) for n in range(WORKERS)]
        readers = [Reader(shared, f"r{n}", self._seed) for n in range(READERS)]
        for producer in producers:
            producer.queues = worked
        for keeper in keepers:
            keeper.queues, keeper.is_kept = kept, True
        for reader in readers:
            reader.queues = kept
        if self._is_cluster:
            for queue in (worked[0], kept[0]):
                _widen(nodes, queue)
        for client in (*producers, *keepers, *workers, *readers):
            self._thread(client.run)
        nemesis = Nemesis(nodes, database, self._seed, is_cluster=self._is_cluster)
        self._nemesis = nemesis
        nemesis.before_wake = lambda node: self._ask_sleeper(shared, node, kept)
        try:
            nemesis.run(seconds)
            nemesis.heal()
        finally:
            shared.is_over.set()
            self._join()
            (self._folder / "faults.log").write_text("\n".join(nemesis.lines) + "\n")
        shared.is_over.clear()
        nodes.queues = worked + kept
        self._drain(shared, worked + kept, database)

    def _ask_sleeper(self, shared: Shared, node: str, queues: list[str]) -> None:
        """Counts that it answers when it wakes: all that others did must be in them."""
        for queue in queues:
            if node in shared.places.nodes_of(queue):
                reader = Reader(shared, f"waiting for {node}", self._seed)
                self._thread(partial(_count_once, reader, queue, node))

    def _drain(self, shared: Shared, queues: list[str], database: Postgres) -> None:
        """What is not known is asked again, and everything is worked off."""
        now_s = shared.records.now_s()
        shared.records.add(Op(client="drain", verb=DRAIN, began_s=now_s))
        workers = [Worker(shared, f"d{n}", self._seed) for n in range(WORKERS)]
        for worker in workers:
            worker.is_careful = True
            self._thread(worker.run)
        producer = Producer(shared, "again", self._seed)
        reader = Reader(shared, "counting", self._seed)
        reader.asker = Asker(shared.ports)
        until_s = time.monotonic() + DRAIN_S
        left = dict.fromkeys(queues, -1)
        while (shared.open or left) and time.monotonic() < until_s:
            for number, queue in list(shared.open.items()):
                producer.send(queue, [number])
                if time.monotonic() > until_s:
                    break
            left = {q: n for q in left or queues if (n := reader.count(q)) != 0}
            pause(0.05)
        self._drained_s = shared.records.now_s() - now_s
        shared.is_over.set()
        self._join()
        for client in (producer, reader):
            client.asker.close()
        if shared.open or left:
            self.faults.append(f"not drained: open {dict(shared.open)}, left {left}")
            self.faults += self._who_has_what(database)

    def _who_has_what(self, database: Postgres) -> list[str]:
        """The tables of the cluster, for whoever looks for the reason."""
        if not self._is_cluster:
            return []
        with psycopg.connect(database.address, autocommit=True) as connection:
            return [
                f"{row[0]}: {row[1]}"
                for statement in TABLES
                for row in connection.execute(statement).fetchall()
            ]

    def _stop(self, nodes: Nodes) -> None:
        for node in nodes.all.values():
            node.look()
            code = node.terminate()
            if code != 0:
                self.faults.append(f"{node.name} ended with {code}: {node.log()}")
            self.faults += [f"strange: {death}" for death in node.deaths]
            self.faults += [f"strange: {text}" for text in node.tracebacks()]
        self.faults += self._broken

    def _verdict(self, database: Postgres) -> list[str]:
        told: dict[str, Told] = {}
        for name in _partitions(database):
            told[name] = Told(name)
            told[name].read(chapters(database.address, name))
        self.checker = Checker(self._records.ops, told)
        return self.checker.check()

    def _thread(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except Exception as error:
                self._broken.append(f"a client has ended: {error!r}")

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(60.0)
            if thread.is_alive():
                self._broken.append("a client hangs")
        self._threads.clear()


def _migrate(database: Postgres) -> None:
    command = [sys.executable, "-m", "headway.cli.main", "migrate", "--store"]
    subprocess.run(
        [*command, database.address], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )


def _count_once(reader: Reader, queue: str, node: str) -> None:
    reader.count(queue, node)
    reader.asker.close()


def _widen(nodes: Nodes, queue: str) -> None:
    """The queue is made, and given several partitions."""
    asker = Asker(nodes.ports())
    node = nodes.nodes()[0]
    for method, path, body in (
        ("PUT", f"/v1/queues/{queue}", {}),
        ("PUT", f"/v1/queues/{queue}/partitions", {"count": WIDE}),
    ):
        until_s = time.monotonic() + START_S
        # Partitions still go from node to node when the last one has just come.
        while (told := asker.ask(node, method, path, body)).outcome != "ok":
            assert time.monotonic() < until_s, told
            pause(0.1)
    asker.close()


def _partitions(database: Postgres) -> list[str]:
    statement = "SELECT name FROM headway.partitions ORDER BY 1"
    with psycopg.connect(database.address, autocommit=True) as connection:
        return [name for (name,) in connection.execute(statement).fetchall()]
