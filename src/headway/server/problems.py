"""Every error a client can meet, by code, status and what it means."""

from typing import Final

import msgspec

from headway.core import errors
from headway.runtime.errors import OwnerBusy, RuntimeFailure
from headway.server.http.message import Response
from headway.wire.problems import Problem

KIND: Final = b"application/problem+json"
TYPE: Final = "urn:headway:problem:"
_encode: Final = msgspec.json.Encoder().encode


class Code(msgspec.Struct, frozen=True):
    """A stable code: its status, and its title."""

    status: int
    title: str


CODES: Final = {
    "bad_http": Code(400, "The request is not HTTP/1.1 as it should be"),
    "bad_json": Code(400, "The body is not JSON as it should be"),
    "bad_value": Code(400, "A value is outside its range"),
    "unauthorized": Code(401, "A valid bearer token is needed"),
    "bad_signature": Code(401, "The request is not signed as it should be"),
    "forbidden": Code(403, "The token does not allow this"),
    "cross_site": Code(403, "Another site's page may not ask this"),
    "not_found": Code(404, "There is nothing here"),
    "unknown_queue": Code(404, "There is no such queue"),
    "unknown_job": Code(404, "There is no such job"),
    "unknown_schedule": Code(404, "There is no such schedule"),
    "unknown_bulk": Code(404, "There is no such bulk operation"),
    "unknown_write": Code(404, "There is no such write"),
    "method_not_allowed": Code(405, "The path does not know this method"),
    "too_slow": Code(408, "The request took too long to arrive"),
    "queue_full": Code(409, "The queue is full"),
    "lease_lost": Code(409, "The token is not, or no longer, a lease"),
    "idempotency_conflict": Code(409, "The key was used for another job"),
    "too_many_slos": Code(409, "The queue has 16 SLO classes already"),
    "too_many_queues": Code(409, "There are too many queues already"),
    "too_many_bulks": Code(409, "Too many bulk operations run already"),
    "too_many_writes": Code(409, "Too many writes are being taken in already"),
    "write_conflict": Code(409, "The write is not what it is said to be"),
    "no_share": Code(409, "A label value has no share of a share limit"),
    "wrong_state": Code(409, "The state of the job does not allow this"),
    "simulation_stopped": Code(409, "The simulation was too large to go on"),
    "history_dropped": Code(410, "These events are kept no more"),
    "too_large": Code(413, "The body or a payload is too large"),
    "uri_too_long": Code(414, "The target is too long"),
    "unsupported_media_type": Code(415, "The body's type is not understood"),
    "misdirected": Code(421, "The Host header does not name this server"),
    "rate_limited": Code(429, "The token has made too many requests"),
    "replies_full": Code(429, "Too many early replies are kept already"),
    "staging_full": Code(429, "Too much is staged already"),
    "headers_too_large": Code(431, "The headers are too large"),
    "internal": Code(500, "The server has a bug; nothing is known of the outcome"),
    "busy": Code(503, "The server is busy: nothing was done, come again"),
    "stopped": Code(503, "The partition is not served: the outcome is unknown"),
    "not_indexed": Code(503, "The index of jobs is not there yet"),
    "search_busy": Code(503, "The search took too long"),
    "simulation_busy": Code(503, "Another simulation runs already"),
}
"""Codes never change their meaning."""

_OF_HTTP: Final = {
    400: "bad_http",
    408: "too_slow",
    413: "too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    431: "headers_too_large",
}


class Refused(Exception):
    """The request is refused before or instead of being carried out."""

    def __init__(
        self, code: str, detail: str = "", key: str = "", retry_s: int = 1
    ) -> None:
        super().__init__(detail or code)
        self.retry_s = retry_s
        """After how long to come again, where coming again helps."""
        self.code = code
        self.detail = detail
        self.key = key


def problem(code: str, detail: str = "", key: str = "", retry_s: int = 1) -> Response:
    known = CODES[code]
    body = Problem(
        type=TYPE + code,
        title=known.title,
        status=known.status,
        code=code,
        detail=detail,
        key=key,
    )
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if known.status == 401:
        scheme = b"Webhook" if code == "bad_signature" else b"Bearer"
        headers = ((b"www-authenticate", scheme + b' realm="headway"'),)
    elif known.status == 405:
        headers = ((b"allow", detail.encode()),)
    elif known.status in (429, 503):
        headers = ((b"retry-after", b"%d" % retry_s),)
    return Response(known.status, _encode(body), KIND, headers)


def of_http(status: int, text: str) -> Response:
    """The answer to what could not be read as a request."""
    return problem(_OF_HTTP.get(status, "bad_http"), text)


def of_error(error: Exception) -> Response:
    """The answer that an error is told by."""
    match error:
        case Refused():
            return problem(error.code, error.detail, error.key, error.retry_s)
        case errors.BadValue():
            # The core counts in milliseconds, and says so; a body need not.
            return problem("bad_value", str(error), error.key.removesuffix("_ms"))
        case errors.RuleBroken():
            return problem(error.code, str(error))
        case OwnerBusy():
            return problem("busy", str(error))
        case RuntimeFailure():
            # With a cause, it quotes what went wrong, perhaps with somebody's job.
            return problem("stopped", "" if error.__cause__ else str(error))
        case _:
            return problem("internal")
