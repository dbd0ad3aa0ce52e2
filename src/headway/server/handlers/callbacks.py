"""Answers from partners who have no token, and sign what they send."""

from typing import Any, Final

from headway.core.commands import Reply
from headway.server import bodies
from headway.server.call import Call, answer
from headway.server.plans import Plan, ask
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Bearer, Verb
from headway.wire.expressions import Given, NotFound
from headway.wire.values import PAYLOAD_MAX
from headway.wire.work import ReplyFate


def take(call: Call) -> Plan:
    """A signed answer, for the job that waits for the key in its body.

    Signed as Standard Webhooks has it. An answer that comes again changes nothing.
    """
    return _taken(call, None)


def take_at_key(call: Call) -> Plan:
    """A signed answer, for the job that waits for the key in the address.

    The address is not signed: only sources that were made for it are heard here.
    """
    return _taken(call, call.params["key"])


def _taken(call: Call, url: str | None) -> Plan:
    body = call.request.body
    if len(body) > PAYLOAD_MAX:
        raise Refused("too_large", f"at most {PAYLOAD_MAX} bytes")
    callbacks = call.facilities.callbacks
    source, message_id = callbacks.find(
        call.params["source"], call.request.headers, body
    )
    call.bearer = Bearer(f"callback {source.name}", ())
    # Nothing of the body is read before it is known whose it is.
    bodies.check(body)
    if source.is_key_in_url != (url is not None):
        where = "address" if source.is_key_in_url else "body"
        raise Refused("bad_value", f"this source has its key in the {where}", "key")
    given = Given(body, id=message_id, url=None if url is None else url.encode())
    try:
        key = source.key.key(given)
        payload = source.value.json(given)
    except NotFound as error:
        raise Refused("bad_value", str(error), "key") from error
    command = Reply(source.queue, key, payload)
    return ask(command, lambda fate: answer(ReplyFate(fate.value)))


def _route(path: str, handler: Any) -> Route:
    return Route(
        method="POST",
        path=path,
        handler=handler,
        verb=Verb.SIGNED,
        tag="work",
        body=Any,
        is_raw=True,
        answers={200: ReplyFate},
        problems=("bad_signature", "unknown_queue", "replies_full"),
        example={"order": 17, "status": "paid"},
    )


ROUTES: Final = (
    _route("/v1/callbacks/{source}", take),
    _route("/v1/callbacks/{source}/{key}", take_at_key),
)
