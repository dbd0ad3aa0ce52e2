"""Acks, nacks, extensions and releases whose tokens are of several partitions."""

import asyncio
from itertools import repeat
from typing import Any, Final

import msgspec

from headway.server import bodies
from headway.server.call import answer
from headway.server.cluster.errand import Errand
from headway.server.cluster.reach import Reach
from headway.server.cluster.rules import partition_of_token
from headway.server.http.message import Response
from headway.server.problems import Refused, problem
from headway.server.scopes import Verb
from headway.wire import work
from headway.wire.problems import Problem

NAMED_MAX: Final = 20
"""Tokens that are named in a problem."""
_decoders: Final = {
    kind: msgspec.json.Decoder(kind)
    for kind in (work.AckBody, work.ExtendBody, work.TokensBody, work.NackBody)
}
_settled: Final = msgspec.json.Decoder(work.Settled)
_encode: Final = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    token: str = ""


class _Tokens(msgspec.Struct):
    """As much of a body as says where it belongs."""

    tokens: list[str] = []
    token: str = ""
    jobs: list[_Named] = []


_look: Final = msgspec.json.Decoder(_Tokens).decode


def partitions_of(body: bytes) -> set[str]:
    """The partitions that the tokens of a body begin with; none if it can't be read.

    Whoever carries it out reads the body with care; this is a glance.
    """
    try:
        found = _look(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return set()
    texts = found.tokens or [one.token for one in found.jobs] or [found.token]
    first = texts[0]
    partition = partition_of_token(first)
    # Nearly always they are all of one: they begin alike and have their dots alike.
    begins = map(str.startswith, texts, repeat(f"{partition}_"))
    if all(begins) and len(set(map(str.find, texts, repeat(".")))) == 1:
        return {partition}
    return {partition_of_token(text) for text in texts}


async def settle(reach: Reach, errand: Errand, known: frozenset[str]) -> Response:
    """Each partition is asked for its own tokens, side by side.

    A partition that is not reached fails its own tokens only; the answer is 503 then
    and names them, and what it does not name was done.
    """
    body = bodies.read(errand.request.body, _decoders[errand.route.body])
    parts, stale = _split(body, known)
    for text in _all(parts):
        if queue := text.partition(".")[2]:
            errand.require(Verb.WORK, queue)
    got = await asyncio.gather(
        *(
            reach.ask(partition, errand.with_body(_encode(part)))
            for partition, part in parts.items()
        ),
        return_exceptions=True,
    )
    return _merged(errand, parts, list(got), stale)


def _split(body: Any, known: frozenset[str]) -> tuple[dict[str, Any], list[str]]:
    """The body by partition, and tokens that are of none."""
    parts: dict[str, Any] = {}
    stale: list[str] = []
    items = body.jobs if isinstance(body, work.NackBody) else body.tokens
    for item in items:
        text = item.token if isinstance(item, work.Failure) else item
        partition = partition_of_token(text)
        if partition not in known:
            stale.append(text)
            continue
        part = parts.get(partition)
        if part is None:
            part = parts[partition] = _empty(body)
        (part.jobs if isinstance(part, work.NackBody) else part.tokens).append(item)
    if isinstance(body, work.AckBody) and body.results:
        for part in parts.values():
            mine = {text for text in part.tokens if text in body.results}
            if mine:
                part.results = {text: body.results[text] for text in mine}
    return parts, stale


def _empty(body: Any) -> Any:
    match body:
        case work.NackBody():
            return work.NackBody([])
        case work.AckBody():
            return work.AckBody([])
        case work.ExtendBody():
            return work.ExtendBody([], body.lease)
        case _:
            return work.TokensBody([])


def _texts(body: Any) -> list[str]:
    if isinstance(body, work.NackBody):
        return [failure.token for failure in body.jobs]
    tokens: list[str] = body.tokens
    return tokens


def _merged(
    errand: Errand,
    parts: dict[str, Any],
    got: list[Response | BaseException],
    stale: list[str],
) -> Response:
    cancelled: list[str] = []
    failed: list[str] = []
    worst: Response | None = None
    for part, answered in zip(parts.values(), got, strict=True):
        told = _told(answered)
        if isinstance(told, Response):
            failed += _texts(part)
            worst = worst or told
        else:
            stale += told.stale
            cancelled += told.cancelled
    if worst is not None:
        return _partly(errand, worst, failed, is_all=len(failed) == len(_all(parts)))
    return answer(work.Settled(stale, cancelled))


def _all(parts: dict[str, Any]) -> list[str]:
    return [text for part in parts.values() for text in _texts(part)]


def _told(answered: Response | BaseException) -> work.Settled | Response:
    """What a partition has settled; a response if it has not."""
    if isinstance(answered, Refused):
        return problem(answered.code, answered.detail)
    if isinstance(answered, BaseException):
        raise answered
    if answered.status != 200:
        return answered
    try:
        return _settled.decode(answered.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return problem("stopped", "what a partition answered can't be read")


def _partly(
    errand: Errand, worst: Response, failed: list[str], *, is_all: bool
) -> Response:
    """Some of it was done. Which tokens were not, or perhaps not, is said."""
    if is_all:
        return worst
    why = "another answer"
    try:
        found = msgspec.json.decode(worst.body, type=Problem)
        why = found.detail or found.title
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    verb = errand.route.path.rpartition("/")[2]
    named = ", ".join(failed[:NAMED_MAX])
    more = len(failed) - NAMED_MAX
    rest = f" and {more} more" if more > 0 else ""
    text = f"the {verb} of these is unknown, others are done: {named}{rest} ({why})"
    return problem("stopped", text)
