"""Scenario files: what they mean, and the one line that a bad one gives."""

from pathlib import Path

import pytest

from headway.core.config import Concurrency, Order, Rate, Shares
from headway.core.retry import Delays
from headway.sim.actions import Do
from headway.sim.scenario import (
    EPOCH_MS,
    Exact,
    ManyTenants,
    ScenarioError,
    Spread,
    expected_jobs,
)
from headway.sim.scenario_file import load_scenario
from tests.sim.scenario_text import GOOD, loaded, refusal

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/scenarios").glob("*.toml"))


def test_a_good_file_becomes_rules_and_streams(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, GOOD)
    queue, load = scenario.queues[0], scenario.loads[0]
    assert (scenario.name, scenario.duration_ms, scenario.seed) == ("good", 60_000, 7)
    assert (scenario.epoch_ms, scenario.bin_ms) == (EPOCH_MS, 1_000)
    assert (scenario.workers[0].slots, scenario.workers[0].until_ms) == (10, 50_000)
    assert (queue.slo_ms, queue.order, queue.attempts_max) == (5_000, Order.FAIR, 3)
    assert [type(limit) for limit in queue.limits] == [Concurrency, Rate, Shares]
    assert queue.retry == Delays((1_000, 5_000))
    assert load.slos_ms == (5_000, 30_000)
    assert isinstance(load.tenants, ManyTenants)
    assert load.service.kind is Spread.LOGNORMAL
    assert [label.name for label in load.labels] == ["region", "server"]
    assert scenario.actions[0].do is Do.CAP


def test_keys_left_out_have_the_defaults_of_the_core(tmp_path: Path) -> None:
    scenario = loaded(
        tmp_path,
        'duration = "1s"\n[[workers]]\nslots = 1\n[[queues]]\nname = "q"\n'
        '[[loads]]\nname = "l"\nqueue = "q"\n'
        'arrivals = { kind = "burst", count = 2 }\n'
        'service = { kind = "fixed", mean = "1s" }\n',
    )
    assert scenario.name == "some"
    assert scenario.queues[0].slo_ms == 30_000
    assert scenario.drain_ms == 3_600_000
    assert scenario.loads[0].tenants is None
    assert scenario.bin_ms == 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load_and_say_what_they_show(path: Path) -> None:
    scenario = load_scenario(path)
    jobs = sum(expected_jobs(load, scenario.duration_ms) for load in scenario.loads)
    assert scenario.title
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert 10 <= jobs < 500_000


def test_all_scenarios_of_the_product_are_there() -> None:
    assert {path.stem for path in EXAMPLES} >= {
        "overload",
        "overload-300s",
        "normal",
        "noisy-tenant",
        "noisy-tenant-names",
        "noisy-tenant-long",
        "noisy-tenant-slos",
        "noisy-tenant-purge",
        "noisy-tenant-unpause",
        "long-jobs",
        "weights",
        "shares",
        "shares-lending",
        "windows",
        "priority-orders",
        "critical",
        "replies",
        "black-friday",
    }


BAD = [
    ('duration = "60s"', 'duration = "60x"', "duration", "'60x'"),
    ('duration = "60s"', "duration = -1", "duration", "-1"),
    ('duration = "60s"', "duration = 0", "duration", "0"),
    ('duration = "60s"', f"duration = {2**63}", "duration", str(2**63)),
    ('duration = "60s"', "duration = nan", "duration", "nan"),
    ('duration = "60s"', "duration = true", "duration", "True"),
    ('duration = "60s"', "", "duration", "missing"),
    ('duration = "60s"', 'duratoin = "60s"', "duratoin", "did you mean duration"),
    ("seed = 7", "seed = -7", "seed", "-7"),
    ("seed = 7", "seed = true", "seed", "True"),
    ("seed = 7", f"seed = {2**63}", "seed", str(2**63)),
    ("seed = 7", "sneed = 7", "sneed", "did you mean seed"),
    ("seed = 7", "zzz = 7", "zzz", "unknown key"),
    ("T00:00:00Z", "T00:00:00", "epoch", "time zone"),
    ("2026-01-05T00", "2026-13-05T00", "epoch", "2026-13-05"),
    ("2026-01-05T00", "1026-01-05T00", "epoch", "1026-01-05"),
    ('sample = "1s"', 'sample = "0s"', "sample", "0s"),
    ("slots = 10", "slots = 0", "workers[0].slots", "0"),
    ("slots = 10", "slots = 1.5", "workers[0].slots", "1.5"),
    ("slots = 10", "slots = true", "workers[0].slots", "True"),
    ("slots = 10", f"slots = {2**63}", "workers[0].slots", str(2**63)),
    ('until = "50s"', "until = 0", "workers[0].until", "0"),
    ('queues = ["mail"]', 'queues = ["male"]', "workers[0].queues", "'male'"),
    ('queues = ["mail"]', 'queues = "mail"', "workers[0].queues", "'mail'"),
    ('slo = "5s"', 'slo = "0s"', "queues[0].slo", "'0s'"),
    ('slo = "5s"', 'slo = "-5s"', "queues[0].slo", "'-5s'"),
    ('slo = "5s"', "slo = 5.5", "queues[0].slo", "5.5"),
    ("weight = 2.0", "weight = nan", "queues[0].weight", "nan"),
    ("weight = 2.0", "weight = inf", "queues[0].weight", "inf"),
    ("weight = 2.0", "weight = -2", "queues[0].weight", "-2"),
    ("weight = 2.0", f"weight = 1{'0' * 400}", "queues[0].weight", "1000000"),
    ("weight = 2.0", "wieght = 2", "queues[0].wieght", "did you mean weight"),
    ('order = "fair"', 'order = "fare"', "queues[0].order", "'fare'"),
    ('fair_by = "time"', "fair_by = 3", "queues[0].fair_by", "3"),
    ("slot_share = 0.5", "slot_share = 0", "queues[0].slot_share", "0"),
    ("slot_share = 0.5", "slot_share = 1.5", "queues[0].slot_share", "1.5"),
    ("attempts = 3", "attempts = 0", "queues[0].attempts", "0"),
    ("max_length = 1000", "max_length = -1", "queues[0].max_length", "-1"),
    ("max_length = 1000", 'margin = "10s"', "queues[0].margin", "10000"),
    ('"22:00-06:00"', '"22:00-22:00"', "queues[0].windows[0]", "'22:00-22:00'"),
    ('"22:00-06:00"', '"22:00-25:00"', "queues[0].windows[0]", "'22:00-25:00'"),
    ('"22:00-06:00"', "22", "queues[0].windows[0]", "22"),
    ("Europe/Berlin", "Europe/Atlantis", "queues[0].zone", "'Europe/Atlantis'"),
    ("Europe/Berlin", "../etc/passwd", "queues[0].zone", "'../etc/passwd'"),
    (
        'kind = "delays", delays',
        'kind = "never", delays',
        "queues[0].retry.kind",
        "never",
    ),
    ('delays = ["1s", "5s"]', 'delays = ["1s", "?"]', "retry.delays[1]", "'?'"),
    ("max = 5,", "max = -5,", "queues[0].limits[0].max", "-5"),
    ("max = 5,", "max = true,", "queues[0].limits[0].max", "True"),
    ("max = 5,", "", "queues[0].limits[0].max", "missing"),
    ('"concurrency"', '"concurency"', "queues[0].limits[0].kind", "'concurency'"),
    ('period = "1s"', 'period = "0s"', "queues[0].limits[1].period", "'0s'"),
    ("east = 60", "east = 60, west = 50", "percent", "'west': 50"),
    ("east = 60", "east = 101", "limits[2].percent.east", "101"),
    ("east = 60", "east = -1", "limits[2].percent.east", "-1"),
    ('name = "pace"', 'name = "partner"', "queues[0].limits", "'partner'"),
    ('queue = "mail"\nslos', 'queue = "male"\nslos', "loads[0].queue", "'male'"),
    ('slos = ["5s", "30s"]', 'slos = ["5s", 1.5]', "loads[0].slos[1]", "1.5"),
    ('slos = ["5s", "30s"]', 'slo = "5s"\nslos = ["5s"]', "loads[0].slos", "5000"),
    ("priority = 50", f"priority = {2**63}", "loads[0].priority", str(2**63)),
    ("priority = 50", 'priority = "50"', "loads[0].priority", "'50'"),
    ("priority = 50", 'from = "9s"\nuntil = "9s"', "loads[0].until", "9000"),
    ("fail = 0.05", "fail = 1.05", "loads[0].fail", "1.05"),
    ("fail = 0.05", "fail = nan", "loads[0].fail", "nan"),
    ("count = 3", "count = 0", "loads[0].tenant.count", "0"),
    ("count = 3", "names = []", "loads[0].tenant.names", "[]"),
    ("zipf = 1.1", "zipf = -1.1", "loads[0].tenant.zipf", "-1.1"),
    ("[4, 2, 1]", "[4, 0, 1]", "loads[0].tenant.weights[1]", "0"),
    ("west = 0.6", "west = -0.6", "loads[0].labels.region.west", "-0.6"),
    ("east = 0.4, west = 0.6", "", "loads[0].labels.region", "{}"),
    ('server = "one"', "server = 1", "loads[0].labels.server", "1"),
    ("per_second = 5", "per_second = -5", "loads[0].arrivals.per_second", "-5"),
    ("per_second = 5", "per_second = inf", "loads[0].arrivals.per_second", "inf"),
    ("per_second = 5", "per_seconds = 5", "arrivals.per_seconds", "per_second?"),
    ("per_second = 5", "per_second = 1e6", "loads", "60000000 jobs"),
    ('"poisson"', '"gauss"', "loads[0].arrivals.kind", "'gauss'"),
    ('mean = "1s"', 'mean = "0s"', "loads[0].service.mean", "'0s'"),
    ("sigma = 0.5", "sigma = nan", "loads[0].service.sigma", "nan"),
    ('do = "cap"', 'do = "explode"', "actions[0].do", "'explode'"),
    ('at = "10s"', "at = -10", "actions[0].at", "-10"),
    ('tenant = "t0"', "", "actions[0].tenant", "missing"),
    ("value = 5\n", "value = 0.5\n", "actions[0].value", "0.5"),
    ("value = 5\n", "value = 5\nkind = 'x'\n", "actions[0].kind", "unknown key"),
]


@pytest.mark.parametrize(("old", "new", "key", "value"), BAD)
def test_a_bad_value_is_named_with_file_key_and_value(
    tmp_path: Path, old: str, new: str, key: str, value: str
) -> None:
    assert GOOD.count(old) == 1
    message = refusal(tmp_path, GOOD.replace(old, new))
    assert f"{key}" in message.split(" = ")[0] or f"{key}: " in message
    assert value in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("duration = ", "Invalid value"),
        ("= 5", "line 1"),
        ('a = "\\uD800"', "line 1"),
        ("a = [" * 5_000, ""),
        (f"a = {'9' * 5_000}", ""),
        ("", "duration: is missing"),
        (GOOD.replace("[[loads]]", "[[laods]]"), "laods"),
        (GOOD.replace("[[queues]]", "[queues]"), "queues"),
        (GOOD.partition("[[loads]]")[0], "loads: is missing"),
        (GOOD.partition("[[loads]]")[0].replace("[[w", "loads = []\n[[w", 1), "loads"),
        (GOOD + '"a\\nb" = 1', 'actions[0]."a\\nb"'),
        (GOOD + GOOD.partition("\n[[loads]]")[2].join(["[[loads]]", ""]), "newsletter"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in refusal(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"absent\.toml: No such file"):
        load_scenario(tmp_path / "absent.toml")


def test_a_folder_and_bytes_are_no_scenario(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match=r"bytes\.toml: "):
        load_scenario(tmp_path / "bytes.toml")
    with pytest.raises(ScenarioError, match="directory"):
        load_scenario(tmp_path)


def test_a_list_is_sorted_by_time_and_keeps_its_priorities(tmp_path: Path) -> None:
    arrivals = '{ kind = "list", at = ["2s", "1s", "2s"], priority = [9, 5, 7] }'
    text = GOOD.replace('{ kind = "poisson", per_second = 5 }', arrivals)
    (load,) = loaded(tmp_path, text).loads
    assert load.arrivals == Exact(at_ms=(1_000, 2_000, 2_000), priorities=(5, 9, 7))
