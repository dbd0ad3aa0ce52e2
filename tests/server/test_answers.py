"""Answers that are written by hand are, byte for byte, what their types make of them."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.core.commands import Accepted
from headway.core.spec import JobError, JobSpec
from headway.runtime.views import LeasedJob
from headway.server.answers import accepted, leased_jobs
from headway.server.ids import Ids
from headway.server.shapes import leased
from headway.wire import jobs, work

IDS = Ids("p-1_a", bytes(32))
NUMBERS = st.integers(0, 2**53)
TEXTS = st.sampled_from(["", "mail", 'a"b\\c', "é\u2028\x00"]) | st.text(max_size=8)
PAIRS = st.none() | st.dictionaries(TEXTS, TEXTS, max_size=2)
ERRORS = st.lists(st.builds(JobError, NUMBERS, NUMBERS, TEXTS, TEXTS), max_size=2)
CONTENTS = st.sampled_from([b"null", b'{"a":[1]}', b'"\xc3\xa9"', b"\xff", b"", b"{"])


@st.composite
def leased_job(draw: st.DrawFn, is_usual: bool) -> LeasedJob:
    more: dict[str, Any] = {}
    content = b'"x"'
    if not is_usual:
        content = draw(CONTENTS)
        more = {
            "labels": draw(PAIRS),
            "headers": draw(PAIRS),
            "result_ms": draw(st.none() | NUMBERS),
        }
    is_json = content in (b"null", b'{"a":[1]}', b'"\xc3\xa9"', b'"x"')
    few = st.sampled_from(["", "mail", 'a"b', "é"])
    spec = JobSpec(
        kind=draw(few), tenant=draw(few), payload=content, is_json=is_json, **more
    )
    rest: tuple[Any, ...] = ()
    payload = None
    if not is_usual:
        reply = draw(st.none() | CONTENTS)
        rest = (tuple(draw(ERRORS)), reply, draw(st.booleans()))
        payload = draw(st.none() | CONTENTS)
    queue = draw(st.sampled_from(["mail", "post", 'q"']))
    counts = draw(st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)))
    return LeasedJob(draw(NUMBERS), draw(NUMBERS), queue, spec, payload, *counts, *rest)


@given(st.lists(leased_job(is_usual=True) | leased_job(is_usual=False), max_size=6))
def test_leased_jobs_are_written_as_their_type_has_them(found: list[LeasedJob]) -> None:
    wanted = work.LeasedJobs([leased(job, IDS) for job in found])
    assert leased_jobs(found, IDS) == msgspec.json.encode(wanted)


@given(
    st.lists(st.tuples(NUMBERS, st.none() | st.integers(0, 3))),
    NUMBERS,
    st.lists(NUMBERS, max_size=3),
)
def test_accepted_jobs_are_written_as_their_type_has_them(
    found: list[tuple[int, int | None]], duplicates: int, shed: list[int]
) -> None:
    got = Accepted(
        [seq for seq, _ in found], duplicates, [ms for _, ms in found], tuple(shed)
    )
    wanted = jobs.Accepted(
        [jobs.AcceptedJob(IDS.job(seq), wait_ms) for seq, wait_ms in found],
        duplicates,
        [IDS.job(seq) for seq in shed] or msgspec.UNSET,
    )
    assert accepted(got, IDS) == msgspec.json.encode(wanted)
