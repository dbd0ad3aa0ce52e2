"""For the tests of applications: jobs that run at once, are only noted, or in memory.

Each of them takes the place of the app's own queue inside a `with` block.
"""

from headway.testing.memory import VirtualQueue, in_memory, virtual_time
from headway.testing.recorder import Enqueued, Recorder, inline, recording

__all__ = [
    "Enqueued",
    "Recorder",
    "VirtualQueue",
    "in_memory",
    "inline",
    "recording",
    "virtual_time",
]
