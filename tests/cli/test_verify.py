"""`headway verify`, as a user calls it."""

import json
import os
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result

import headway
from headway.cli.main import headway as command


def call(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["verify", *map(str, arguments)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db"
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
        # By turns, or they would be one row.
        specs = [headway.spec(b"x", tenant=f"t{number % 2}") for number in range(40)]
        queue.enqueue_many("mail", specs)
    return path


def damage(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def test_a_sound_store_is_told_so(path: Path) -> None:
    done = call(path)
    assert done.exit_code == 0, done.output
    assert "1 queue, 40 jobs and 41 events checked" in done.output
    assert "all is well" in done.output
    assert done.stderr == ""


def test_what_is_broken_is_told_line_by_line_and_not_without_end(path: Path) -> None:
    damage(path, "DELETE FROM jobs WHERE seq > 3")
    done = call(path, "--quiet")
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert "job 4 is ready by its history, but gone" in lines
    assert len(lines) == 22
    assert lines[-1] == "and 19 more"


def test_jobs_that_were_lost_together_are_told_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
        queue.enqueue_many("mail", [headway.spec(b"x")] * 40)
    assert call(path).exit_code == 0
    damage(path, "DELETE FROM bundles")
    done = call(path, "--quiet")
    assert done.exit_code == 1
    assert "job 1 is ready by its history, but gone" in done.output


def test_json_is_all_there_is_on_stdout(path: Path) -> None:
    sound = json.loads(call(path, "--json").stdout)
    assert sound["is_clean"] is True
    assert (sound["jobs"], sound["queues"], sound["problems"]) == (40, 1, [])
    damage(path, "UPDATE jobs SET lane = -1 WHERE seq = 7")
    done = call(path, "--json")
    assert done.exit_code == 1
    broken = json.loads(done.stdout)
    assert broken["is_clean"] is False
    assert broken["problems"][0] == "job 7: it is ready, but in lane -1"
    assert broken["problems_count"] == len(broken["problems"])


def test_a_file_that_is_garbled_is_broken_and_not_misused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 + 8 : 4096 * 3] = bytes(4096 * 2 - 8)
    path.write_bytes(content)
    done = call(path)
    assert done.exit_code == 1, done.output
    assert path.read_bytes() == content


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    missing = call(tmp_path / "none.db")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "no such file" in missing.stderr
    text = tmp_path / "letter.txt"
    text.write_text("Dear all, " * 500)
    refused = call(text)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "is not a SQLite database" in refused.stderr
    other = tmp_path / "other.db"
    damage(other, "CREATE TABLE theirs(x)")
    assert call(other).exit_code == 2
    newer = tmp_path / "newer.db"
    headway.open(newer).close()
    damage(newer, "PRAGMA user_version = 99")
    assert "this version knows" in call(newer).stderr


def test_a_store_at_work_is_checked_only_if_that_is_wanted(path: Path) -> None:
    with headway.open(path) as queue:
        queue.enqueue("mail", b"one more")
        refused = call(path)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"in use by process {os.getpid()}" in refused.stderr
        assert "--live" in refused.stderr
        done = call(path, "--live")
        assert done.exit_code == 0, done.output
        assert "41 jobs" in done.output
        assert queue.enqueue("mail") == 42
    assert call(path).exit_code == 0
