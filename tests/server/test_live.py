"""What a dashboard asks for: this moment, trends, acts, what if, and no more than that."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from headway.server.acts import FILE
from headway.server.handlers.simulations import ROUTES as SIMULATIONS
from headway.server.trends import CALM_MS, LANES_MAX, Ring, Trends
from tests.runtime.metered import SLO_MS, MeteredDesk
from tests.server.process import PATIENCE_S, Serve, Served

SCENARIO = SIMULATIONS[0].example["scenario"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("live") / "data")
    assert server.ask("PUT", "/v1/queues/mail", {"slo": "1h"}).status < 300
    job = {"kind": "a", "tenant": "acme"}
    assert server.ask("POST", "/v1/queues/mail/jobs", job).status == 201
    yield server
    server.stop()


def get(served: Served, path: str) -> Any:
    answer = served.ask("GET", path)
    assert answer.status == 200, answer
    return answer.json


def test_news_are_waited_for_and_come_to_all_at_once(served: Served) -> None:
    known = get(served, "/v1/live")["number"]

    def wait(_: int) -> int:
        host, port = served.place
        connection = HTTPConnection(host, port, timeout=PATIENCE_S)
        connection.request("GET", f"/v1/live?after={known}")
        told = json.loads(connection.getresponse().read())
        connection.close()
        return int(told["number"])

    with ThreadPoolExecutor(20) as many:
        numbers = list(many.map(wait, range(20)))
    assert min(numbers) > known
    # One look serves them all: as many looks as listeners would be far beyond.
    assert max(numbers) - known < 20


def test_the_moment_is_told_by_lane_and_in_sum(served: Served) -> None:
    until_s = time.monotonic() + PATIENCE_S
    lane: dict[str, Any] = {"ready": 0}
    while not lane["ready"] and time.monotonic() < until_s:
        told = get(served, "/v1/live")
        named = {one["queue"]: one for one in told["lanes"]}
        lane = named.get("mail", lane)
    assert (lane["slo_ms"], lane["ready"], lane["late"]) == (3_600_000, 1, 0)
    assert lane["broken_since_ms"] is None
    assert told["counts"]["ready"] == 1
    assert told["slots"]["busy"] == 0
    trends = get(served, "/v1/trends?queue=mail")
    assert [one["queue"] for one in trends["lanes"]] == ["mail"]
    assert trends["lanes"][0]["points"][-1][4] == 1
    assert get(served, "/v1/trends?span=24h")["step_ms"] == 300_000
    assert get(served, "/v1/node")["partition"] == "p1"


def test_a_server_that_stops_keeps_no_listener_waiting(serve: Serve) -> None:
    server = serve()
    known = get(server, "/v1/live")["number"]
    host, port = server.place
    connection = HTTPConnection(host, port, timeout=PATIENCE_S)
    connection.request("GET", f"/v1/live?after={known}")
    assert server.stop() == 0
    assert connection.getresponse().status == 200
    connection.close()


def test_acts_are_kept_with_who_and_why_over_a_restart(serve: Serve) -> None:
    first = serve()
    first.ask("PUT", "/v1/queues/mail", {"slo": "5s"})
    why = quote("für Ada, “now”", safe="")
    first.ask("POST", "/v1/queues/mail/pause", headway_reason=why)
    first.ask("POST", "/v1/queues/mail/purge", {"preview": True})
    first.ask("POST", "/v1/queues/none/pause")
    first.ask("GET", "/v1/queues/mail")
    first.stop()
    with (first.data / FILE).open("ab") as file:
        file.write(b'{"cut": "sho')
    second = serve()
    second.ask("POST", "/v1/queues/mail/resume")
    told = get(second, "/v1/acts?queue=mail")["acts"]
    assert [(one["what"], one["who"], one["reason"]) for one in told] == [
        ("queues_resume", "anybody", ""),
        ("queues_pause", "anybody", "für Ada, “now”"),
        ("queues_put", "anybody", ""),
    ]
    assert [one["number"] for one in told] == [3, 2, 1]
    assert get(second, "/v1/acts?before=2&limit=1")["acts"][0]["what"] == "queues_put"
    assert get(second, "/v1/acts?queue=other")["acts"] == []
    assert (second.data / FILE).stat().st_mode & 0o077 == 0
    second.stop()
    third = serve()
    assert [one["number"] for one in get(third, "/v1/acts")["acts"]] == [3, 2, 1]


def test_an_act_that_can_not_be_written_down_is_told_to_the_log(serve: Serve) -> None:
    server = serve()
    (server.data / FILE).mkdir()
    server.ask("PUT", "/v1/queues/mail", {"slo": "5s"})
    assert server.ask("POST", "/v1/queues/mail/pause").status == 200
    assert get(server, "/v1/queues/mail")["is_paused"]
    told = [one["event"] for one in server.events()]
    assert told.count("acts not written") == 2


def test_an_act_never_holds_a_payload(serve: Serve) -> None:
    server = serve()
    job = server.ask("POST", "/v1/queues/mail/jobs", {"payload": "canary-1"}).json
    lease = server.ask("POST", "/v1/lease", {"queues": ["mail"]}).json["jobs"][0]
    nack = {"jobs": [{"token": lease["token"], "bury": True}]}
    server.ask("POST", "/v1/nack", nack)
    path = f"/v1/jobs/{job['jobs'][0]['id']}/redrive"
    assert server.ask("POST", path, {"payload": "canary-2"}).status == 200
    body = {"cron": "0 5 * * *", "job": {"payload": "canary-3"}}
    server.ask("PUT", "/v1/queues/mail/schedules/nightly", body)
    written = (server.data / FILE).read_text()
    assert "dead_redrive_one" in written
    assert "nightly" in written
    assert "canary" not in written


@pytest.mark.parametrize(
    "reason", ["{}", "a b", "%00", "x" * 501, "ä".encode().hex() * 300]
)
def test_a_reason_that_is_none_is_refused_before_anything_is_done(
    served: Served, reason: str
) -> None:
    answer = served.ask("POST", "/v1/queues/mail/block", headway_reason=reason)
    assert (answer.status, answer.code) == (400, "bad_value")
    assert not get(served, "/v1/queues/mail")["is_blocked"]


def test_a_scenario_is_run_beside_the_server(served: Served) -> None:
    told = served.ask("POST", "/v1/simulations", {"scenario": SCENARIO}).json
    (lane,) = told["lanes"]
    assert (lane["queue"], lane["slo_ms"]) == ("payment", 5_000)
    assert told["attained"] == 1.0
    assert len(lane["points_p99_ms"]) == len(told["slots"])


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("duration = 'long'", "bad_value"),
        ("a = [" * 3_000, "bad_value"),
        (SCENARIO.replace("poisson", "trace").replace("per_second = 12", "file = 'x'"),
         "bad_value"),
        (SCENARIO.replace("per_second = 12", "per_second = 100000"), "simulation_stopped"),
    ],
)  # fmt: skip
def test_what_is_no_small_scenario_is_refused(
    served: Served, scenario: str, code: str
) -> None:
    answer = served.ask("POST", "/v1/simulations", {"scenario": scenario})
    assert answer.code == code, answer


def test_one_simulation_runs_at_a_time(served: Served) -> None:
    large = SCENARIO.replace("60s", "20m")

    def run(_: int) -> str:
        host, port = served.place
        connection = HTTPConnection(host, port, timeout=PATIENCE_S)
        body = json.dumps({"scenario": large})
        headers = {"content-type": "application/json"}
        connection.request("POST", "/v1/simulations", body, headers)
        told = json.loads(connection.getresponse().read())
        connection.close()
        return str(told.get("code", ""))

    with ThreadPoolExecutor(3) as many:
        codes = sorted(many.map(run, range(3)))
    assert codes == ["", "simulation_busy", "simulation_busy"]


def test_a_ring_keeps_the_newest_steps() -> None:
    ring = Ring(10, 3)
    for at_ms in range(0, 60, 5):
        ring.add(at_ms, (2, 1), (at_ms, 7))
    assert ring.points() == [(30, 4, 2, 35, 7), (40, 4, 2, 45, 7), (50, 4, 2, 55, 7)]
    assert ring.since(40) == (8, 4)


def test_a_promise_is_broken_from_its_first_late_job_until_it_is_calm() -> None:
    desk = MeteredDesk()
    trends = Trends()

    def look() -> int | None:
        trends.take(desk.measures(), 1)
        return trends.lanes["q", SLO_MS].broken_since_ms

    desk.put(2)
    assert look() is None
    desk.later(SLO_MS + 1)
    since_ms = look()
    assert since_ms == desk.now_ms
    jobs = desk.lease(2)
    desk.later(1_000)
    assert look() == since_ms
    desk.ack(*jobs)
    desk.later(CALM_MS)
    assert look() == since_ms
    desk.later(2_000)
    assert look() is None
    started, in_time = trends.lanes["q", SLO_MS].recent(desk.now_ms)
    assert (started, in_time) == (2, 0)


def test_counters_that_begin_anew_count_nothing_twice() -> None:
    desk = MeteredDesk()
    trends = Trends()
    desk.put(3)
    trends.take(desk.measures(), 1)
    desk.ack(*desk.lease(2))
    desk.later(1_000)
    trends.take(desk.measures(), 1)
    desk.open()
    desk.later(1_000)
    trends.take(desk.measures(), 1)
    assert trends.lanes["q", SLO_MS].recent(desk.now_ms) == (2, 2)


def test_lanes_in_use_take_the_place_of_idle_ones() -> None:
    desk = MeteredDesk()
    trends = Trends()
    desk.put(1)
    told = desk.measures()
    (lane,) = told.lanes

    many = [replace(lane, queue=f"q{n}") for n in range(LANES_MAX + 5)]
    trends.take(replace(told, lanes=tuple(many)), 1)
    assert len(trends.lanes) == LANES_MAX
    later = replace(told, at_ms=told.at_ms + 1_000, lanes=tuple(many[-5:]))
    trends.take(later, 1)
    assert len(trends.lanes) == LANES_MAX
    assert all((one.queue, one.slo_ms) in trends.lanes for one in many[-5:])
