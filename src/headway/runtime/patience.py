"""Gives way to whatever else runs on the machine: tables can wait, live jobs can't.

All of it is a wish. A system that does not know one of these goes on without it.
"""

import os
import platform
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

NICENESS: Final = 19
SLICE_NS: Final = 100_000_000
"""The longest turn on a core that may be asked for. Whoever asks for a shorter one, as
everybody does who says nothing, need not wait for the end of such a turn."""
GROUP: Final = Path("/proc/self/autogroup")
BATCH: Final = 3
_SYSCALLS: Final = {"x86_64": 314, "aarch64": 274}
"""Of sched_setattr, for which C libraries have no name."""
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""Its size, the policy, flags, niceness, priority, and times, the first the turn's."""


def give_way(process: int = 0) -> None:
    """This thread, or another process, and all that it starts from now on."""
    import ctypes  # a server need not load it before it answers

    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, NICENESS)
    # Each terminal, and each service, has a group with a share of its own, in which
    # niceness counts. A group that has others in it is not ours to change.
    with suppress(OSError):
        number = process or os.getpid()
        if os.getsid(number) == number:
            group = Path(f"/proc/{process}/autogroup") if process else GROUP
            group.write_text(str(NICENESS))
    call = _SYSCALLS.get(platform.machine())
    if call is not None and platform.system() == "Linux":
        size = _ATTRIBUTES.size
        wanted = _ATTRIBUTES.pack(size, BATCH, 0, NICENESS, 0, SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(call, process, wanted, 0)
