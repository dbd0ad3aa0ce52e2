"""What workers do: lease, extend, ack, nack, release, wait; and replies."""

from typing import Any, Final

from headway.core.commands import (
    Ack,
    Extend,
    Lease,
    Nack,
    Release,
    Reply,
    Settled,
    Wait,
)
from headway.core.durations import parse_ms
from headway.core.errors import BadValue, LeaseLost
from headway.server.answers import leased_jobs
from headway.server.call import Call, answer
from headway.server.http.message import Response
from headway.server.plans import Asked, Plan, ask, good, made
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import content_of, ms_of
from headway.wire import work as wire

WAIT_MAX_MS: Final = 60_000
"""The longest that an empty answer is held back."""


def lease(call: Call) -> Plan:
    """Lease jobs, most urgent first; wait for one if asked to.

    Jobs come in the order in which their promises need them, over all the queues that
    are named. Whoever has waited longest is served first.
    """
    body: wire.LeaseBody = call.body
    names = body.queues
    if names is None:
        call.require(Verb.WORK, None)
    else:
        for name in names:
            call.require(Verb.WORK, name)
    wait_ms = parse_ms(body.wait, "wait")
    if wait_ms > WAIT_MAX_MS:
        raise BadValue("wait", body.wait, "at most a minute")
    queues = None if names is None else tuple(names)
    command = Lease(body.worker, queues, body.max, ms_of(body.lease, "lease"))
    command.wait_ms = wait_ms

    def told(got: Any) -> Plan:
        return Response(200, leased_jobs(got.jobs, call.ids))

    # A worker may be there before the first job of its queue.
    return made(names or [], command, told)


def ack(call: Call) -> Plan:
    """The jobs are done. Stale tokens are named, and change nothing."""
    body: wire.AckBody = call.body
    good_, stale = _tokens(call, body.tokens)
    if not good_:
        return answer(wire.Settled(stale))
    command = Ack(list(good_))
    if body.results:
        told = body.results
        command.results = {
            token: told[text].told() for token, text in good_.items() if text in told
        }
    return ask(command, lambda got: _settled(got, good_, stale))


def extend(call: Call) -> Plan:
    """Heartbeat: the leases end so long from now, if they would have ended before.

    The answer also names the jobs that are to be cancelled.
    """
    body: wire.ExtendBody = call.body
    good_, stale = _tokens(call, body.tokens)
    if not good_:
        return answer(wire.Settled(stale))
    command = Extend(list(good_), parse_ms(body.lease, "lease"))
    return ask(command, lambda got: _settled(got, good_, stale))


def release(call: Call) -> Plan:
    """Give jobs back unused: nothing is counted or charged."""
    good_, stale = _tokens(call, call.body.tokens)
    if not good_:
        return answer(wire.Settled(stale))
    return ask(Release(list(good_)), lambda got: _settled(got, good_, stale))


def nack(call: Call) -> Plan:
    """The attempts failed: each by its job's retry strategy, or as said here."""
    body: wire.NackBody = call.body
    good_, stale = _tokens(call, [failure.token for failure in body.jobs])
    texts = {text: token for token, text in good_.items()}
    commands: list[Any] = []
    for failure in body.jobs:
        token = texts.get(failure.token)
        if token is not None:
            retry_in_ms = ms_of(failure.retry_in, "retry_in")
            payload = content_of(failure.payload, failure.payload_base64)
            how = (retry_in_ms, failure.bury, payload, failure.unused)
            commands.append(Nack(token, failure.error, *how))
    if not commands:
        return answer(wire.Settled(stale))

    def told(answers: list[Any]) -> Plan:
        for command, got in zip(commands, answers, strict=True):
            if isinstance(got, LeaseLost):
                stale.append(good_[command.token])
            else:
                good(got)
        return answer(wire.Settled(stale))

    return Asked(commands, told)


def wait(call: Call) -> Plan:
    """A leased job gives its worker back and waits for a reply."""
    body: wire.WaitBody = call.body
    good_, _ = _tokens(call, [body.token])
    if not good_:
        raise LeaseLost("the token is not one of ours")
    _check_key(body.reply_key, "reply_key")
    timeout_ms = parse_ms(body.timeout, "timeout")
    command = Wait(next(iter(good_)), body.reply_key, timeout_ms, body.done_on_reply)
    return ask(command, lambda _: answer(wire.Settled([])))


def reply(call: Call) -> Plan:
    """An answer from outside, for whichever job waits for its key.

    Early replies are kept for their job; late and repeated ones change nothing.
    """
    body: wire.ReplyBody | None = call.body
    key = call.params["key"]
    _check_key(key, "key")
    content = None
    if body is not None:
        content = content_of(body.payload, body.payload_base64)
    command = Reply(call.queue, key, b"null" if content is None else content)
    return ask(command, lambda fate: answer(wire.ReplyFate(fate.value)))


def _check_key(key: str, name: str) -> None:
    """What can be waited for can be answered: both have the same rule."""
    if not 1 <= len(key) <= 1_024 or not key.isprintable():
        raise Refused("bad_value", "1 to 1024 printable characters", name)


def _tokens(call: Call, texts: list[str]) -> tuple[dict[int, str], list[str]]:
    """Tokens by number, once each, and those that are none of ours."""
    good_, stale, queues = call.ids.read_tokens(texts)
    for queue in queues:
        call.require(Verb.WORK, queue)
    return good_, stale


def _settled(got: Settled, texts: dict[int, str], stale: list[str]) -> Plan:
    stale += [texts[token] for token in got.stale]
    return answer(wire.Settled(stale, [texts[token] for token in got.cancelled]))


def _work(path: str, handler: Any, body: Any, answers: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=path,
        handler=handler,
        verb=Verb.WORK,
        is_queue_checked=False,
        tag="work",
        body=body,
        answers={200: answers},
        **more,
    )


_LEASE: Final = "p1_0000000100000001c0ffee00c0ffee00.mail"
ROUTES: Final = (
    _work(
        "/v1/lease",
        lease,
        wire.LeaseBody,
        wire.LeasedJobs,
        problems=("too_many_queues",),
        example={"queues": ["mail"], "max": 10, "wait": "20s", "worker": "w1"},
    ),
    _work(
        "/v1/ack",
        ack,
        wire.AckBody,
        wire.Settled,
        example={"tokens": [_LEASE], "results": {_LEASE: {"value": {"sent": 1}}}},
    ),
    _work(
        "/v1/extend",
        extend,
        wire.ExtendBody,
        wire.Settled,
        example={"tokens": [_LEASE], "lease": "30s"},
    ),
    _work(
        "/v1/release",
        release,
        wire.TokensBody,
        wire.Settled,
        example={"tokens": [_LEASE]},
    ),
    _work(
        "/v1/nack",
        nack,
        wire.NackBody,
        wire.Settled,
        example={"jobs": [{"token": _LEASE, "error": "timeout", "retry_in": "10s"}]},
    ),
    _work(
        "/v1/wait",
        wait,
        wire.WaitBody,
        wire.Settled,
        problems=("lease_lost", "wrong_state"),
        example={"token": _LEASE, "reply_key": "order-17", "timeout": "10m"},
    ),
    Route(
        method="POST",
        path="/v1/queues/{queue}/replies/{key}",
        handler=reply,
        verb=Verb.REPLY,
        tag="work",
        body=wire.ReplyBody,
        is_body_needed=False,
        answers={200: wire.ReplyFate},
        problems=("unknown_queue", "replies_full"),
        example={"payload": {"status": "paid"}},
    ),
)
