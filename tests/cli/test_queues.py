"""Queues, their rules, schedules and bulk operations, over a real server."""

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli import rules
from headway.cli.page import moment, relative
from tests.cli.conftest import ROOT, Call

NUMBERS = count()


@pytest.fixture
def queue(call: Call) -> str:
    """A queue of the test's own, with three jobs: two of acme, one of globex."""
    name = f"q{next(NUMBERS)}"
    jobs = [{"tenant": tenant, "kind": "mail"} for tenant in ("acme", "acme", "globex")]
    call("enqueue", name, "--lines", "-", given="\n".join(map(json.dumps, jobs)))
    return name


def asked(call: Call, *arguments: object) -> Any:
    done = call(*arguments, "--json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def buried(call: Call, queue: str, error: str) -> str:
    job = asked(call, "lease", queue)["jobs"][0]
    assert "buried" in call("nack", job["token"], "--error", error, "--bury").stdout
    return str(job["id"])


def test_queues_are_listed_with_their_counts(call: Call, queue: str) -> None:
    shown = call("queues", "--limit", 1_000).stdout
    row = next(line for line in shown.splitlines() if line.split()[0] == queue)
    assert row.split() == [queue, "3", "0", "0", "0", "0", "-"]
    assert "there is more: --after" in call("queues", "--limit", 1).stdout
    assert len(asked(call, "queues", "--limit", 1)["queues"]) == 1


def test_rules_are_set_shown_and_taken_back(call: Call, queue: str) -> None:
    limits = [
        "concurrency:smtp:20:tenant",
        "rate:api:100/1s",
        "shares:all:9:r:a=40,b=60",
    ]
    shown = call(
        *("queue", "set", queue, "--slo", "5s", "--max-length", 9),
        *(part for limit in limits for part in ("--limit", limit)),
        *("--retry", "delays:1s,1m", "--windows", "00:00-24:00@Europe/London"),
    )
    for text in (*limits, "delays:1s,1m", "00:00-24:00@Europe/London", "max_length"):
        assert text in shown.stdout
    found = asked(
        call, "queue", "set", queue, "--default", "slo", "--default", "limits"
    )
    assert (found["rules"]["slo"], found["rules"]["limits"]) == ("30s", [])
    assert found["rules"]["max_length"] == 9
    found = asked(call, "queue", "set", queue, "--replace", "--attempts", 2)
    assert (found["rules"]["max_length"], found["rules"]["attempts"]) == (None, 2)
    assert asked(call, "queue", "show", queue) == found


def test_rules_come_from_a_file_and_make_a_queue(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text('{"slo": "7s", "windows": null}')
    found = asked(call, "queue", "set", "fresh", "--file", file)
    assert found["rules"]["slo"] == "7s"
    file.write_text("[]")
    assert "no rules" in call("queue", "set", "x", "--file", file, status=2).stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "nothing to set"),
        (["--limit", "concurrency:smtp"], "is not concurrency:NAME"),
        (["--limit", "rate:api:many/1s"], "rate:NAME"),
        (["--limit", "magic:api:1"], "is not"),
        (["--floor", "2"], "floor"),
        (["--default", "colour"], "colour"),
    ],
)
def test_bad_rules_are_told_in_one_line(
    call: Call, queue: str, options: list[str], told: str
) -> None:
    done = call("queue", "set", queue, *options, status=2)
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


DURATIONS = st.sampled_from(["1s", "10s", "5m", "2h"])
NAMES = st.from_regex(r"[a-z]{1,5}", fullmatch=True)


@given(
    st.one_of(
        st.builds("concurrency:{}:{}".format, NAMES, st.integers(0, 99)),
        st.builds("concurrency:{}:{}:{}".format, NAMES, st.integers(0, 99), NAMES),
        st.builds("shares:{}:9:{}:a=40,b=60:lending".format, NAMES, NAMES),
    )
)
def test_a_limit_is_written_as_it_is_read(text: str) -> None:
    assert rules.written_limit(rules.limit(text)) == text


def test_holds_are_told_as_they_stand(call: Call, queue: str) -> None:
    assert f"{queue} is paused" in call("pause", queue).stdout
    assert f"{queue} is paused and blocked" in call("block", queue).stdout
    assert "paused and blocked" in call("queue", "show", queue).stdout
    assert asked(call, "resume", queue) == {"is_paused": False, "is_blocked": True}
    assert asked(call, "unblock", queue) == {"is_paused": False, "is_blocked": False}
    assert f"{queue} is open" in call("unblock", queue).stdout
    assert "no such queue" in call("pause", "nowhere", status=2).stderr


def test_a_hold_is_kept_with_its_reason(call: Call, queue: str, server: str) -> None:
    reason = "the partner is down, ticket 4/5: \u00e4"
    call("pause", queue, "--reason", reason)
    with urlopen(f"{server}/v1/acts") as answer:
        acts = json.load(answer)["acts"]
    assert [one["reason"] for one in acts if one["queue"] == queue] == [reason]


def test_tenants_and_kinds_have_rules_of_their_own(call: Call, queue: str) -> None:
    assert "weight 2.0" in call("tenant", "set", queue, "acme", "--weight", 2).stdout
    assert asked(call, "tenant", "set", queue, "acme", "--pause") == {"done": True}
    assert asked(call, "tenant", "list", queue)["tenants"][0]["is_paused"]
    assert "acme" in call("tenant", "list", queue).stdout
    assert "cost 3" in call("kind", "set", queue, "mail", "--cost", 3).stdout
    assert asked(call, "kind", "set", queue, "mail", "--cap", 2) == {"done": True}
    assert asked(call, "kind", "list", queue)["kinds"][0]["cost"] == 3
    assert "mail" in call("kind", "list", queue).stdout
    assert "nothing to set" in call("kind", "set", queue, "mail", status=2).stderr


def test_a_purge_asks_before_it_destroys(call: Call, queue: str) -> None:
    for answer in ("n\n", "\n", ""):
        done = call("purge", queue, given=answer, status=2)
        assert "3 jobs" in done.stderr
        assert "nothing was done" in done.stderr
    assert asked(call, "queue", "show", queue)["counts"]["ready"] == 3
    assert "3 jobs cancelled" in call("purge", queue, given="y\n").stdout
    assert asked(call, "queue", "show", queue)["counts"]["ready"] == 0


def test_a_purge_is_previewed_and_means_one_tenant(call: Call, queue: str) -> None:
    done = call("purge", queue, "--tenant", "acme", "--preview")
    assert "2 jobs would be met; nothing was done" in done.stdout
    assert asked(call, "purge", queue, "--preview")["matched"] == 3
    done = asked(call, "purge", queue, "--tenant", "acme", "--yes")
    assert (done["state"], done["done"]) == ("finished", 2)
    left = asked(call, "queue", "show", queue)["counts"]["ready"]
    assert left == 1


def test_an_operation_that_is_left_goes_on_and_can_be_stopped(
    call: Call, queue: str
) -> None:
    started = asked(call, "purge", queue, "--rate", "0.001", "--yes", "--detach")
    number = started["id"]
    assert started["state"] == "running"
    assert "running" in call("operation", "show", number).stdout
    assert f"operation {number} is stopped" in call("operation", "stop", number).stdout
    assert asked(call, "operation", "show", number)["state"] == "stopped"
    assert queue in call("operation", "list").stdout
    assert asked(call, "operation", "list")["operations"]
    assert "no such" in call("operation", "show", 99_999, status=2).stderr


def test_an_interrupt_leaves_the_operation_running_and_says_so(
    call: Call, queue: str, server: str
) -> None:
    purge = ["purge", queue, "--yes", "--rate", "0.001", "--server", server]
    # As at a terminal: whoever runs the tests in the background ignores Ctrl-C.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from headway.cli.main import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *purge],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        text=True,
    ) as process:
        mine: dict[int, str] = {}
        while not mine and process.poll() is None:
            found = asked(call, "operation", "list")["operations"]
            mine = {one["id"]: one["state"] for one in found if one["queue"] == queue}
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 2
    (number,) = mine
    assert "on without you" in told
    assert told.count("\n") == 1
    assert asked(call, "operation", "show", number)["state"] == "running"
    call("operation", "stop", number)


def test_dead_letters_are_listed_redriven_and_discarded(call: Call, queue: str) -> None:
    first, second = buried(call, queue, "timeout"), buried(call, queue, "no route")
    third = buried(call, queue, "gone")
    shown = call("dead", "list", queue, "--text", "route").stdout
    assert second in shown
    assert first not in shown
    listed = asked(call, "dead", "list", queue, "--limit", 2)["jobs"]
    assert [one["id"] for one in listed] == [first, second]
    assert "timeout" in call("dead", "show", first).stdout
    assert asked(call, "dead", "show", first)["state"] == "dead"
    done = call("dead", "redrive", queue, "--text", "timeout", "--preview")
    assert "1 job would be met" in done.stdout
    assert "1 job put back" in call("dead", "redrive", queue, "--id", first).stdout
    assert "no dead letter" in call("dead", "show", first, status=2).stderr
    assert asked(call, "job", "redrive", second) == {"done": True}
    assert "nothing was done" in call("dead", "discard", queue, status=2).stderr
    assert asked(call, "dead", "discard", queue, "--yes")["done"] == 1
    assert "no such job" in call("job", "redrive", third, status=2).stderr
    assert "no dead letter fits" in call("dead", "list", queue).stdout
    assert "0 jobs put back" in call("dead", "redrive", queue, given="y\n").stdout


def test_schedules_are_put_listed_and_dropped(call: Call, queue: str) -> None:
    put = ("schedule", "put", queue, "nightly", "30 1 * * *")
    done = call(*put, "--zone", "Europe/London", "--kind", "report")
    assert f"{queue}/nightly: 30 1 * * * (Europe/London), next " in done.stdout
    assert asked(call, *put, "--payload", "[1]", "--paused")["is_paused"]
    shown = call("schedule", "list", queue).stdout
    assert "nightly" in shown
    assert "paused" in shown
    names = [one["name"] for one in asked(call, "schedule", "list")["schedules"]]
    assert "nightly" in names
    assert "next " in call("schedule", "resume", queue, "nightly").stdout
    assert "paused" in call("schedule", "pause", queue, "nightly").stdout
    assert asked(call, "schedule", "list", queue)["schedules"][0]["is_paused"]
    ran = asked(call, "schedule", "run", queue, "nightly")["jobs"][0]["id"]
    assert json.loads(call("job", "show", ran, "--json").stdout)["payload"] == [1]
    assert "no such schedule" in call("schedule", "run", queue, "x", status=2).stderr
    assert "is gone" in call("schedule", "drop", queue, "nightly").stdout
    assert (
        "no such schedule"
        in call("schedule", "drop", queue, "nightly", status=2).stderr
    )
    call(*put)
    assert asked(call, "schedule", "drop", queue, "nightly") is None
    assert "cron" in call(*put[:-1], "often", status=2).stderr


def test_moments_are_local_and_relative() -> None:
    now_ms = 1_790_000_000_000
    assert relative(now_ms + 5_000, now_ms) == "in 5 s"
    assert relative(now_ms - 60_000, now_ms) == "1 min ago"
    assert relative(now_ms + 1, now_ms) == "now"
    assert str(moment(now_ms, now_ms)).endswith("(now)")
    assert str(moment(now_ms + 10**10, now_ms)).startswith("20")
    assert moment(10**18, now_ms) == str(10**18)
    assert moment(None) is None


def test_a_server_that_is_no_node_has_one_partition(call: Call, queue: str) -> None:
    call("queue", "set", queue, "--max-length", 9, "--when-full", "wait")
    assert asked(call, "queue", "show", queue)["rules"]["when_full"] == "wait"
    assert call("queue", "widen", queue, 1).stdout == f"{queue} is in p1\n"
    for words in (["2"], ["auto"], ["auto", "--max", "2"]):
        refused = call("queue", "widen", queue, *words, status=2).stderr
        assert "this server has one partition" in refused
    assert "or auto, not 'x'" in call("queue", "widen", queue, "x", status=2).stderr
