"""Bodies of plain text are read with fewer rules, and to the same end."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.server import bodies
from headway.server.handlers.table import ROUTES
from headway.server.plain import is_plain, plain
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.shapes import spec_of
from headway.wire import jobs, work
from headway.wire.values import TEXT

BODIES = [route for route in ROUTES if route.body is not None]
TEXTS = st.text(max_size=6) | st.sampled_from(["a\x7f", "\n", "a\\", "é", "a" * 300])
SMALL = TEXTS | st.none() | st.integers(-1, 3)
NEW = st.dictionaries(
    st.sampled_from(["kind", "tenant", "payload", "idempotency_key", "slo", "other"]),
    SMALL | st.dictionaries(TEXTS, SMALL, max_size=2),
) | st.fixed_dictionaries({"labels": st.dictionaries(TEXTS, TEXTS, max_size=2)})


def outcome(body: bytes, kind: Any, *, is_quick: bool) -> Any:
    decoders = [msgspec.json.Decoder(kind)]
    if is_quick:
        decoders.append(msgspec.json.Decoder(plain(kind)))
    try:
        return bodies.read(body, *decoders)
    except Refused as refused:
        return refused.code, refused.detail, refused.key


@given(st.lists(NEW, max_size=3), st.booleans())
def test_jobs_are_read_alike(found: list[Any], is_ascii: bool) -> None:
    body = json.dumps(found, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    quick, full = (outcome(body, jobs.NewJobs, is_quick=way) for way in (True, False))
    if isinstance(full, list):
        assert all(isinstance(job, jobs.NewJob) for job in quick)
        assert list(map(spec_of, quick)) == list(map(spec_of, full))
    else:
        assert quick == full


@given(st.lists(TEXTS, max_size=3), st.booleans())
def test_tokens_are_read_alike(texts: list[str], is_ascii: bool) -> None:
    body = json.dumps({"tokens": texts}, ensure_ascii=is_ascii).encode()
    quick, full = (outcome(body, work.AckBody, is_quick=way) for way in (True, False))
    if isinstance(full, work.AckBody):
        assert quick.tokens == full.tokens
    else:
        assert quick == full


@given(
    st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))
)
def test_no_text_of_a_plain_body_breaks_the_rule(value: Any) -> None:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if is_plain(body):
        assert all(
            re.search(TEXT, text) for text in re.findall('"([^"]*)"', body.decode())
        )


@pytest.mark.parametrize("route", BODIES, ids=lambda route: route.path)
def test_every_body_has_the_fields_that_it_has(route: Route) -> None:
    body = msgspec.json.encode(route.example)
    full = msgspec.json.decode(body, type=route.body)
    quick = msgspec.json.decode(body, type=plain(route.body))
    assert msgspec.json.encode(quick) == msgspec.json.encode(full)
    if isinstance(full, msgspec.Struct):
        assert isinstance(quick, type(full))
        assert quick.__struct_fields__ == full.__struct_fields__


def test_texts_of_plain_bodies_are_not_matched() -> None:
    assert TEXT not in str(msgspec.json.schema(plain(jobs.NewJobs)))
    assert TEXT not in str(msgspec.json.schema(plain(work.AckBody)))
    assert plain(work.ReplyFate) is work.ReplyFate
