"""Whatever goes wrong, by a schedule that a seed fixes: each fault, and its end."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final

import psycopg

from tests.cluster.chaos.nodes import STOP_S, Node, Nodes
from tests.postgres.cluster import Cluster as Postgres

GAP_S: Final = (0.3, 2.0)
LEASE_S: Final = 2.0
TERMINATE: Final = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name LIKE 'headway%%' AND pid <> pg_backend_pid()
    AND random() < %s"""
AGAIN_S: Final = 0.1
SENT_S: Final = 0.1
"""How long it takes until what was asked lies before the one who sleeps."""
Mend = Callable[[], bool | None]
"""Mends a fault; False if that has to be tried again."""
_never: Final = threading.Event()


class Nemesis:
    """Does harm to nodes, links and the database, and mends it after a while."""

    def __init__(
        self, nodes: Nodes, database: Postgres, seed: str, *, is_cluster: bool
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.lines: list[str] = []
        """What was done when, in words."""
        self.before_wake: Callable[[str], None] = lambda _: None
        """Is told which node is about to wake, so that it finds something to do."""
        self.longest_stop_s = 0.0
        """From SIGTERM to the end, and to a look: every two seconds at first."""
        self._nodes = nodes
        self._database = database
        self._chance = Random(f"{seed} nemesis")
        self._began_s = time.monotonic()
        self._ends: list[tuple[float, str, Mend]] = []
        """When which fault is over, and how it is mended."""
        self._hurt: set[str] = set()
        """What has a fault already: it gets no second one."""
        acts: list[tuple[int, Callable[[], None]]] = [
            (4, self._kill),
            (2, self._restart),
            (6, self._pause),
            (6, self._break_link),
            (2, self._terminate),
            (1, self._kill_database),
        ]
        if is_cluster:
            acts += [(2, self._drain), (3, self._move)]
        self._acts = [act for weight, act in acts for _ in range(weight)]

    def run(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self._chance.choice(self._acts)()
            next_s = time.monotonic() + self._chance.uniform(*GAP_S)
            while time.monotonic() < min(next_s, until_s):
                self._mend(time.monotonic())
                self._supervise()
                _never.wait(0.02)

    def heal(self) -> None:
        """Everything is mended, and everybody is there again."""
        while self._ends:
            self._mend(float("inf"))
            _never.wait(AGAIN_S)
        for node in self._nodes.all.values():
            for link in node.links.values():
                link.heal()
            node.spawn()
        for node in self._nodes.all.values():
            node.answers()

    def _mend(self, now_s: float) -> None:
        over = [end for end in self._ends if end[0] <= now_s]
        self._ends = [end for end in self._ends if end[0] > now_s]
        for _, name, mend in sorted(over, key=lambda end: end[0]):
            if mend() is False:
                self._ends.append((time.monotonic() + AGAIN_S, name, mend))
                continue
            self._hurt.discard(name)
            self._say(f"{name}: over")

    def _supervise(self) -> None:
        """Starts those again that have ended, as their service manager would."""
        for name, node in self._nodes.all.items():
            if name not in self._hurt and not node.is_alive:
                self.counts["node started again"] += 1
                self._say(f"{name}: started again")
                node.spawn()

    def _say(self, text: str) -> None:
        self.lines.append(f"{time.monotonic() - self._began_s:8.2f} {text}")

    def _begin(self, name: str, kind: str, seconds: float, mend: Mend) -> None:
        self.counts[kind] += 1
        self._hurt.add(name)
        self._ends.append((time.monotonic() + seconds, name, mend))
        self._say(f"{name}: {kind} for {seconds:.2f} s")

    def _somebody(self) -> Node | None:
        """A node that nothing is wrong with; all but one may be down at once."""
        well = [
            node for name, node in self._nodes.all.items() if name not in self._hurt
        ]
        if not well:
            return None
        return self._chance.choice(well)

    def _kill(self) -> None:
        node = self._somebody()
        if node is not None:
            node.kill()
            seconds = self._chance.choice([0.0, 0.5, LEASE_S + 2.0])
            self._begin(node.name, "node killed", seconds, node.spawn)

    def _restart(self) -> None:
        """Told to stop, it hands over, and ends well."""
        node = self._somebody()
        if node is None:
            return
        node.signal(signal.SIGTERM)
        told_s = time.monotonic()

        def again() -> bool:
            # One whose database hangs may take until that is mended.
            code, took_s = node.ended(), time.monotonic() - told_s
            if code is None and took_s < STOP_S:
                return False
            if code not in (0, -signal.SIGTERM):
                text = f"{node.name} was told to stop, and ended with {code}"
                node.deaths.append(text)
            self.longest_stop_s = max(self.longest_stop_s, took_s)
            node.kill()
            node.spawn()
            return True

        self._begin(node.name, "node stopped and started", 2.0, again)

    def _pause(self) -> None:
        """It sleeps past its lease, and wakes in the middle of what it did."""
        node = self._somebody()
        if node is not None:
            node.signal(signal.SIGSTOP)
            seconds = LEASE_S * self._chance.choice(
                [self._chance.uniform(0.6, 1.0), self._chance.uniform(1.5, 3.0)]
            )

            def wake() -> None:
                self.before_wake(node.name)
                _never.wait(SENT_S)
                node.signal(signal.SIGCONT)

            self._begin(node.name, "node paused", seconds, wake)

    def _break_link(self) -> None:
        node = self._chance.choice(list(self._nodes.all.values()))
        to = self._chance.choice(["database", "database", "peers", "clients"])
        name = f"{node.name} to {to}"
        if name in self._hurt:
            return
        link = node.links[to]
        is_cut = self._chance.random() < 0.5
        (link.cut if is_cut else link.hold)()
        kind = f"link to {to} {'cut' if is_cut else 'held'}"
        seconds = self._chance.choice([0.05, 1.0, LEASE_S + 2.0])
        self._begin(name, kind, seconds, link.heal)

    def _terminate(self) -> None:
        share = self._chance.choice([0.3, 1.0])
        found = self._ask(TERMINATE, (share,))
        if found:
            self.counts["backends terminated"] += int(found[0][0])
            self._say(f"{found[0][0]} backends terminated")

    def _kill_database(self) -> None:
        if "database" in self._hurt:
            return
        self._database.kill()
        seconds = self._chance.uniform(0.0, 1.0)
        self._begin("database", "database killed", seconds, self._database.start)

    def _drain(self) -> None:
        node = self._chance.choice(list(self._nodes.all))
        name = f"drain of {node}"
        if name in self._hurt or self._ask(DRAIN, (node, True)) is None:
            return

        def undrain() -> bool:
            # A database that is down is mended later than this: it is tried again.
            return self._ask(DRAIN, (node, False)) is not None

        self._begin(name, "node drained", self._chance.uniform(1.0, 4.0), undrain)

    def _move(self) -> None:
        found = self._ask("SELECT partition FROM headway.holdings ORDER BY 1", ())
        if not found:
            return
        partition = self._chance.choice(found)[0]
        node = self._chance.choice(list(self._nodes.all))
        if self._ask(PIN, (partition, node)) is not None:
            self.counts["partition moved"] += 1
            self._say(f"{partition} moves to {node}")

    def _ask(self, statement: Any, values: tuple[object, ...]) -> list[Any] | None:
        """None if the database is not there."""
        try:
            with psycopg.connect(
                self._database.address, autocommit=True, connect_timeout=5
            ) as connection:
                return list(connection.execute(statement, values))
        except psycopg.Error:
            return None


DRAIN: Final = "SELECT headway.drain_1(%s, %s)"
PIN: Final = "SELECT headway.pin_1(%s, %s)"
