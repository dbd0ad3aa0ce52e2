"""Jobs and work by hand, over a real server."""

import json
import shlex
from itertools import count
from typing import Any

import pytest

from tests.cli.conftest import Call

NUMBERS = count()


@pytest.fixture
def queue(call: Call) -> str:
    """A queue of the test's own."""
    name = f"q{next(NUMBERS)}"
    call("queue", "set", name, "--slo", "30s")
    return name


def asked(call: Call, *arguments: object) -> Any:
    """A command's JSON, which is all it prints."""
    done = call(*arguments, "--json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def enqueued(call: Call, queue: str, *options: object) -> str:
    found = asked(call, "enqueue", queue, *options)
    return str(found["jobs"][0]["id"])


def leased(call: Call, queue: str) -> str:
    return str(asked(call, "lease", queue)["jobs"][0]["token"])


def test_enqueue_says_what_was_enqueued_and_where(call: Call, queue: str) -> None:
    done = call("enqueue", queue, "--payload", '{"to": "ada"}', "--slo", "5s")
    assert f"is in {queue}" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_all_that_options_say_of_a_job_reaches_it(call: Call, queue: str) -> None:
    id_ = enqueued(
        call,
        queue,
        *("--kind", "mail", "--tenant", "acme", "--slo", "5s", "--delay", "1h"),
        *("--label", "region=east", "--header", "trace=7", "--attempts", "3"),
        *("--retry", "fixed:10s", "--critical", "--payload", "[1e2]"),
    )
    job = asked(call, "job", "show", id_)
    assert (job["kind"], job["tenant"], job["slo_ms"]) == ("mail", "acme", 5_000)
    assert (job["state"], job["attempts_max"]) == ("scheduled", 3)
    assert (job["labels"], job["headers"]) == ({"region": "east"}, {"trace": "7"})
    assert job["critical"]
    assert job["payload"] == [100]
    shown = call("job", "show", id_).stdout
    for word in (id_, queue, "scheduled", "acme", "5 s", "region=east", "in 1 h"):
        assert word in shown


def test_a_time_without_a_zone_is_local(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue, "--run-at", "2030-01-01T08:00:00")
    assert "2030-01-01 08:00:00" in call("job", "show", id_).stdout


def test_a_payload_comes_from_stdin_or_is_bytes(call: Call, queue: str) -> None:
    done = call("enqueue", queue, "-", "--json", given='{"a": 1}\n')
    id_ = json.loads(done.stdout)["jobs"][0]["id"]
    assert asked(call, "job", "show", id_)["payload"] == {"a": 1}
    done = call("enqueue", queue, "--bytes", "--payload", "no json", "--json")
    id_ = json.loads(done.stdout)["jobs"][0]["id"]
    assert asked(call, "job", "show", id_)["payload_base64"] == "bm8ganNvbg=="
    assert "bm8ganNvbg== (base64)" in call("job", "show", id_).stdout


def test_the_same_key_is_the_same_job(call: Call, queue: str) -> None:
    first = enqueued(call, queue, "--key", "k")
    assert (
        f"{first} is in {queue} already" in call("enqueue", queue, "--key", "k").stdout
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--payload", "{"], "is no JSON"),
        (["--slo", "5x"], "duration"),
        (["--run-at", "soon"], "no time"),
        (["--label", "region"], "name=value"),
        (["--retry", "often"], "exponential"),
        (["--windows", "all day"], "22:00-06:00"),
        (["--file", "not-there"], "not-there"),
        (["--payload", "1", "--file", "x"], "not from both"),
        (["--lines", "x", "--slo", "1s"], "no other option"),
        (["--attempts", "0"], "attempts"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_bad_input_is_told_in_one_line(
    call: Call, queue: str, options: list[str], told: str
) -> None:
    done = call("enqueue", queue, *options, status=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("headway: ")
    assert told in done.stderr


def test_a_server_that_is_not_there_is_told_in_one_line(call: Call) -> None:
    done = call("queues", "--server", "http://127.0.0.1:1", status=2)
    assert "headway serve" in done.stderr
    assert done.stderr.count("\n") == 1
    done = call("queues", "--server", "http://127.0.0.1:no", status=2)
    assert done.stderr.count("\n") == 1
    assert "HOST" in call("queues", "--server", "ftp://x", status=2).stderr


HOSTILE = '"\\u001b[2Jx[bold red]y[/bold red]\u009b31m\u202e"'


def test_nothing_in_a_job_acts_on_the_terminal(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue, "--payload", HOSTILE, "--attempts", "1")
    token = leased(call, queue)
    call("nack", token, "--error", "\x1b]0;title\x07[red]z[/red]\n2", "--bury")
    for arguments in (
        ["job", "show", id_],
        ["dead", "show", id_],
        ["dead", "list", queue],
        ["job", "show", id_, "--json"],
        ["dead", "list", queue, "--json"],
    ):
        shown = call(*arguments).stdout
        bad = [c for c in shown if not c.isprintable() and c != "\n"]
        assert bad == [], arguments
        assert "[red]z[/red]" in shown
    assert "x[bold red]y[/bold red]" in call("job", "show", id_).stdout
    assert asked(call, "job", "show", id_)["payload"] == json.loads(HOSTILE)


def test_a_lease_is_extended_and_acknowledged(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue, "--payload", '"x"', "--tenant", "acme")
    shown = call("lease", queue, "--worker", "me").stdout
    assert id_ in shown
    assert "1 of 5" in shown
    running = call("running", "--queue", queue).stdout
    assert id_ in running
    assert "me" in running
    assert asked(call, "running", "--queue", queue)["jobs"][0]["id"] == id_
    token = next(
        line.split()[1] for line in shown.splitlines() if line.startswith("token")
    )
    assert "1 job extended" in call("extend", token, "--lease", "1m").stdout
    assert "1 job done" in call("ack", token).stdout
    assert "no longer" in call("ack", token).stdout
    assert asked(call, "ack", token)["stale"] == [token]
    assert "no job to start" in call("lease", queue).stdout


def test_failed_and_released_jobs_come_back(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue)
    assert "given back" in call("release", leased(call, queue)).stdout
    failed = call("nack", leased(call, queue), "--error", "no", "--retry-in", "1h")
    assert "tried again" in failed.stdout
    job = asked(call, "job", "show", id_)
    assert (job["state"], job["errors"][0]["text"]) == ("scheduled", "no")
    assert asked(call, "release", "none")["stale"] == ["none"]
    assert asked(call, "nack", "none")["stale"] == ["none"]
    assert asked(call, "extend", "none")["stale"] == ["none"]


def test_a_job_waits_for_its_reply(call: Call, queue: str) -> None:
    enqueued(call, queue)
    token = leased(call, queue)
    assert "waits for the reply 'k'" in call("wait", token, "k").stdout
    assert "reply k" in call("running", "--queue", queue).stdout
    assert "goes on" in call("reply", queue, "k", "--payload", '"yes"').stdout
    assert asked(call, "reply", queue, "early")["fate"] == "early"
    assert '"yes"' in call("lease", queue).stdout
    done = call("wait", token, "k", "--json", status=2)
    assert done.stderr.startswith("headway: ")


def test_a_job_is_cancelled_or_its_worker_is_told(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue)
    assert f"{id_}: cancelled" in call("job", "cancel", id_).stdout
    id_ = enqueued(call, queue)
    token = leased(call, queue)
    assert asked(call, "job", "cancel", id_)["outcome"] == "requested"
    assert "give it up" in call("extend", token).stdout
    assert "no such job" in call("job", "cancel", "p1_999999", status=2).stderr


def test_why_names_what_stops_a_job_and_how_it_is_lifted(
    call: Call, queue: str
) -> None:
    call("queue", "set", queue, "--limit", "concurrency:smtp:1")
    first, second = enqueued(call, queue), enqueued(call, queue)
    leased(call, queue)
    shown = call("why", second).stdout
    assert "limit 'smtp' is used up: 1 of 1" in shown
    assert f"held by {first}" in shown
    call("pause", queue)
    shown = call("why", second).stdout
    assert "first: its queue is paused" in shown
    assert f"headway resume {queue}" in shown
    assert asked(call, "why", second)["reasons"][0]["rule"] == "queue_paused"


def test_a_command_that_is_proposed_can_be_pasted_whatever_a_job_is_called(
    call: Call, queue: str
) -> None:
    tenant = "a; touch $HOME/x"
    call("tenant", "set", queue, tenant, "--pause")
    shown = call("why", enqueued(call, queue, "--tenant", tenant)).stdout
    line = next(line for line in shown.splitlines() if "see:" in line)
    assert shlex.split(line)[-2:] == [tenant, "--resume"]


def test_why_tells_moments_in_local_time(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue, "--run-at", "2030-01-01T08:00:00")
    shown = call("why", id_).stdout
    assert "scheduled for 2030-01-01 08:00:00 (in " in shown
    assert "until" not in shown


def test_result_of_a_job_is_shown_as_it_was_told(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue, "--result", "1h")
    shown = call("job", "result", id_).stdout
    assert f"{id_}: ready" in shown
    call("ack", leased(call, queue), "--result", '{"sent": 17}')
    shown = call("job", "result", id_, "--wait", "30s").stdout
    assert f"{id_}: done" in shown
    assert '{"sent": 17}' in shown
    assert asked(call, "job", "result", id_)["value"] == {"sent": 17}


def test_result_that_nobody_asked_for_is_refused(call: Call, queue: str) -> None:
    id_ = enqueued(call, queue)
    done = call("job", "result", id_, status=2)
    assert "none was asked for" in done.stderr
