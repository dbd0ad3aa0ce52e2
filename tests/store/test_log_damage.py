"""A log that lost a byte is not a log that ends there: P10."""

import shutil
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from headway.store.errors import Contradiction, Corrupt
from headway.store.sqlite.frames import FRAME_BYTES, HEADER_BYTES, is_header_sound
from headway.store.sqlite.options import MIB, SqliteOptions
from headway.store.sqlite.schema import MIGRATIONS
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.store.rows import Owner, batch, job, segment
from tests.store.simulated import SimulatedPlace, Work, stopped
from tests.store.test_power_cut import faults_of

COMMITS = 12
PAGE_FIELD, COMMIT_FIELD, SALT_FIELD, SUM_FIELD, DATA = 0, 4, 8, 16, 24


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a killed owner leaves: a file, and a log of some commits."""
    folder = tmp_path_factory.mktemp("image")
    path = folder / "jobs.db"
    owner = Owner(SqliteStore(path))
    for number in range(1, COMMITS + 1):
        owner.commit(batch(puts=[job(number)], segment=segment(number)))
    copy = folder / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(path.with_name("jobs.db-wal"), folder / "copy.db-wal")
    owner.store.close()
    return copy


def commits_of(log: bytes) -> list[int]:
    """Frames that end a commit; the first is 0."""
    frames = range((len(log) - HEADER_BYTES) // FRAME_BYTES)
    return [n for n in frames if any(frame(log, n)[COMMIT_FIELD:SALT_FIELD])]


def frame(log: bytes, number: int) -> bytes:
    begin = HEADER_BYTES + number * FRAME_BYTES
    return log[begin : begin + FRAME_BYTES]


def harmed(image: Path, folder: Path, offset: int, bit: int = 0) -> Path:
    """A copy with one bit of the log flipped."""
    path = folder / "jobs.db"
    shutil.copy(image, path)
    log = bytearray(image.with_name("copy.db-wal").read_bytes())
    log[offset] ^= 1 << bit
    path.with_name("jobs.db-wal").write_bytes(log)
    return path


def check_refused(path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    before = log.read_bytes()
    assert any(problem.startswith("log: ") for problem in problems(path))
    with pytest.raises(Corrupt, match="the log is damaged"):
        SqliteStore(path).take_over()
    assert log.read_bytes() == before


@pytest.mark.parametrize(
    "field", [PAGE_FIELD, COMMIT_FIELD, SALT_FIELD, SUM_FIELD, DATA]
)
@pytest.mark.parametrize("place", [0, 1, COMMITS // 2, COMMITS - 1])
def test_a_flipped_bit_with_commits_behind_it_is_found(
    image: Path, tmp_path: Path, field: int, place: int
) -> None:
    log = image.with_name("copy.db-wal").read_bytes()
    number = commits_of(log)[place]
    check_refused(harmed(image, tmp_path, HEADER_BYTES + number * FRAME_BYTES + field))


def test_any_flipped_bit_with_two_commits_behind_it_is_found(
    image: Path, tmp_path: Path
) -> None:
    chance = Random(7)
    log = image.with_name("copy.db-wal").read_bytes()
    end = HEADER_BYTES + (commits_of(log)[-3] + 1) * FRAME_BYTES
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        offset = chance.randrange(HEADER_BYTES, end)
        check_refused(harmed(image, folder, offset, chance.randrange(8)))


@pytest.mark.parametrize("offset", [0, 5, 10, 13, 25, 31])
def test_a_flipped_bit_in_the_header_of_the_log_is_found(
    image: Path, tmp_path: Path, offset: int
) -> None:
    """SQLite would take such a log for an empty one."""
    check_refused(harmed(image, tmp_path, offset, 3))


def test_the_last_commit_may_be_torn(image: Path, tmp_path: Path) -> None:
    """Damage there can't be told from a commit that was never acknowledged."""
    log = image.with_name("copy.db-wal").read_bytes()
    last = commits_of(log)[-1]
    path = harmed(image, tmp_path, HEADER_BYTES + last * FRAME_BYTES + DATA)
    assert problems(path) == []
    owner = Owner(SqliteStore(path))
    assert owner.store.last_segment() == segment(COMMITS - 1)
    owner.store.close()


def test_a_torn_commit_is_cut_off_before_the_log_is_used_again(
    image: Path, tmp_path: Path
) -> None:
    """Else, two torn commits of two owners would look like damage."""
    log = image.with_name("copy.db-wal").read_bytes()
    commits = commits_of(log)
    path = harmed(image, tmp_path, HEADER_BYTES + commits[-1] * FRAME_BYTES + DATA)
    store = SqliteStore(path)
    store.take_over()
    begun = path.with_name("jobs.db-wal").read_bytes()
    whole = HEADER_BYTES + (commits[-2] + 1) * FRAME_BYTES
    assert begun[:whole] == log[:whole]
    # The steps of the schema and two epochs; one commit was torn.
    assert len(commits_of(begun)) == COMMITS + len(MIGRATIONS) + 1
    store.close()


def test_a_sound_log_is_sound(image: Path) -> None:
    log = image.with_name("copy.db-wal").read_bytes()
    assert is_header_sound(log[:HEADER_BYTES])
    assert not is_header_sound(log[:20])
    assert problems(image) == []


@pytest.mark.parametrize("first", range(2_000, 2_100, 25))
def test_power_cuts_are_never_taken_for_damage(first: int) -> None:
    """300 cuts, in the middle of commits, checkpoints and openings."""
    for seed in range(first, first + 25):
        assert faults_of(seed) == [], seed


def test_kills_are_never_taken_for_damage() -> None:
    chance = Random(11)
    place, work = SimulatedPlace(11), Work(chance)
    for _ in range(100):
        place.disk.stops_at = place.disk.operations + chance.randrange(1, 200)
        stopped(work, place, 40)
        place.disk.crash()
        assert place.problems() == []
    store = place.open()
    store.take_over()
    place.close()


def test_what_was_rolled_back_is_never_taken_for_damage(tmp_path: Path) -> None:
    """Frames of a batch that outgrew the cache stay behind the end of the log."""
    path, copy = tmp_path / "jobs.db", tmp_path / "copy.db"
    options = SqliteOptions(cache_bytes=MIB)
    owner = Owner(SqliteStore(path, options))
    left = (1, 0, b"left")
    owner.commit(batch(puts=[job(1)], results=[left]))
    jobs = [job(seq, body=bytes(900)) for seq in range(2, 6_000)]
    with suppress(Contradiction):
        owner.commit(batch(puts=jobs, results=[left]))
    log = path.with_name("jobs.db-wal")
    assert log.stat().st_size > 2 * MIB
    for seq in range(2, 9):
        owner.put(job(seq))
    shutil.copy(path, copy)
    shutil.copy(log, tmp_path / "copy.db-wal")
    owner.store.close()
    assert problems(copy) == []
    again = Owner(SqliteStore(copy))
    assert len(again.store.jobs(list(range(10_000)))) == 8
    again.store.close()
