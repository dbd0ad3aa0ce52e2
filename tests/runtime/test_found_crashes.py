"""What killed processes have shown, each as the smallest story that shows it."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

import headway
from headway.store.errors import Corrupt, StoreFailed
from tests.store.simulated import SimulatedPlace

ENQUEUE_AND_DIE = """
import os, signal, sys
import headway
queue = headway.open(sys.argv[1])
queue.configure(headway.QueueConfig(name="mail"))
queue.enqueue_many("mail", [headway.spec(bytes(900))] * int(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_long_log_left_by_a_killed_process_does_not_stop_the_next_one(
    tmp_path: Path,
) -> None:
    """SQLite writes at most 128 KiB in one call and calls the rest a full disk."""
    path = tmp_path / "jobs.db"
    command = [sys.executable, "-c", ENQUEUE_AND_DIE, str(path), "1500"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert path.with_name("jobs.db-wal").stat().st_size > 1024 * 1024
    with headway.open(path) as queue:
        assert queue.counts("mail").ready == 1500


def test_a_file_whose_maker_was_killed_is_not_called_damaged() -> None:
    """It has no tables yet, or a first page that the next owner takes back."""
    stopped = 0
    for operation in range(1, 70):
        place = SimulatedPlace()
        place.disk.stops_at = operation
        with suppress(StoreFailed):
            place.open().take_over()
        stopped += place.disk.life > 0
        place.disk.crash()
        assert place.problems() == [], f"stopped at operation {operation}"
        store = place.open()
        store.take_over()
        store.close()
        assert place.problems() == []
        place.close()
    assert 20 < stopped < 69


def test_a_file_that_cannot_be_read_is_let_go(tmp_path: Path) -> None:
    """It says what is wrong, and who mends the file may open it in the same process."""
    path = tmp_path / "jobs.db"
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
    connection = apsw.Connection(str(path))
    sound = connection.execute("SELECT value FROM facts WHERE kind = 'queue'").get
    connection.execute("UPDATE facts SET value = x'00' WHERE kind = 'queue'")
    with pytest.raises(Corrupt, match="can't be read"):
        headway.open(path)
    connection.execute("UPDATE facts SET value = ? WHERE kind = 'queue'", (sound,))
    connection.close()
    with headway.open(path) as queue:
        assert queue.counts("mail").ready == 0
