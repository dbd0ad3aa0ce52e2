"""Trends go on over a restart; a file that is damaged costs no more than themselves."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from headway.server.trends import LANES_MAX, LONG, SHORT, Ring, Trends
from headway.server.trends_file import CONTENT_MAX, FILE, HEAD, TrendsFile, kept
from tests.runtime.metered import SLO_MS, MeteredDesk
from tests.server.process import PATIENCE_S, Serve, Served

WRITER = """
import sys
from pathlib import Path
from headway.server.trends_file import TrendsFile, kept
from tests.runtime.metered import MeteredDesk
from headway.server.trends import Trends

desk, trends = MeteredDesk(), Trends()
file = TrendsFile(Path(sys.argv[1]), None)
while True:
    desk.put(1)
    desk.later(10_000)
    trends.take(desk.measures(), 1)
    file.write(kept(trends, 1))
    print(desk.now_ms, flush=True)
"""


class Heard:
    def __init__(self) -> None:
        self.events: list[str] = []

    def warned(self, event: str, **fields: object) -> None:
        assert fields["why"]
        self.events.append(event)


def watched(looks: int) -> tuple[Trends, int]:
    """Trends of so many looks, ten seconds apart, and the time of the last."""
    desk, trends = MeteredDesk(), Trends()
    desk.put(3)
    for _ in range(looks):
        desk.later(10_000)
        trends.take(desk.measures(), 2)
    return trends, desk.now_ms


def points(served: Served, span: str = "30m") -> list[list[int]]:
    """Of the queue mail, as soon as it has some."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        served.ask("GET", "/v1/live")
        found = served.ask("GET", f"/v1/trends?queue=mail&span={span}").json["lanes"]
        if found:
            told: list[list[int]] = found[0]["points"]
            return told
    raise AssertionError("the lane is not watched")


def since(served: Served) -> int:
    return int(served.ask("GET", "/v1/trends").json["since_ms"])


def test_trends_go_on_after_a_stop_and_after_a_kill(serve: Serve) -> None:
    first = serve()
    first.ask("POST", "/v1/queues/mail/jobs", {"kind": "a"})
    begun = points(first)[0][0]
    since_ms = since(first)
    assert first.stop() == 0
    assert (first.data / FILE).stat().st_mode & 0o077 == 0
    second = serve()
    assert points(second)[0][0] == begun
    second.kill()
    third = serve()
    assert points(third)[0][0] == begun
    assert points(third, "24h")[0][4] == 1
    assert since(third) == since_ms
    assert third.stop() == 0
    assert not (first.data / f"{FILE}.new").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[: len(HEAD) + 2],
        lambda content: content[:-9] + bytes([content[-9] ^ 4]) + content[-8:],
        lambda content: b"",
        lambda content: content.replace(b"trends 1 ", b"trends 9 "),
        lambda content: os.urandom(CONTENT_MAX + 2),
    ],
)
def test_a_damaged_file_is_told_and_begins_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    heard = Heard()
    file = TrendsFile(tmp_path, heard)
    trends, at_ms = watched(20)
    file.write(kept(trends, 1))
    assert file.read(at_ms)[0].lanes
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(damage(content))
    found, since_ms = file.read(at_ms)
    assert (found.lanes, found.slots_long.points(), since_ms) == ({}, [], 0)
    assert heard.events == ["trends not read"]


def test_a_server_with_a_damaged_file_says_so_and_serves(serve: Serve) -> None:
    first = serve()
    first.ask("POST", "/v1/queues/mail/jobs", {"kind": "a"})
    points(first)
    first.stop()
    (first.data / FILE).write_bytes(HEAD + b"nothing of ours")
    second = serve()
    assert len(points(second)) >= 1
    told = [one for one in second.events() if one["event"] == "trends not read"]
    assert [one["why"] for one in told] == ["it is damaged: its checksum does not fit"]
    second.stop()
    third = serve()
    points(third)
    assert "trends not read" not in third.log()


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    for lines in (1, 2, 5, 9, 14):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            told = [int(writer.stdout.readline()) for _ in range(lines)]
            writer.send_signal(signal.SIGKILL)
            told += [int(line) for line in writer.stdout if line.endswith(b"\n")]
        heard = Heard()
        # The last line may be missing for a file that was written.
        found, _ = TrendsFile(tmp_path, heard).read(told[-1] + 10_000)
        assert heard.events == []
        assert found.lanes["q", SLO_MS].short.points()[-1][0] >= told[-1] - 10_000


def test_what_can_not_be_written_is_told_once(tmp_path: Path) -> None:
    heard = Heard()
    (tmp_path / FILE).mkdir()
    file = TrendsFile(tmp_path, heard)
    trends, at_ms = watched(1)
    for _ in range(3):
        file.write(kept(trends, 1))
    assert heard.events == ["trends not written"]
    assert file.read(at_ms)[0].lanes == {}
    (tmp_path / FILE).rmdir()
    file.write(kept(trends, 1))
    assert file.read(at_ms)[0].lanes


def test_only_what_still_counts_is_taken_up(tmp_path: Path) -> None:
    file = TrendsFile(tmp_path, Heard())
    trends, at_ms = watched(200)
    file.write(kept(trends, at_ms - 2_000_000))
    found, since_ms = file.read(at_ms)
    lane = found.lanes["q", SLO_MS]
    assert lane.short.points() == trends.lanes["q", SLO_MS].short.points()
    assert since_ms >= at_ms - 2_000_000
    # Half an hour later nothing of the short ring is left, a day later nothing at all.
    later, _ = file.read(at_ms + SHORT[0] * SHORT[1])
    assert later.lanes["q", SLO_MS].short.points() == []
    assert later.lanes["q", SLO_MS].long.points() == lane.long.points()
    assert file.read(at_ms + 2 * LONG[0] * LONG[1])[0].lanes == {}
    # A clock that went back has no steps of the future.
    back, _ = file.read(at_ms - 100_000)
    assert back.lanes["q", SLO_MS].short.points()[-1][0] <= at_ms - 100_000
    assert back.lanes["q", SLO_MS].used_ms <= at_ms - 100_000


def test_a_broken_promise_is_broken_since_before_the_restart(tmp_path: Path) -> None:
    desk, trends = MeteredDesk(), Trends()
    desk.put(1)
    desk.later(SLO_MS + 1)
    trends.take(desk.measures(), 1)
    broken_ms = desk.now_ms
    file = TrendsFile(tmp_path, Heard())
    file.write(kept(trends, 1))
    desk.later(5_000)
    found, _ = file.read(desk.now_ms)
    found.take(desk.measures(), 1)
    assert found.lanes["q", SLO_MS].broken_since_ms == broken_ms


def test_the_file_is_small_however_many_lanes_there_are(tmp_path: Path) -> None:
    desk, trends = MeteredDesk(), Trends()
    desk.put(1)
    told = desk.measures()
    (lane,) = told.lanes
    many = tuple(replace(lane, queue=f"q{n}") for n in range(LANES_MAX + 50))
    for step in range(LONG[1] + 10):
        at_ms = told.at_ms + step * LONG[0]
        trends.take(replace(told, at_ms=at_ms, lanes=many), 1)
    file = TrendsFile(tmp_path, Heard())
    file.write(kept(trends, 1))
    assert (tmp_path / FILE).stat().st_size < CONTENT_MAX // 2
    found, _ = file.read(at_ms)
    assert len(found.lanes) == LANES_MAX
    assert len(found.lanes["q0", SLO_MS].long.points()) == LONG[1]


def test_a_ring_with_a_gap_is_no_longer_than_its_time() -> None:
    ring = Ring(10, 3)
    for at_ms in (0, 10, 20, 45):
        ring.add(at_ms, (1, 1), (0, 0))
    assert [begin for begin, *_ in ring.points()] == [20, 40]
