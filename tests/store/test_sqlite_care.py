"""Backups while the owner writes, and what an offline check finds."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from headway.store.errors import BackupRefused
from headway.store.sqlite import backup
from headway.store.sqlite.backup import back_up
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.store.rows import Owner, batch, job, segment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "partition.db"


@pytest.fixture
def owner(path: Path) -> Iterator[Owner]:
    owner = Owner(SqliteStore(path))
    for number in range(1, 21):
        bodies = [bytes([number]) * size for size in (10, 900, 5000)]
        rows = [job(number * 10 + at, body=body) for at, body in enumerate(bodies)]
        owner.commit(batch(puts=rows, segment=segment(number)))
    yield owner
    owner.store.close()


def test_a_backup_is_the_state_of_one_moment_while_commits_go_on(
    path: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "STEP_PAGES", 3)
    target = path.with_name("copy.db")
    seen: list[int] = []

    def write_meanwhile(remaining: int, total: int) -> None:
        seen.append(remaining)
        number = 20 + len(seen)
        owner.commit(batch(puts=[job(number * 10)], segment=segment(number)))

    back_up(path, target, write_meanwhile)
    assert len(seen) > 5
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 0
    assert problems(target) == []
    copy = Owner(SqliteStore(target))
    assert copy.store.last_segment() == segment(20)
    assert len(copy.store.jobs(list(range(10_000)))) == 60
    copy.commit(batch(puts=[job(1)], segment=segment(21)))
    copy.store.close()
    assert len(owner.store.jobs(list(range(10_000)))) == 60 + len(seen)


def test_a_backup_never_overwrites(path: Path, owner: Owner) -> None:
    target = path.with_name("copy.db")
    target.write_text("precious")
    with pytest.raises(BackupRefused, match="exists"):
        back_up(path, target)
    assert target.read_text() == "precious"


def test_a_backup_does_not_overwrite_what_came_meanwhile(
    path: Path, owner: Owner
) -> None:
    target = path.with_name("copy.db")
    with pytest.raises(BackupRefused, match="exists"):
        back_up(path, target, lambda _left, _all: target.write_text("precious"))
    assert target.read_text() == "precious"
    assert list(path.parent.glob("*.partial")) == []


def test_a_backup_that_breaks_off_leaves_nothing(path: Path, owner: Owner) -> None:
    target = path.with_name("copy.db")
    before = sorted(path.parent.iterdir())
    with pytest.raises(ZeroDivisionError):
        back_up(path, target, lambda _left, _all: 1 // 0)
    assert sorted(path.parent.iterdir()) == before


def test_nothing_cannot_be_backed_up(tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="does not exist"):
        back_up(tmp_path / "none.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_sound_store_has_no_problems_and_is_not_changed(
    path: Path, owner: Owner
) -> None:
    assert problems(path) == []
    log = path.with_name("partition.db-wal")
    before = path.read_bytes(), log.read_bytes()
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    shutil.copy(log, path.with_name("copy.db-wal"))
    assert problems(copy) == []
    assert (copy.read_bytes(), path.with_name("copy.db-wal").read_bytes()) == before


def test_verify_says_that_a_file_is_missing(path: Path) -> None:
    assert "can't be opened" in problems(path)[0]
    assert not path.exists()


Damage = tuple[str, str]
DAMAGES: list[Damage] = [
    ("DELETE FROM history WHERE first = 7", "history: segment 6"),
    ("UPDATE history SET count = 3 WHERE first = 7", "history: segment 7"),
    ("UPDATE jobs SET lane = -4 WHERE seq = 12", "lane -4"),
    ("DELETE FROM bodies WHERE seq = 12", "job 12 has no body"),
    ("DELETE FROM jobs WHERE seq = 12", "body 12 belongs to no job"),
    ("DELETE FROM meta", "epoch: None"),
    ("DROP INDEX keys_by_time", "schema: keys_by_time"),
    ("CREATE TABLE theirs(x)", "schema: theirs"),
    ("DROP TABLE meta", "schema: meta"),
]


@pytest.mark.parametrize(("statement", "said"), DAMAGES)
def test_verify_finds_what_cannot_be(
    path: Path, owner: Owner, statement: str, said: str
) -> None:
    owner.store.close()
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()
    assert any(said in problem for problem in problems(path))


def garble_page(content: bytearray) -> None:
    content[4096 * 3 + 8 : 4096 * 4] = bytes(4096 - 8)


def cut_off(content: bytearray) -> None:
    del content[4096 * 6 :]


def spoil_header(content: bytearray) -> None:
    content[:16] = b"something else.."


@pytest.mark.parametrize("harm", [garble_page, cut_off, spoil_header])
def test_verify_finds_damage_of_the_disk(
    path: Path, owner: Owner, harm: Callable[[bytearray], None]
) -> None:
    owner.store.close()
    content = bytearray(path.read_bytes())
    harm(content)
    path.write_bytes(content)
    assert problems(path) != []
    assert path.read_bytes() == content
