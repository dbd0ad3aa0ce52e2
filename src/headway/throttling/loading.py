"""From MODULE:CALLABLE to the function, in the process in which it is to run."""

import importlib
import inspect
import re
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

_PLACE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_LENGTH_MAX: Final = 1_024


class NoThrottler(Exception):
    """Nothing of this name can be loaded, or it can't be asked."""


def check_place(place: str) -> None:
    """Whether the name could be one, before anything is loaded."""
    if len(place) > _LENGTH_MAX or not _PLACE.fullmatch(place):
        raise NoThrottler("a throttler is named as MODULE:CALLABLE")
    if place.startswith("__main__:"):
        raise NoThrottler("must be in a module that another process can import")


def load(place: str) -> Callable[..., Any]:
    """The function of this name; its module is imported by that."""
    check_place(place)
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise NoThrottler(f"there is no module {error.name}") from error
        raise NoThrottler(f"{module} needs a module {error.name}") from error
    except BaseException as error:  # whatever a module does, even an exit, is told
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise NoThrottler(f"{module} can't be imported: {what[:300]}") from error
    try:
        function = reduce(getattr, name.split("."), found)
    except AttributeError as error:
        raise NoThrottler(f"there is no {name} in {module}") from error
    if not callable(function):
        raise NoThrottler(f"{name} in {module} can't be called")
    if inspect.iscoroutinefunction(function):
        raise NoThrottler(f"{name} in {module} is async, and must not be")
    return function
