"""How urgent the partitions are, as far as is known: hints of 50 ms ago at most.

Nobody is asked while no lease over several partitions is under way.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from headway.runtime.urgency import Hint, Urgency
from headway.server.cluster.peers import PeerFailure
from headway.server.cluster.places import Places
from headway.server.cluster.reach import Reach
from headway.server.http.message import Request
from headway.wire.work import QUEUES_MAX

FRESH_S: Final = 0.05
ANSWER_S: Final = 0.25
"""A node that takes longer to say how urgent it is comes last."""
KNOWN_MAX: Final = 4_096
PATH: Final = b"/v1/cluster/urgency"
UNKNOWN: Final = 9
NOTHING: Final = 8

Queues = tuple[str, ...] | None
Key = tuple[str, Queues]
"""A partition and some of its queues, or all."""


class Wanted(msgspec.Struct):
    """One question of another node."""

    partition: str
    queues: list[str] | None = None


class Question(msgspec.Struct):
    asks: list[Wanted]


class Told(msgspec.Struct):
    """One for each ask, in their order; null where the partition is not there."""

    hints: list[Hint | None]


_question: Final = msgspec.json.Decoder(Question).decode
_told: Final = msgspec.json.Decoder(Told).decode
_encode: Final = msgspec.json.Encoder().encode


class Known(msgspec.Struct, frozen=True):
    """A hint, and when it came."""

    hint: Hint | None
    at_s: float


class _Turns:
    """What partitions were granted while they were equally urgent.

    Nobody gets credit for time in which it had nothing to start.
    """

    def __init__(self) -> None:
        self._passes: dict[str, int] = {}
        self._base = 0

    def pass_of(self, partition: str) -> int:
        return max(self._passes.get(partition, 0), self._base)

    def served(self, partition: str, count: int) -> None:
        self._base = self.pass_of(partition)
        self._passes[partition] = self._base + count


class Hints:
    """Knows how urgent partitions are, and asks when it does not."""

    def __init__(self, places: Places, reach: Reach) -> None:
        self._places = places
        self._reach = reach
        self._known: dict[Key, Known] = {}
        self._asking: dict[Key, asyncio.Future[None]] = {}
        self._turns: dict[int, _Turns] = {}
        """By SLO: partitions that are due together take turns."""

    async def order(self, split: Mapping[str, Queues]) -> list[tuple[str, int]]:
        """Partitions, the most urgent first, and the rank of each."""
        now_s = asyncio.get_running_loop().time()
        stale = []
        for key in split.items():
            known = self._known.get(key)
            if known is None or now_s - known.at_s > FRESH_S:
                stale.append(key)
        if stale:
            await self._refresh(stale)
        order = sorted(split.items(), key=self._urgency)
        return [(key[0], self._rank(key)) for key in order]

    def granted(self, split: Mapping[str, Queues], partition: str, count: int) -> None:
        """So many jobs of it were handed out: others that are as urgent come first."""
        known = self._known.get((partition, split[partition]))
        if known is None or known.hint is None or known.hint.rank != 0:
            return
        if len(self._turns) > KNOWN_MAX:
            self._turns.clear()
        self._turns.setdefault(known.hint.measure, _Turns()).served(partition, count)

    async def _refresh(self, keys: list[Key]) -> None:
        by_url: dict[str, list[Key]] = {}
        waits: set[asyncio.Future[None]] = set()
        for key in keys:
            asking = self._asking.get(key)
            if asking is not None:
                waits.add(asking)
            elif self._places.local(key[0]) is not None:
                waits.add(self._begin([key], self._ask_here(key)))
            elif (url := self._places.address(key[0])) is not None:
                by_url.setdefault(url, []).append(key)
            else:
                self._keep(key, None)
        for url, mine in by_url.items():
            waits.add(self._begin(mine, self._ask_there(url, mine)))
        if waits:
            await asyncio.wait(waits)

    def _begin(self, keys: list[Key], work: Any) -> "asyncio.Future[None]":
        task: asyncio.Future[None] = asyncio.ensure_future(work)
        for key in keys:
            self._asking[key] = task

        def over(_: object) -> None:
            for key in keys:
                self._asking.pop(key, None)

        task.add_done_callback(over)
        return task

    async def _ask_here(self, key: Key) -> None:
        self._keep(key, await self.here(*key))

    async def here(self, partition: str, queues: Queues) -> Hint | None:
        """What an owner in this process says."""
        app = self._places.local(partition)
        if app is None:
            return None
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def then(got: Any) -> None:
            if not answer.done():
                answer.set_result(got)

        app.look(Urgency(queues), then)
        try:
            async with asyncio.timeout(ANSWER_S):
                got = await answer
        except TimeoutError:
            return None
        return got if isinstance(got, Hint) else None

    async def _ask_there(self, url: str, keys: list[Key]) -> None:
        asks = [Wanted(name, None if q is None else list(q)) for name, q in keys]
        headers = {b"content-type": b"application/json"}
        request = Request(b"POST", PATH, headers, _encode(Question(asks)))
        hints: list[Hint | None] = []
        try:
            response = await self._reach.node(url, request, ANSWER_S)
            if response.status == 200:
                hints = _told(response.body).hints
        except (PeerFailure, msgspec.MsgspecError, UnicodeDecodeError):
            hints = []
        for place, key in enumerate(keys):
            self._keep(key, hints[place] if place < len(hints) else None)

    async def tell(self, body: bytes) -> bytes | None:
        """The answer to another node's question; None if it is none."""
        try:
            asks = _question(body).asks
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        hints = await asyncio.gather(
            *(
                self.here(
                    one.partition,
                    None if one.queues is None else tuple(one.queues[:QUEUES_MAX]),
                )
                for one in asks[:KNOWN_MAX]
            )
        )
        return _encode(Told(list(hints)))

    def _keep(self, key: Key, hint: Hint | None) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = Known(hint, asyncio.get_running_loop().time())

    def _rank(self, key: Key) -> int:
        known = self._known.get(key)
        if known is None or known.hint is None:
            return UNKNOWN
        return NOTHING if known.hint.rank is None else known.hint.rank

    def _urgency(self, key: Key) -> tuple[int, float, int, bool, str]:
        partition = key[0]
        is_remote = self._places.local(partition) is None
        rank = self._rank(key)
        measure, passed = 0.0, 0
        known = self._known.get(key)
        if known is not None and known.hint is not None:
            measure = known.hint.measure
            if rank == 0:
                turns = self._turns.get(known.hint.measure)
                passed = 0 if turns is None else turns.pass_of(partition)
            elif rank in (1, 3):
                # By when, and not in how long: they were asked at different times.
                measure += known.at_s * 1_000
        return rank, measure, passed, is_remote, partition
