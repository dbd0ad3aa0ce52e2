"""A job that is sent is the job that arrives."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.client import calls
from headway.core.config import Concurrency, QueueConfig, Rate, Shares
from headway.core.retry import Delays, Exponential, Fixed, GiveUp
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from headway.server.rules import config_of
from headway.server.shapes import spec_of
from headway.wire.jobs import NewJob
from headway.wire.queues import QueueRules

names = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
given_names = names.filter(bool)
ms = st.integers(1, 10**9)
retries = st.one_of(
    st.builds(Fixed, ms),
    st.builds(Exponential, ms, ms, st.floats(1, 1_000), st.floats(0, 1)),
    st.builds(Delays, st.lists(ms, max_size=4).map(tuple)),
    st.just(GiveUp()),
)
windows = st.builds(
    Window,
    st.integers(0, 700),
    st.integers(701, 1_440),
    st.sampled_from(["UTC", "Europe/Berlin"]),
)
window_sets = st.lists(windows, min_size=1, max_size=3).map(
    lambda found: WindowSet(tuple(found))
)
labels = st.dictionaries(given_names, names, max_size=3)


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


specs = st.builds(
    JobSpec,
    kind=names,
    payload=st.sampled_from([b"null", b'{"a":[1,2]}', b'"x"', b"17"]),
    is_json=st.just(True),
    tenant=names,
    slo_ms=maybe(ms),
    run_at_ms=maybe(ms),
    delay_ms=maybe(ms),
    priority=maybe(st.integers(-1_000, 1_000)),
    weight=maybe(st.floats(0.1, 100)),
    cost=maybe(st.integers(0, 1_000)),
    is_critical=st.booleans(),
    labels=maybe(labels),
    windows=maybe(window_sets),
    timeout_ms=maybe(ms),
    lifetime_ms=maybe(ms),
    attempts_max=maybe(st.integers(1, 1_000)),
    retry=maybe(retries),
    idempotency_key=given_names,
    headers=maybe(labels),
)


@given(st.lists(specs | st.binary().map(lambda raw: JobSpec(payload=raw)), min_size=1))
def test_enqueued_specs_arrive_as_they_are(sent: list[JobSpec]) -> None:
    call = calls.enqueue("a queue", sent)
    assert call.path == "/v1/queues/a%20queue/jobs"
    found = [spec_of(job) for job in msgspec.json.decode(call.body, type=list[NewJob])]
    keys = [job.idempotency_key for job in found]
    assert all(keys)
    assert [msgspec.structs.replace(job, idempotency_key=None) for job in found] == [
        msgspec.structs.replace(job, idempotency_key=None) for job in sent
    ]
    for key, spec in zip(keys, sent, strict=True):
        assert spec.idempotency_key in (None, key)


def test_every_call_has_keys_of_its_own() -> None:
    spec = JobSpec(payload=b"1", is_json=True)
    bodies = [calls.enqueue("q", [spec, spec]).body for _ in range(2)]
    jobs = [job for body in bodies for job in msgspec.json.decode(body)]
    assert len({job["idempotency_key"] for job in jobs}) == 4


@given(
    st.builds(
        QueueConfig,
        name=st.just("q"),
        slo_ms=ms,
        retry=retries,
        windows=maybe(window_sets),
        limits=st.just(
            (
                Concurrency("all", 10, "tenant"),
                Rate("often", 5, 1_500, 2, "region"),
                Shares("east", 100, "region", {"east": 40, "north": 30}, True),
            )
        ),
        max_length=maybe(st.integers(1, 1_000)),
    )
)
def test_rules_arrive_as_they_are(config: QueueConfig) -> None:
    rules = msgspec.json.decode(calls.configure(config).body, type=QueueRules)
    assert config_of("q", rules) == config
