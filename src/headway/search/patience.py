"""The index gives way to the server: it can catch up later, and jobs can't wait.

All of it is a wish. A system that does not know one of these goes on without it.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

NICENESS: Final = 19


def give_way(process: int) -> None:
    """Lets others have the cores first, for as long as they want them."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, NICENESS)
    with suppress(OSError, AttributeError):
        # It does not take a core from whoever runs at the moment.
        os.sched_setscheduler(process, os.SCHED_BATCH, os.sched_param(0))
    with suppress(OSError):
        # Each session has a group with a share of its own, in which alone niceness
        # counts. A group that has others in it is not ours to change.
        if os.getsid(process) == process:
            Path(f"/proc/{process}/autogroup").write_text(str(NICENESS))
