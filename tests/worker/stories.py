"""What happened to jobs, as a server's history tells it."""

from collections import defaultdict
from typing import Any

from headway.core import events
from headway.server.settings import STORE
from tests.endtoend.account import read
from tests.worker.places import ServedPlace

Stories = dict[int, list[Any]]
"""The events of each job, in order."""


def stories(place: ServedPlace) -> Stories:
    """Of all jobs, once the server is stopped."""
    place.served.stop()
    found: Stories = defaultdict(list)
    for _, chapter in read(place.served.data / STORE).chapters:
        for event in chapter:
            if isinstance(event, events.Event):
                found[event.seq].append(event)
    return found
