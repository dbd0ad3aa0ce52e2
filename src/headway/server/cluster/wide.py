"""Queues of several partitions: who takes a job, and how rules reach all of them."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import msgspec

from headway.core import defaults
from headway.server import bodies
from headway.server.call import answer
from headway.server.cluster.dividing import divided, divided_cap, home_of, parted
from headway.server.cluster.errand import Errand, Unreached
from headway.server.cluster.merging import merge
from headway.server.cluster.places import Places
from headway.server.cluster.placing import fetched, replaced
from headway.server.cluster.reach import Reach
from headway.server.cluster.wide_shapes import whole
from headway.server.handlers.room import AT_ONCE, FULL, MAY_SHED, MAY_WAIT, PAUSE_S
from headway.server.http.message import Request, Response
from headway.server.problems import Refused
from headway.server.routing import NDJSON
from headway.server.rules import merged
from headway.wire import jobs, queues

PAUSE_MAX_S: Final = 0.5
"""The longest pause between two looks for room in all partitions."""
_rules: Final["msgspec.json.Decoder[Any]"] = msgspec.json.Decoder(queues.QueueRules)
_changes: Final["msgspec.json.Decoder[Any]"] = msgspec.json.Decoder(dict[str, Any])
_whole: Final = msgspec.json.Decoder(queues.QueueRules).decode
_shown: Final = msgspec.json.Decoder(queues.QueueShown).decode
_accepted: Final = msgspec.json.Decoder(jobs.Accepted).decode
_raws: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_CAPPED: Final[dict[str, Any]] = {
    "queues_set_tenant": msgspec.json.Decoder(queues.TenantRules),
    "queues_set_kind": msgspec.json.Decoder(queues.KindRules),
}


class _Keyed(msgspec.Struct):
    idempotency_key: str | None = None


_keyed: Final = msgspec.json.Decoder(_Keyed).decode
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Failed(Exception):
    """A partition has answered something else."""

    def __init__(self, response: Response) -> None:
        super().__init__(str(response.status))
        self.response = response


class WideQueues:
    """What is asked of queues that have several partitions."""

    def __init__(self, places: Places, reach: Reach) -> None:
        self._places = places
        self._reach = reach
        self._turn = count()
        self._held_back = 0
        """Enqueues that wait for room."""

    async def enqueue(self, errand: Errand, partitions: tuple[str, ...]) -> Response:
        """One of them takes the jobs; those with a key always go to the key's own."""
        try:
            pieces = _pieces(errand.request)
            keys = [_keyed(piece).idempotency_key for piece in pieces]
        except _BROKEN:
            return await self._reach.ask(partitions[0], errand)
        given = errand.request.headers.get(b"idempotency-key")
        if given is not None:
            keys = [given.decode("latin-1").strip('"')]
        if not any(keys):
            return await self._in_turn(errand, partitions)
        if len(keys) != len(pieces):
            return await self._reach.ask(partitions[0], errand)  # which refuses it
        return await self._by_key(errand, partitions, pieces, keys)

    async def _in_turn(self, errand: Errand, partitions: tuple[str, ...]) -> Response:
        """Where all are full, they are asked again for as long as the queue holds
        callers back."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + defaults.FULL_WAIT_MS / 1_000
        pause_s = PAUSE_S
        request = errand.request
        is_hasty = request.headers.get(FULL) == AT_ONCE
        headers = {**request.headers, FULL: AT_ONCE}
        part = errand.with_request(msgspec.structs.replace(request, headers=headers))
        while True:
            response = await self._round(part, partitions)
            if MAY_SHED in response.headers and not is_hasty:
                return await self._round(errand, partitions)
            is_over = is_hasty or loop.time() >= until_s
            is_crowded = self._held_back >= defaults.FULL_WAITERS_MAX
            if MAY_WAIT not in response.headers or is_over or is_crowded:
                return response
            self._held_back += 1
            try:
                await asyncio.sleep(min(pause_s, max(0.0, until_s - loop.time())))
            finally:
                self._held_back -= 1
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    async def _round(self, errand: Errand, partitions: tuple[str, ...]) -> Response:
        """A full one is passed over, and one that is not reached."""
        first = next(self._turn) % len(partitions)
        full: Response | None = None
        for partition in (*partitions[first:], *partitions[:first]):
            try:
                response = await self._reach.ask(partition, errand, patience_s=0.0)
            except Unreached as unreached:
                if unreached.is_unknown:
                    raise
                continue
            if not _is_full(response):
                return response
            full = full or response
        return full or await self._reach.ask(partitions[0], errand)

    async def _by_key(
        self,
        errand: Errand,
        partitions: tuple[str, ...],
        pieces: list[bytes],
        keys: Sequence[str | None],
    ) -> Response:
        """Jobs without a key go with the last part: an earlier one may be repeated."""
        parts: dict[str, list[int]] = {}
        for place, key in enumerate(keys):
            if key:
                parts.setdefault(home_of(key, partitions), []).append(place)
        last = next(reversed(parts))
        parts[last] += [place for place, key in enumerate(keys) if not key]
        if len(parts) == 1:
            return await self._reach.ask(last, errand)
        found: dict[int, jobs.AcceptedJob] = {}
        duplicates = 0
        shed: list[str] = []
        for partition, mine in parts.items():
            body = b"[%s]" % b",".join(pieces[place] for place in sorted(mine))
            response = await self._reach.ask(partition, errand.with_body(body))
            if response.status != 201:
                return response
            told = read(partition, response, _accepted)
            duplicates += told.duplicates
            shed += told.shed or []
            found |= dict(zip(sorted(mine), told.jobs, strict=False))
        accepted = [found[place] for place in sorted(found)]
        return answer(jobs.Accepted(accepted, duplicates, shed or msgspec.UNSET), 201)

    async def configure(
        self, errand: Errand, queue: str, partitions: tuple[str, ...]
    ) -> Response:
        """Each has its part of what the rules allow in all."""
        operation = errand.route.operation
        number = len(partitions)
        try:
            if operation in _CAPPED:
                body = bodies.read(errand.request.body, _CAPPED[operation])
                caps = divided_cap(body.cap, number)
                contents = [msgspec.structs.replace(body, cap=cap) for cap in caps]
                return await self._put_all(errand, partitions, contents)
            mark = self._places.marks.get(queue)
            if mark is not None and mark.whole is not None:
                return await self._keep(errand, queue)
            if operation == "queues_put":
                rules = bodies.read(errand.request.body, _rules)
            else:
                changes = bodies.read(errand.request.body, _changes)
                shown = await self.shows(errand, partitions)
                rules = _patched(whole([one.rules for one in shown]), changes)
            return await self._put_all(errand, partitions, divided(rules, number))
        except Failed as failed:
            return failed.response

    async def _keep(self, errand: Errand, queue: str) -> Response:
        """While its partitions change, the tables have the rules of all of them."""
        placement = await fetched(self._places, queue)
        if errand.route.operation == "queues_put":
            rules = bodies.read(errand.request.body, _rules)
        else:
            changes = bodies.read(errand.request.body, _changes)
            rules = _patched(_whole(placement.whole or b"{}"), changes)
        parts = parted(rules, placement)
        to = msgspec.structs.replace(placement, whole=_encode(rules))
        if placement.whole is None or not await replaced(self._places, queue, to):
            text = "its partitions have been changed meanwhile: come again"
            raise Refused("wrong_state", text)
        return await self._put_all(errand, placement.partitions, parts)

    async def _put_all(
        self, errand: Errand, partitions: Sequence[str], contents: Sequence[Any]
    ) -> Response:
        got = await self.put_each(errand, partitions, contents)
        return merge(errand, list(zip(partitions, got, strict=True)))

    async def put_each(
        self, errand: Errand, partitions: Sequence[str], contents: Sequence[Any]
    ) -> list[Response]:
        """The same again changes nothing, and so may be sent again."""
        got = []
        for partition, content in zip(partitions, contents, strict=False):
            body = _encode(content)
            target, headers = errand.request.target, errand.request.headers
            put = errand.with_request(Request(b"PUT", target, headers)).with_body(body)
            put.is_repeatable = True
            got.append(await self.good(partition, put))
        return got

    async def show(self, errand: Errand, partition: str) -> queues.QueueShown:
        look = errand.with_target(errand.request.path)
        look.is_repeatable = True
        shown: queues.QueueShown
        shown = read(partition, await self.good(partition, look), _shown)
        return shown

    async def shows(
        self, errand: Errand, partitions: Sequence[str]
    ) -> list[queues.QueueShown]:
        """All of them, side by side."""
        looks = [self.show(errand, name) for name in partitions]
        return list(await asyncio.gather(*looks))

    async def good(self, partition: str, errand: Errand) -> Response:
        response = await self._reach.ask(partition, errand)
        if response.status >= 300:
            raise Failed(response)
        return response


def _pieces(request: Request) -> list[bytes]:
    """The jobs of a body, one by one."""
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    body = request.body
    if kind == NDJSON.encode():
        return [line for line in body.split(b"\n") if line.strip()]
    if body.lstrip()[:1] == b"[":
        return [bytes(piece) for piece in _raws(body)]
    return [body]


def _patched(rules: queues.QueueRules, changes: dict[str, Any]) -> queues.QueueRules:
    try:
        return merged(rules, changes)
    except msgspec.ValidationError as error:
        raise bodies.refused(error) from error


def _is_full(response: Response) -> bool:
    return response.status == 409 and b'"queue_full"' in response.body


def read(partition: str, response: Response, decode: Callable[[bytes], Any]) -> Any:
    try:
        return decode(response.body)
    except _BROKEN as error:
        text = f"what partition {partition} answered can't be read"
        raise Unreached(text, is_unknown=True) from error
