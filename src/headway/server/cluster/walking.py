"""Lists that go through partitions one after another.

Their rows have no order that holds across partitions and can be gone on from: a page is
filled from the first partition that has any left, then from the next.
"""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from headway.server.call import answer
from headway.server.cluster.errand import Errand, Unreached
from headway.server.cluster.reach import Reach
from headway.server.cluster.rules import partition_of_job
from headway.server.http.message import Request, Response
from headway.server.problems import Refused

MARK: Final = "~"
"""Between a partition and its own cursor; no name of a partition has it."""
CURSORS: Final = {
    "search_search": "cursor",
    "dead_list_dead": "cursor",
    "operations_running": "after",
}
"""What goes on where a page ended, by operation."""
_LIMIT: Final = 100
_LIMIT_MAX: Final = 1_000


async def walk(reach: Reach, errand: Errand, partitions: Sequence[str]) -> Response:
    """A page, and a cursor that names the partition where the next one begins."""
    operation = errand.route.operation
    cursor = CURSORS[operation]
    query = dict(errand.request.query())
    names, inner = _begun(list(partitions), query.get(cursor), operation)
    left = limit_of(query)
    found: Any = None
    for place, partition in enumerate(names):
        changes = {cursor: inner, "limit": str(left)}
        request = with_query(errand.request, changes)
        response = await reach.ask(partition, errand.with_request(request))
        if response.status >= 300:
            return response
        part = _read(errand, partition, response)
        found = part if found is None else _joined(found, part)
        left -= len(part.jobs)
        if part.next is not None:
            is_job = operation == "operations_running"
            found.next = part.next if is_job else f"{partition}{MARK}{part.next}"
            break
        inner = None
        if left <= 0 and place + 1 < len(names):
            is_job = operation == "operations_running"
            found.next = f"{names[place + 1]}{'_0' if is_job else MARK}"
            break
    if operation == "search_search" and query.get("by", "enqueued") == "enqueued":
        is_newest = query.get("order", "newest") == "newest"
        found.jobs.sort(key=lambda job: job.enqueued_ms, reverse=is_newest)
    return answer(found)


def limit_of(query: dict[str, str]) -> int:
    text = query.get("limit", str(_LIMIT))
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _LIMIT_MAX):
        raise Refused("bad_value", f"from 1 to {_LIMIT_MAX}", "limit")
    return int(text)


def with_query(request: Request, changes: dict[str, str | None]) -> Request:
    """The same with other values in its query; None leaves a name out."""
    pairs = [pair for pair in request.query() if pair[0] not in changes]
    pairs += [(name, value) for name, value in changes.items() if value is not None]
    target = request.path
    if pairs:
        target += b"?" + urlencode(pairs).encode()
    return Request(request.method, target, request.headers, request.body, request.peer)


def _begun(
    partitions: list[str], given: str | None, operation: str
) -> tuple[list[str], str | None]:
    """The partitions that are left, and the cursor of the first."""
    if not given:
        return partitions, None
    if operation == "operations_running":
        partition, inner = partition_of_job(given), given
    else:
        partition, _, inner = given.partition(MARK)
    if partition not in partitions:
        raise Refused("bad_value", "is no cursor of this list", CURSORS[operation])
    return partitions[partitions.index(partition) :], inner or None


def _read(errand: Errand, partition: str, response: Response) -> Any:
    try:
        return msgspec.json.decode(response.body, type=errand.route.answers[200])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        text = f"what partition {partition} answered can't be read"
        raise Unreached(text, is_unknown=True) from error


def _joined(one: Any, other: Any) -> Any:
    one.jobs += other.jobs
    if hasattr(one, "indexed_ms") and other.indexed_ms < one.indexed_ms:
        # Events have numbers of their own in each partition: that of the slowest.
        one.indexed_to, one.indexed_ms = other.indexed_to, other.indexed_ms
    return one
