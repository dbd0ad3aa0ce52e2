"""Errors of the runtime.

RuntimeFailure
├── OwnerBusy      too many commands wait already; nothing came of this one
└── OwnerStopped   the partition is not served any more; what it says is why
"""


class RuntimeFailure(Exception):
    """Something that is nobody's rule: the caller can't know what came of it."""


class OwnerBusy(RuntimeFailure):
    """The command was not taken. Come again."""


class OwnerStopped(RuntimeFailure):
    """Nothing more is answered here. What was not answered may or may not be stored."""
