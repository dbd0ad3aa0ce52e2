"""Everything that can be asked of the server."""

from typing import Final

from headway.server.handlers import (
    about,
    callbacks,
    capacity,
    dead,
    history,
    jobs,
    live,
    nodes,
    operations,
    pages,
    queues,
    ranking,
    records,
    results,
    schedules,
    search,
    simulations,
    width,
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
    *width.ROUTES,
    *ranking.ROUTES,
    *dead.ROUTES,
    *schedules.ROUTES,
    *operations.ROUTES,
    *capacity.ROUTES,
    *history.ROUTES,
    *records.ROUTES,
    *live.ROUTES,
    *nodes.ROUTES,
    *simulations.ROUTES,
    *pages.ROUTES,
    *about.ROUTES,
)
