"""Durations of jobs are read alike, however often and whatever came before."""

from typing import Any

import pytest

from headway.core.errors import BadValue
from headway.server.shapes import ms_of, spec_of
from headway.wire.jobs import NewJob

MORE: list[tuple[str, Any, str, Any]] = [
    ("slo", "5s", "slo_ms", 5_000),
    ("cost", 0, "cost", 0),
    ("critical", True, "is_critical", True),
    ("priority", 0, "priority", 0),
    ("result", 1, "result_ms", 1),
    ("headers", {}, "headers", {}),
]


def test_a_duration_is_the_same_whenever_it_is_read() -> None:
    for _ in range(2):
        for number in range(1_500):
            assert ms_of(f"{number}s", "slo") == number * 1_000
            assert ms_of(number, "slo") == number
    assert ms_of(None, "slo") is None


@pytest.mark.parametrize("key", ["slo", "delay"])
def test_a_bad_duration_is_named_by_the_key_that_has_it(key: str) -> None:
    for _ in range(2):
        with pytest.raises(BadValue) as error:
            ms_of("99999999999999d", key)
        assert error.value.key == key


def test_a_job_is_what_it_says_with_many_fields_and_with_few() -> None:
    few = NewJob(kind="k", tenant="t")
    assert spec_of(few).payload == b"null"
    assert (spec_of(few).kind, spec_of(few).tenant) == ("k", "t")
    assert spec_of(few).slo_ms is None
    for field, value, name, wanted in MORE:
        spec = spec_of(NewJob(kind="k", tenant="t", **{field: value}))
        assert getattr(spec, name) == wanted
        assert spec != spec_of(few)
