"""The text for Prometheus: names, values, labels, and that others can read it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from headway.core.commands import Ack, Reply
from headway.core.config import Concurrency, QueueConfig
from headway.server.metric_names import METRICS, NODE_METRICS, Kind
from headway.server.metrics import Memory, exposition, memory_of_process
from tests.runtime.metered import SLO_MS, MeteredDesk

ROOT = Path(__file__).resolve().parents[2]
MEMORY = Memory(private=12_345, resident=67_890)
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
AWKWARD = 'a "queue"\\with\nlines'


def text_of(desk: MeteredDesk, default_queue: str = "q") -> str:
    return exposition(
        desk.measures(),
        default_queue=default_queue,
        memory=MEMORY,
        wanted=desk.wanted(),
    ).decode()


def samples_of(desk: MeteredDesk, default_queue: str = "q") -> Samples:
    """By name and labels; none may come twice."""
    found: Samples = {}
    for family in parsed(text_of(desk, default_queue)):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@pytest.fixture(name="desk")
def a_busy_desk() -> MeteredDesk:
    """Every family has something to say."""
    desk = MeteredDesk(
        QueueConfig(
            name="q",
            slo_ms=SLO_MS,
            max_length=1_000,
            limits=(Concurrency("line", 3), Concurrency("each", 9, per="tenant")),
        ),
        QueueConfig(name=AWKWARD, slo_ms=1_500),
    )
    desk.owner.meter.verdicts["q", "start"] = 1
    desk.owner.meter.unheard["q", "raised"] = 2
    desk.put(4, payload=b"12345", tenant="secret-tenant")
    desk.put(2, delay_ms=60_000, payload=b"1")
    desk.ask(Reply("q", "nobody", b""))
    first, *_ = desk.lease(2)
    desk.later(6_000)
    desk.ask(Ack([first.token]))
    desk.lease(1)
    desk.put(1, AWKWARD)
    return desk


def test_the_seven_names_known_from_elsewhere_have_their_values(
    desk: MeteredDesk,
) -> None:
    samples = samples_of(desk)
    told = {
        name: value(samples, name)
        for name in METRICS
        if not name.startswith("headway_")
    }
    assert told == {
        "queued_messages": 1,
        "delayed_messages": 2,
        "queue_max_len": 1_000,
        "total_queued_messages": 6,
        "queued_messages_size": 22,
        "mem_bytes_heap": 12_345,
        "mem_bytes_sys": 67_890,
    }


def test_without_a_default_queue_its_metrics_are_zero(desk: MeteredDesk) -> None:
    samples = samples_of(desk, "nowhere")
    assert value(samples, "queued_messages") == 0
    assert value(samples, "total_queued_messages") == 0


def test_lanes_are_told_by_queue_and_slo(desk: MeteredDesk) -> None:
    samples = samples_of(desk)
    lane = {"queue": "q", "slo": "5"}
    assert value(samples, "headway_jobs_enqueued_total", **lane) == 6
    assert value(samples, "headway_jobs_started_total", **lane) == 3
    assert value(samples, "headway_starts_in_time_total", **lane) == 2
    assert value(samples, "headway_starts_late_total", **lane) == 1
    assert value(samples, "headway_lane_oldest_wait_seconds", **lane) == 6.0
    assert value(samples, "headway_wait_seconds_count", **lane) == 3
    assert value(samples, "headway_wait_seconds_sum", **lane) == 6.0
    within = {"le": "4.096", **lane}
    assert value(samples, "headway_wait_seconds_bucket", **within) == 2
    within["le"] = "8.192"
    assert value(samples, "headway_wait_seconds_bucket", **within) == 3
    assert value(samples, "headway_run_seconds_sum", **lane) == 6.0


def test_limits_are_summed_over_their_values(desk: MeteredDesk) -> None:
    samples = samples_of(desk)
    assert value(samples, "headway_limit_used", queue="q", limit="line") == 2
    assert value(samples, "headway_limit_max", queue="q", limit="line") == 3
    assert value(samples, "headway_limit_used", queue="q", limit="each") == 2
    assert "secret-tenant" not in text_of(desk)


def test_labels_are_only_those_with_few_values(desk: MeteredDesk) -> None:
    names = {label for _, labels in samples_of(desk) for label, _ in labels}
    few = {"queue", "slo", "limit", "state", "fate", "le", "verdict", "error"}
    assert names == few


def test_a_name_with_quotes_and_lines_breaks_nothing(desk: MeteredDesk) -> None:
    samples = samples_of(desk)
    lane = {"queue": AWKWARD, "slo": "1.5"}
    assert value(samples, "headway_jobs_enqueued_total", **lane) == 1


def test_every_metric_is_written_with_its_kind_and_meaning(desk: MeteredDesk) -> None:
    text = text_of(desk)
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.M))
    assert helps == {name: meaning for name, (_, meaning) in METRICS.items()}
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    assert kinds == {name: kind.value for name, (kind, _) in METRICS.items()}
    for name, (kind, meaning) in METRICS.items():
        assert (kind is Kind.COUNTER) == name.endswith("_total"), name
        assert meaning.endswith("."), name


def test_the_page_has_every_metric_with_its_kind_and_meaning() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()]
    in_docs = {
        cells[0].strip("`"): (cells[1], cells[-1])
        for cells in rows
        if cells[0].startswith("`") and len(cells) >= 3
    }
    assert in_docs == {
        name: (kind.value, meaning)
        for name, (kind, meaning) in {**METRICS, **NODE_METRICS}.items()
    }


def test_memory_is_what_the_process_holds() -> None:
    before = memory_of_process()
    held = bytearray(b"x") * (64 << 20)
    after = memory_of_process()
    assert after.private - before.private > len(held) // 2
    assert after.resident >= after.private


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not there")
def test_promtool_finds_nothing_to_complain_about(desk: MeteredDesk) -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=text_of(desk).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
