"""What it means for a bridge that the server says no."""

from enum import Enum, auto
from typing import Final

from headway.client.errors import Refused
from headway.core.errors import RepliesFull, RuleBroken


class Meaning(Enum):
    LATER = auto()
    """It may pass: early replies that are taken, a server with a bug."""
    BAD = auto()
    """This message will never be taken."""
    STOP = auto()
    """No message will be taken until somebody changes something."""


_BAD: Final = {"bad_value", "bad_json", "too_large", "uri_too_long", "bad_http"}


def meaning(error: RuleBroken) -> Meaning:
    if isinstance(error, RepliesFull):
        return Meaning.LATER
    if error.code in _BAD:
        return Meaning.BAD
    status = error.status if isinstance(error, Refused) else 400
    if status >= 500 or status in (408, 429):
        return Meaning.LATER
    return Meaning.STOP
