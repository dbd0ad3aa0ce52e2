"""From a call to what is kept of it: who acted, on what, and why."""

import re
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from headway.server.call import Call
from headway.server.problems import Refused
from headway.server.tokens import wall_ms
from headway.wire.live import REASON, REASON_MAX, REASON_PATTERN, Act
from headway.wire.nodes import Move
from headway.wire.operations import DeadBody, PurgeBody
from headway.wire.queues import KindRules, QueueRules, TenantRules

_GIVEN: Final = re.compile(REASON_PATTERN)
_SAID_MAX: Final = 2_000
_TOLD: Final = (DeadBody, PurgeBody, TenantRules, KindRules, QueueRules, Move, dict)
"""Bodies that hold rules and filters, and nothing of a job."""


def act_of(call: Call) -> Act:
    """What is kept of a call: names, rules and filters, but nothing of a payload."""
    params = call.params
    named = {
        name: params[name]
        for name in ("tenant", "kind", "name", "partition")
        if name in params
    }
    said: Any = None
    if isinstance(call.body, _TOLD):
        text = msgspec.json.encode(call.body)
        said = msgspec.Raw(text) if len(text) <= _SAID_MAX else None
    return Act(
        at_ms=wall_ms(),
        who=call.bearer.name,
        what=call.route.operation,
        queue=params.get("queue") or call.concerns,
        job=params.get("id", ""),
        named=named,
        said=said,
        reason=call.reason,
    )


def reason_of(call: Call) -> str:
    """Why it is done, if the caller says so."""
    given = call.header(REASON)
    if given is None:
        return ""
    text = unquote(given, errors="replace").strip()
    is_plain = _GIVEN.fullmatch(given) and len(text) <= REASON_MAX
    if not is_plain or any(not c.isprintable() for c in text):
        raise Refused("bad_value", f"percent-encoded, up to {REASON_MAX}", REASON)
    return text
