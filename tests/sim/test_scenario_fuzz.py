"""Whatever stands in a scenario file, it is taken or refused in one line."""

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.sim.scenario import ScenarioError
from tests.sim.scenario_text import GOOD, loaded

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["5s", "1ms", "22:00-06:00", "UTC", "mail", "fair", "steady", "cap"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["kind", "name", "count", "mean", "at", "x", "max"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a parsed file."""
    if path:
        yield path
    if isinstance(tree, dict):
        for key in tree:
            yield from places(tree[key], (*path, key))
    if isinstance(tree, list):
        for place, inner in enumerate(tree):
            yield from places(inner, (*path, place))


PLACES = list(places(tomllib.loads(GOOD)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.sampled_from(PLACES), value=VALUES)
def test_any_value_in_any_place_is_taken_or_refused(
    tmp_path: Path, place: tuple[Any, ...], value: Any
) -> None:
    tree = tomllib.loads(GOOD)
    inner = tree
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    said = ""
    try:
        loaded(tmp_path, written(tree))
    except ScenarioError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


def written(value: Any, is_top: bool = True) -> str:
    """TOML, as inline as can be; none is not a value there and becomes a text."""
    match value:
        case bool():
            return str(value).lower()
        case float() if math.isnan(value) or math.isinf(value):
            return str(value)
        case int() | float():
            return repr(value)
        case list():
            return "[" + ", ".join(written(one, False) for one in value) + "]"
        case dict() if is_top:
            return "\n".join(f"{key} = {written(value[key], False)}" for key in value)
        case dict():
            pairs = (f"{key} = {written(value[key], False)}" for key in value)
            return "{ " + ", ".join(pairs) + " }"
    return '"' + "".join(f"\\U{ord(c):08x}" for c in str(value)) + '"'
