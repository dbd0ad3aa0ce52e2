"""Everything that can be asked of the server."""

from typing import Final

from headway.server.handlers import about, jobs, records, work

ROUTES: Final = (*jobs.ROUTES, *work.ROUTES, *records.ROUTES, *about.ROUTES)
