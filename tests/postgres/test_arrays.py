"""Columns that are packed by hand are what the database takes them for."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.store.errors import Contradiction
from headway.store.postgres.arrays import (
    bigints,
    byteas,
    integers,
    know_arrays,
    texts,
)
from headway.store.postgres.writes import values_of
from tests.postgres import shared
from tests.store.rows import batch, job

INTEGERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20)
BIGINTS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20)
BYTES = st.lists(st.none() | st.binary(max_size=20), max_size=20)
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
TEXTS = st.lists(st.none() | TEXT, max_size=20)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with psycopg.connect(shared.cluster().address, autocommit=True) as opened:
        know_arrays(opened)
        yield opened


@given(INTEGERS, BIGINTS, BYTES, TEXTS)
def test_what_is_packed_comes_back(
    connection: Any,
    numbers: list[int],
    large: list[int],
    blobs: list[bytes | None],
    words: list[str | None],
) -> None:
    values = integers(numbers), bigints(large), byteas(blobs), texts(words)
    found = connection.execute(
        "SELECT %b::integer[], %b::bigint[], %b::bytea[], %b::text[]", values
    ).fetchone()
    assert found == (numbers, large, blobs, words)


def test_a_number_that_no_column_holds_is_a_contradiction() -> None:
    with pytest.raises(Contradiction, match="too large"):
        values_of(batch(puts=[job(1, first=2**63)]))
    with pytest.raises(Contradiction, match="too large"):
        values_of(batch(puts=[job(1, lane=2**31)]))
