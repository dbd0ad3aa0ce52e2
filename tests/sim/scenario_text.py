"""A good scenario file, and what becomes of it when something is changed."""

from pathlib import Path

import pytest

from headway.sim.scenario import Scenario, ScenarioError
from headway.sim.scenario_file import load_scenario

GOOD = """\
name = "good"
title = "A good one"
duration = "60s"
drain = "10m"
seed = 7
epoch = "2026-01-05T00:00:00Z"
sample = "1s"

[[workers]]
slots = 10
until = "50s"
queues = ["mail"]

[[queues]]
name = "mail"
slo = "5s"
weight = 2.0
order = "fair"
fair_by = "time"
slot_share = 0.5
attempts = 3
max_length = 1000
windows = ["22:00-06:00"]
zone = "Europe/Berlin"
retry = { kind = "delays", delays = ["1s", "5s"] }
limits = [
  { kind = "concurrency", name = "partner", max = 5, per = "server" },
  { kind = "rate", name = "pace", count = 100, period = "1s", burst = 20 },
  { kind = "shares", name = "regions", max = 10, by = "region", percent = { east = 60 } },
]

[[loads]]
name = "newsletter"
queue = "mail"
slos = ["5s", "30s"]
priority = 50
fail = 0.05
tenant = { count = 3, prefix = "t", zipf = 1.1, weights = [4, 2, 1] }
labels = { region = { east = 0.4, west = 0.6 }, server = "one" }
arrivals = { kind = "poisson", per_second = 5 }
service = { kind = "lognormal", mean = "1s", sigma = 0.5 }

[[actions]]
at = "10s"
do = "cap"
queue = "mail"
tenant = "t0"
value = 5
"""


def loaded(folder: Path, text: str) -> Scenario:
    path = folder / "some.toml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ScenarioError) as refused:
        loaded(folder, text)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    assert message.isprintable()
    assert "some.toml: " in message
    return message
