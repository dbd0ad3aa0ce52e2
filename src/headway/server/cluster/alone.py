"""Answers for the partitions of this node alone: what is elsewhere is refused."""

from collections.abc import Callable
from typing import Protocol

from headway.server.cluster.places import Places
from headway.server.house import not_held
from headway.server.http.connection import Answering
from headway.server.http.message import Request, Response
from headway.server.problems import Refused, of_error
from headway.server.routing import Router


class Answers(Protocol):
    """Whatever stands in front of the partitions."""

    def handle(
        self, request: Request, tell: Callable[[Response], None]
    ) -> Answering: ...

    def close(self) -> None: ...


class Nothing:
    """What was answered at once."""

    is_waiting = False

    def abandon(self) -> None:
        pass


class LocalOnly:
    """Requests that name no queue go to whichever partition is here."""

    def __init__(self, places: Places, router: Router) -> None:
        self._places = places
        self._router = router

    def handle(self, request: Request, tell: Callable[[Response], None]) -> Answering:
        places = self._places
        try:
            queue = self._router.find(request).params.get("queue")
        except Refused as refused:
            tell(of_error(refused))
            return Nothing()
        named = places.partitions() if queue is None else places.of_queue(queue)
        if named is None and queue is not None:
            places.look_up(queue, lambda _: None)
        for partition in named or ():
            app = places.local(partition)
            if app is not None:
                return app.handle(request, tell)
        tell(not_held())
        return Nothing()

    def close(self) -> None:
        pass
