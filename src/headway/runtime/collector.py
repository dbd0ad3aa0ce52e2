"""How a process that is a server has its garbage collected."""

import gc
from typing import Final

THRESHOLDS: Final = (10_000, 20, 50)
"""New objects before the youngest are walked, and how seldom older ones are.

A commit of a hundred jobs makes more than 700, CPython's own number, and hardly a cycle.
Ten thousand are walked in less than a millisecond.
"""


def settle() -> None:
    """What is there by now is there to stay.

    The collector of cycles would walk it again and again, for 50 ms each time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
