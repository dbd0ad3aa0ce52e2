"""Everything that can be asked of the server."""

from typing import Final

from headway.server.handlers import (
    about,
    capacity,
    dead,
    history,
    jobs,
    operations,
    queues,
    records,
    schedules,
    search,
    work,
)

ROUTES: Final = (
    *jobs.ROUTES,
    *search.ROUTES,
    *work.ROUTES,
    *queues.ROUTES,
    *dead.ROUTES,
    *schedules.ROUTES,
    *operations.ROUTES,
    *capacity.ROUTES,
    *history.ROUTES,
    *records.ROUTES,
    *about.ROUTES,
)
