"""What can be wrong with a lake or a server: a sentence that names it, nothing published."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from benchmarks.history import write
from headway.cli.main import headway
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Published
from headway.store.port import Batch
from headway.store.sqlite.store import SqliteStore
from tests.server.process import Served, make_token
from tests.spark.work import run, work

pytestmark = pytest.mark.xdist_group("spark")


def called(*arguments: str) -> Result:
    return CliRunner().invoke(headway, ["pipeline", *arguments])


def test_a_missing_lake_is_named(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    result = called("status", "--lake", nowhere)
    assert result.exit_code == 2
    assert nowhere in result.stderr


def test_a_server_that_is_not_there_is_named(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    result = called("run", "--lake", place, "--server", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "http://127.0.0.1:9" in result.stderr
    assert Lake(place).ledger.last().batch == 0


def test_a_wrong_token_is_told(spark: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    make_token(data, "reader", "read:*")
    served = Served(data)
    try:
        place = str(tmp_path / "lake")
        result = called(
            "run", "--lake", place, "--server", served.address, "--token", "hw_wrong"
        )
        assert result.exit_code == 2
        assert "unauthorized" in result.stderr
        assert Lake(place).ledger.last().batch == 0
    finally:
        served.stop()


def test_a_damaged_file_is_named(spark: Any, served: Served, tmp_path: Path) -> None:
    work(served)
    lake = run(spark, served, tmp_path / "lake")
    batch = lake.published().batch
    (damaged,) = lake["silver.open_leases"].files()
    path = Path(lake["silver.open_leases"].path) / damaged.path
    path.write_bytes(b"PAR1" + b"\0" * 100)
    # Spark would notice a checksum beside it, which other file systems do not have.
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    body = {"kind": "k"}
    assert served.ask("POST", "/v1/queues/mail/jobs", body).status == 201
    result = called("run", "--lake", str(tmp_path / "lake"), "--server", served.address)
    assert result.exit_code == 2
    assert path.name in result.stderr
    assert lake.ledger.last().batch == batch


def test_a_lake_from_the_future_is_refused(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    record = json.dumps({"batch": 1, "format": 99, "news": True})
    row = pa.table({"batch": [1], "at_ms": [0], "record": [record]})
    write_deltalake(str(place / "_published"), row)
    result = called("run", "--lake", str(place), "--server", served.address)
    assert result.exit_code == 2
    assert "newer version" in result.stderr


def test_a_column_from_the_future_is_refused(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    write_deltalake(str(place / "silver" / "jobs"), pa.table({"mood": ["good"]}))
    result = called("run", "--lake", str(place), "--server", served.address)
    assert result.exit_code == 2
    assert "mood" in result.stderr
    assert Lake(str(place)).ledger.last().batch == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", "--lake", "x", "--once", "--every", "1m"), "--every"),
        (("run", "--lake", "x", "--every", "5 parsecs"), "5 parsecs"),
        (("run", "--lake", "x", "--conf", "ui=false"), "spark.NAME"),
        (("rebuild", "--lake", "x", "--from", "yesterday"), "yesterday"),
        (("run",), "--lake"),
    ],
)
def test_bad_options_are_named(arguments: tuple[str, ...], named: str) -> None:
    result = called(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_history_that_was_dropped_is_a_gap(spark: Any, tmp_path: Path) -> None:
    """The lake has read up to 99; the server has dropped up to some later one."""
    path = tmp_path / "data" / "headway.db"
    write(path, 3_000)
    store = SqliteStore(path)
    epoch = store.take_over()
    store.commit(Batch([], [], [], [], [], history_before=1_500), epoch)
    store.close()
    lake = Lake(str(tmp_path / "lake"))
    lake.ledger.publish(Published(batch=1, vector={"p1": 100}))
    served = Served(tmp_path / "data")
    try:
        result = called("run", "--lake", lake.place.root, "--server", served.address)
    finally:
        served.stop()
    assert result.exit_code == 2
    assert "events 100 to " in result.stderr
    assert lake.ledger.last().batch == 1


def test_another_server_is_not_taken_for_the_one_before(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    lake = run(spark, served, tmp_path / "lake")
    for name, jobs in (("older", 1), ("other", 60)):
        other = Served(tmp_path / name)
        try:
            body = [{"kind": "k"}] * jobs
            assert other.ask("POST", "/v1/queues/mail/jobs", body).status == 201
            result = called("run", "--lake", lake.place.root, "--server", other.address)
        finally:
            other.stop()
        assert result.exit_code == 2
        assert "another server" in result.stderr
    assert lake.ledger.last().batch == 1
