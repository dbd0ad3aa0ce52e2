"""The offline check: quiet about whatever an owner wrote, and loud about the rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import headway
from headway.core.results import Outcome
from headway.core.states import JobState
from headway.runtime.forms import Body, Change, Chapter, Counts
from headway.runtime.records import encode
from headway.runtime.verify import Verification, problems
from headway.store.memory import MemoryDisk
from headway.store.port import DEAD, HELD, SCHEDULED, Batch, Fact
from headway.store.sqlite.store import SqliteStore
from tests.core.test_partition_properties import CROWDED, WEIGHTS, story
from tests.runtime.written import WrittenFuzz

READY, LATER, HELD_1, HELD_2, WAITING, BURIED, DONE = range(1, 8)
"""The jobs of the sound file, by what has become of them."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound store, with jobs in every state."""
    path = tmp_path / "jobs.db"
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail", attempts_max=3))
        queue.enqueue("mail", b"ready", priority=200)
        queue.enqueue("mail", b"later", delay="1h")
        for number in range(5):
            key = f"key {number}"
            queue.enqueue("mail", b"%d" % number, idempotency_key=key, result="1h")
        held = {job.seq: job.token for job in queue.lease(most=5, lease="1h")}
        queue.wait(held[WAITING], "reply", "1h")
        queue.nack(held[BURIED], "hopeless", is_bury=True)
        queue.ack(held[DONE])
        assert queue.counts("mail").ready == 1
    return path


def pour(disk: MemoryDisk, path: Path) -> None:
    """Writes what is on a disk in memory into a file."""
    store = SqliteStore(path)
    for _ in range(disk.epoch):
        epoch = store.take_over()
    facts: list[Fact] = [(*name, value) for name, value in disk.facts.items()]
    keys = list(disk.keys.values())
    store.commit(Batch(list(disk.jobs.values()), [], [], facts, keys), epoch)
    for segment in disk.history:
        store.commit(Batch([], [], [], [], [], segment), epoch)
    store.close()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("verbs", [WEIGHTS, CROWDED], ids=["wide", "crowded"])
def test_no_story_of_an_owner_is_called_damage(
    tmp_path: Path, seed: int, verbs: dict[str, int]
) -> None:
    """Invariants 4, 7, 8, 16, 18."""
    fuzz = WrittenFuzz()
    fuzz.play_with_restarts(story(seed, 120, verbs), 1 + seed % 7)
    fuzz.send()
    pour(fuzz.disk, tmp_path / "jobs.db")
    assert problems(tmp_path / "jobs.db") == []


def test_a_sound_store_is_counted_and_left_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    told: list[tuple[str, int, int]] = []
    verification = Verification(path, progress=lambda *words: told.append(words))
    assert list(verification.problems()) == []
    assert (verification.queues, verification.jobs) == (1, 6)
    assert verification.events == 16
    assert told[-1] == ("jobs", 6, 6)
    assert path.read_bytes() == before


def test_a_store_that_works_can_be_checked(path: Path) -> None:
    with headway.open(path) as queue:
        queue.enqueue("mail", b"new")
        assert problems(path) == []


def test_a_new_store_has_nothing_wrong_with_it(tmp_path: Path) -> None:
    headway.open(tmp_path / "new.db").close()
    assert problems(tmp_path / "new.db") == []


CHANGED = """SELECT coalesce(
    (SELECT change FROM held WHERE seq = ?1), (SELECT change FROM jobs WHERE seq = ?1))"""


def change(path: Path, seq: int, **fields: Any) -> None:
    """Writes down something else of what has become of a job."""
    connection = apsw.Connection(str(path))
    blob = connection.execute(CHANGED, (seq,)).get
    changed = encode(
        msgspec.structs.replace(msgspec.msgpack.decode(blob, type=Change), **fields)
    )
    for table in ("held", "jobs"):
        execute(path, f"UPDATE {table} SET change = ? WHERE seq = ?", changed, seq)


def body(path: Path, seq: int, *, queue: str = "", slo_ms: int = 0) -> None:
    """Writes down something else of what a job was enqueued as."""
    connection = apsw.Connection(str(path))
    blob = connection.execute("SELECT body FROM jobs WHERE seq = ?", (seq,)).get
    spec, its_queue, its_slo_ms, *others = msgspec.msgpack.decode(blob, type=Body)
    altered = (spec, queue or its_queue, slo_ms or its_slo_ms, *others)
    execute(path, "UPDATE jobs SET body = ? WHERE seq = ?", encode(altered), seq)


def chapter(path: Path, act: Callable[[Chapter], object]) -> None:
    """Alters the newest chapter of history."""
    connection = apsw.Connection(str(path))
    newest = "SELECT first, blob FROM history ORDER BY first DESC LIMIT 1"
    ((first, blob),) = list(connection.execute(newest))
    altered = msgspec.msgpack.decode(blob, type=Chapter)
    act(altered)
    execute(path, "UPDATE history SET blob = ? WHERE first = ?", encode(altered), first)


def execute(path: Path, statement: str, *values: Any) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement, values)
    connection.close()


def copy(path: Path, seq: int, to: int) -> None:
    """The same job once more, under another number."""
    statement = "INSERT INTO jobs SELECT ?, lane, turn, first, second, change, body"
    execute(path, f"{statement} FROM jobs WHERE seq = ?", to, seq)


def token_of(path: Path, seq: int) -> int:
    blob = apsw.Connection(str(path)).execute(CHANGED, (seq,)).get
    return msgspec.msgpack.decode(blob, type=Change).token


def move(lane: int, seq: int) -> Callable[[Path], None]:
    """The job stands elsewhere, and nothing else of it is different."""

    def harm(path: Path) -> None:
        if seq != READY:
            change(path, seq)  # as its row would tell of it there
        execute(path, "UPDATE jobs SET lane = ? WHERE seq = ?", lane, seq)
        execute(path, "DELETE FROM held WHERE seq = ?", seq)

    return harm


def sql(statement: str, *values: Any) -> Callable[[Path], None]:
    return lambda path: execute(path, statement, *values)


def drop_event(kept: Chapter) -> None:
    kept.events.pop()


def say_more(kept: Chapter) -> None:
    kept.counts["mail"] = Counts(7, 1, 2, 1, 1, dict(kept.counts["mail"].lanes))


def say_more_of_a_lane(kept: Chapter) -> None:
    kept.counts["mail"].lanes[1] += 2


def forget_jobs(kept: Chapter) -> None:
    kept.last_seq = 3


Damage = tuple[Callable[[Path], None], str]
STATE = list(JobState).index


def left(
    seq: int,
    queue: str = "mail",
    state: JobState = JobState.DONE,
    until_ms: int = 2**52,
) -> Callable[[Path], None]:
    """Another result than the job's own."""
    blob = encode(Outcome(state, queue, 9, b"1"))
    return sql("REPLACE INTO results VALUES(?, ?, ?)", seq, until_ms, blob)


DAMAGES: dict[str, Damage] = {
    "body": (sql("UPDATE jobs SET body = x'00' WHERE seq = 1"), "job 1 can't be read"),
    "change": (sql("UPDATE jobs SET change = x'c1' WHERE seq = 3"), "job 3 can't be"),
    "state": (lambda path: change(path, HELD_1, state=99), "job 3 can't be read"),
    "ready, but held": (move(HELD, READY), "job 1: it is ready, but in lane -1"),
    "leased, but ready": (move(1, HELD_1), "job 3: it is leased, but in lane 1"),
    "ready, but dead": (move(DEAD, READY), "job 1: it is ready, but in lane -3"),
    "waiting, but due": (move(SCHEDULED, WAITING), "job 5: it is waiting, but in"),
    "lane unknown": (move(9, READY), "lane 9, which nothing is known of"),
    "lane of others": (
        lambda path: body(path, READY, slo_ms=1_234),
        "job 1: it is in lane 1, which is of ('mail',",
    ),
    "key": (sql("UPDATE jobs SET first = 7 WHERE seq = 1"), "job 1: it stands at (7,"),
    "time": (sql("UPDATE jobs SET first = 7 WHERE seq = 2"), "but stands at 7"),
    "no token": (
        lambda path: change(path, HELD_1, token=0),
        "job 3: it is leased, but",
    ),
    "a token too many": (
        lambda path: change(path, WAITING, token=5),
        "job 5: it is waiting, but has token 5",
    ),
    "token twice": (
        lambda path: change(path, HELD_2, token=token_of(path, HELD_1)),
        "is that of job 3, too",
    ),
    "token to come": (
        lambda path: change(path, HELD_1, token=9 << 32),
        "is of an epoch that is yet to come",
    ),
    "attempts": (lambda path: change(path, HELD_1, attempt=4), "at attempt 4 of 3"),
    "no attempt": (lambda path: change(path, HELD_1, attempt=0), "never delivered"),
    "queue": (
        lambda path: body(path, LATER, queue="none"),
        "queue 'none' is not known",
    ),
    "dead without error": (
        lambda path: change(path, BURIED, errors=()),
        "job 6: it is dead, but keeps no error",
    ),
    "dead letter elsewhere": (
        sql("UPDATE jobs SET turn = x'41' WHERE seq = 6"),
        "job 6: it is a dead letter of b'A'",
    ),
    "lost": (sql("DELETE FROM jobs WHERE seq = 1"), "job 1 is ready by its history"),
    "not lost": (lambda path: copy(path, READY, DONE), "by its history it is done"),
    "unexpected": (lambda path: copy(path, READY, 50), "history does not know it"),
    "number": (lambda path: copy(path, READY, 50), "history ends with job 7"),
    "another state": (
        lambda path: change(path, HELD_1, state=STATE(JobState.WAITING), token=0),
        "job 3 is waiting; by its history it is leased",
    ),
    "counts": (lambda path: chapter(path, say_more), "1 jobs are ready, 7 counted"),
    "lane counts": (
        lambda path: chapter(path, say_more_of_a_lane),
        "lane 1 of 'mail': 1 jobs, 3 counted",
    ),
    "lanes together": (
        lambda path: chapter(path, say_more),
        "its lanes have not the 7 ready jobs",
    ),
    "chapter": (
        sql("UPDATE history SET blob = x'00' WHERE first = 1"),
        "history 1 can't",
    ),
    "events": (lambda path: chapter(path, drop_event), "has 0 events, not 1"),
    "numbers": (lambda path: chapter(path, forget_jobs), "the last job was 7 before"),
    "event twice": (
        lambda path: chapter(path, lambda kept: kept.events.append(kept.events[0])),
        "job 7: ack of a done job",
    ),
    "fact": (sql("UPDATE facts SET value = x'00' WHERE kind = 'queue'"), "fact queue"),
    "fact of nobody": (
        sql("INSERT INTO facts VALUES('tenant', ?, x'80')", encode(("none", "x"))),
        "its queue 'none' is not known",
    ),
    "fact unknown": (sql("INSERT INTO facts VALUES('?', x'00', x'00')"), "kind '?'"),
    "lane fact": (sql("DELETE FROM facts WHERE kind = 'lane'"), "nothing is known of"),
    "idempotency key": (sql("UPDATE keys SET seq = 99 WHERE seq = 3"), "job 99, which"),
    "fingerprint": (sql("UPDATE keys SET fingerprint = x'00'"), "has no fingerprint"),
    "key of nobody": (sql("UPDATE keys SET queue = 'x'"), "its queue 'x' is not known"),
    "result": (sql("UPDATE results SET blob = x'00'"), "result 7 can't be read"),
    "result of nobody": (left(7, queue="x"), "its queue 'x' is not known"),
    "result of no job": (left(99), "result 99 is of a job that never was"),
    "result too early": (left(7, state=JobState.DEAD), "of a job that is dead"),
    "result that was over": (left(7, until_ms=5), "was over before its job was"),
    "other result": (left(7, state=JobState.CANCELLED), "by history it is done"),
    "result of a ready job": (left(1), "job 1 has left a result, and is"),
    "epoch": (sql("UPDATE meta SET value = 0"), "epoch that is yet to come"),
    "held and gone": (sql("INSERT INTO held VALUES(50, x'80')"), "held and not there"),
    "store": (sql("UPDATE jobs SET lane = -4 WHERE seq = 1"), "lane -4"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_named(path: Path, damage: str) -> None:
    harm, said = DAMAGES[damage]
    harm(path)
    found = problems(path)
    assert any(said in problem for problem in found), found


def test_a_garbled_page_is_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 * 3 + 8 : 4096 * 4] = bytes(4096 - 8)
    path.write_bytes(content)
    assert problems(path) != []
