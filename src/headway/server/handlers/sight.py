"""What a caller may see, and what the index can tell it."""

from collections.abc import Callable

from headway.core.errors import UnknownJob
from headway.search.errors import SearchFailed, SearchTooSlow
from headway.server.call import Call
from headway.server.plans import InThread, Plan
from headway.server.problems import Refused
from headway.server.scopes import Verb


def visible(call: Call, queue: str, verb: Verb) -> None:
    """Whoever may not even read a queue is not told which jobs it has."""
    if not call.bearer.may(Verb.READ, queue) and not call.bearer.may(verb, queue):
        raise UnknownJob(f"there is no job {call.params['id']!r}")
    call.require(verb, queue)
    call.concerns = queue


def indexed(work: Callable[[], Plan]) -> InThread:
    """Work on the index; what it can't tell right now is no fault of ours."""

    def guarded() -> Plan:
        try:
            return work()
        except SearchTooSlow as error:
            raise Refused("search_busy", str(error)) from error
        except SearchFailed as error:
            raise Refused("not_indexed", str(error)) from error

    return InThread(guarded)
