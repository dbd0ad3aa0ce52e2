"""`headway backup`, as a user calls it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headway
from headway.cli.main import headway as command


def call(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db"
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
        queue.enqueue_many("mail", [headway.spec(b"x")] * 40)
    return path


def test_a_backup_is_a_store_with_all_that_was_there(path: Path) -> None:
    copy = path.with_name("copy.db")
    done = call("backup", path, copy)
    assert done.exit_code == 0, done.output
    assert f"{copy}: {copy.stat().st_size:,} bytes" in done.output
    assert done.stderr == ""
    assert call("verify", copy).exit_code == 0
    with headway.open(copy) as queue:
        assert queue.counts("mail").ready == 40


def test_a_store_at_work_is_backed_up_and_goes_on(path: Path) -> None:
    copy = path.with_name("copy.db")
    with headway.open(path) as queue:
        (job,) = queue.lease(lease="1h")
        assert call("backup", path, copy, "--quiet").exit_code == 0
        assert queue.ack(job.token) == []
    with headway.open(copy) as queue:
        assert queue.counts("mail").leased == 1


def test_what_is_there_is_never_overwritten(path: Path) -> None:
    copy = path.with_name("copy.db")
    copy.write_text("precious")
    done = call("backup", path, copy)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "exists" in done.stderr
    assert copy.read_text() == "precious"


def test_what_cannot_be_copied_is_refused(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    missing = call("backup", tmp_path / "none.db", copy)
    assert missing.exit_code == 2
    assert "does not exist" in missing.stderr
    nowhere = call("backup", path, tmp_path / "none" / "copy.db")
    assert nowhere.exit_code == 2
    assert "no such folder" in nowhere.stderr
    text = tmp_path / "letter.txt"
    text.write_text("Dear all, " * 500)
    assert call("backup", text, copy).exit_code == 2
    assert not copy.exists()
    assert list(tmp_path.glob(".*")) == []
