"""A repeated enqueue makes one job (P6, invariant 19)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.commands import Accepted, Ack, Enqueue
from headway.core.config import QueueConfig
from headway.core.errors import IdempotencyConflict
from headway.core.spec import JobSpec
from tests.core.machine import Machine

WINDOW_MS = 10_000
QUEUE = QueueConfig(name="q", idempotency_window_ms=WINDOW_MS)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 12_000),
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=3),
    ),
    max_size=25,
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(steps=STEPS)
def test_one_key_is_one_job_within_its_window(
    steps: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    """Invariant 19: the same body is known again, another one is an error."""
    machine = Machine(QUEUE)
    known: dict[str, tuple[int, int, int]] = {}
    for after_ms, batch in steps:
        machine.now_ms += after_ms
        live = {k: v for k, v in known.items() if machine.now_ms - v[2] < WINDOW_MS}
        bodies = {key: body for key, (body, _, _) in live.items()}
        named = [(f"k{key}", body) for key, body in batch]
        is_conflict = any(bodies.setdefault(key, body) != body for key, body in named)
        before = machine.partition.book.last_seq
        specs = [
            JobSpec(idempotency_key=key, payload=bytes([body])) for key, body in named
        ]
        answer = machine.ask(Enqueue("q", specs))
        if is_conflict:
            assert isinstance(answer, IdempotencyConflict)
            assert machine.partition.book.last_seq == before
            continue
        assert isinstance(answer, Accepted)
        fresh = {key for key, _ in named} - set(live)
        assert machine.partition.book.last_seq == before + len(fresh)
        assert answer.duplicates == len(named) - len(fresh)
        for (key, body), seq in zip(named, answer.seqs, strict=True):
            if key in live:
                assert seq == live[key][1]
            known.setdefault(key, (body, seq, machine.now_ms))
            if key in fresh:
                known[key] = (body, seq, machine.now_ms)


def test_headers_tell_of_the_call_and_make_no_other_job() -> None:
    """Invariant 19: a call that is repeated has another trace, and is the same job."""
    machine = Machine(QUEUE)
    first, again = (
        machine.ask(Enqueue("q", [JobSpec(idempotency_key="k", headers=headers)]))
        for headers in ({"traceparent": "one"}, {"traceparent": "two"})
    )
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (again.seqs, again.duplicates) == (first.seqs, 1)


def test_a_key_is_known_after_its_job_is_done() -> None:
    """Invariant 19: an answer that was lost may be asked for again later."""
    machine = Machine(QUEUE)
    (seq,) = machine.put("q", JobSpec(idempotency_key="k"))
    (job,) = machine.lease()
    machine.ask(Ack([job.token]))
    assert machine.put("q", JobSpec(idempotency_key="k")) == [seq]
    assert machine.starts() == []


def test_keys_belong_to_their_queue() -> None:
    machine = Machine(QUEUE, QueueConfig(name="other"))
    machine.put("q", JobSpec(idempotency_key="k"))
    assert machine.put("other", JobSpec(idempotency_key="k")) == [2]


def test_everything_a_caller_says_is_part_of_the_body() -> None:
    """Invariant 19, but for the order of labels."""
    machine = Machine(QUEUE)
    spec = JobSpec(idempotency_key="k", labels={"a": "1", "b": "2"})
    (seq,) = machine.put("q", spec)
    same = JobSpec(idempotency_key="k", labels={"b": "2", "a": "1"})
    assert machine.put("q", same) == [seq]
    other = JobSpec(idempotency_key="k", labels={"a": "1", "b": "2"}, priority=1)
    assert isinstance(machine.ask(Enqueue("q", [other])), IdempotencyConflict)
