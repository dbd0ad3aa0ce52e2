"""Everything that can be asked of the server."""

from typing import Final

from headway.server.handlers import (
    about,
    callbacks,
    capacity,
    dead,
    history,
    jobs,
    operations,
    queues,
    records,
    results,
    schedules,
    search,
    work,
    writes,
)

ROUTES: Final = (
    *jobs.ROUTES,
    *results.ROUTES,
    *search.ROUTES,
    *writes.ROUTES,
    *work.ROUTES,
    *callbacks.ROUTES,
    *queues.ROUTES,
    *dead.ROUTES,
    *schedules.ROUTES,
    *operations.ROUTES,
    *capacity.ROUTES,
    *history.ROUTES,
    *records.ROUTES,
    *about.ROUTES,
)
