"""The tables of a cluster: who may hold what, however they come."""

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from headway.cli.main import headway
from headway.core.cluster import CLOSING
from headway.core.errors import BadValue, TooManyQueues
from headway.store.postgres import cluster
from headway.store.postgres.cluster import Me, Operator
from headway.store.postgres.migrations import migrate
from headway.store.postgres.steps import STEPS
from headway.store.postgres.store import PostgresStore
from tests.postgres import shared
from tests.server.process import PATIENCE_S


def me(name: str, life: str = "1", lease_ms: int = 600_000) -> Me:
    return Me(name=name, life=life, address="http://x", version="1", lease_ms=lease_ms)


@pytest.fixture
def address() -> Iterator[str]:
    with shared.database("tables") as made:
        yield made


@pytest.fixture
def tables(address: str) -> Iterator[Operator]:
    made = Operator(address)
    yield made
    made.close()


def execute(address: str, statement: Any) -> list[Any]:
    with psycopg.connect(address, autocommit=True) as connection:
        done = connection.execute(statement)
        return done.fetchall() if done.description else []


def expire(address: str, node: str) -> None:
    """As if its lease had passed: by the database's clock, which alone counts."""
    assert node.isalnum()
    execute(
        address,
        f"UPDATE headway.nodes SET until = clock_timestamp() WHERE name = '{node}'",
    )


def test_only_one_holds_a_partition_until_its_lease_is_over(
    address: str, tables: Operator
) -> None:
    one, two = me("one"), me("two")
    assert tables.beat(one, is_first=True)
    assert tables.beat(two, is_first=True)
    tables.add_partitions(["p1"])
    assert tables.claim(one, "p1") == 1
    assert tables.claim(two, "p1") is None
    expire(address, "one")
    assert tables.claim(two, "p1") == 2
    # Late: what it says is of no effect any more.
    tables.release(one, "p1", 1, "one")
    assert tables.beat(one, is_first=False)
    assert tables.look().view.holdings["p1"].node == "two"


def test_a_node_whose_lease_is_over_claims_nothing(
    address: str, tables: Operator
) -> None:
    tables.add_partitions(["p1"])
    tables.beat(me("one"), is_first=True)
    expire(address, "one")
    assert tables.claim(me("one"), "p1") is None
    assert tables.claim(me("never"), "p1") is None


def test_of_a_renewal_and_a_claim_at_once_only_one_has_its_way(
    address: str, tables: Operator
) -> None:
    """Whoever comes second sees what the first has done."""
    tables.add_partitions(["p1"])
    for name in ("one", "two"):
        tables.beat(me(name), is_first=True)
    tables.claim(me("one"), "p1")
    expire(address, "one")
    claims: list[int | None] = []
    with psycopg.connect(address) as renewing:
        renewing.execute(
            "SELECT headway.beat_1('one', '1', '', '', '{}', 600000, false, false)"
        )
        other = Operator(address)
        thread = threading.Thread(
            target=lambda: claims.append(other.claim(me("two"), "p1"))
        )
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not execute(address, waiting)[0][0]:
            pass
        assert not claims
    thread.join()
    other.close()
    assert claims == [None]
    assert tables.look().view.holdings["p1"].node == "one"


def test_a_name_has_one_process_at_a_time(address: str, tables: Operator) -> None:
    first, later = me("one", "1"), me("one", "2")
    assert tables.beat(first, is_first=True)
    assert not tables.beat(later, is_first=True)
    expire(address, "one")
    assert tables.beat(later, is_first=True)
    assert not tables.beat(first, is_first=False)


def test_a_queue_is_placed_once_and_seen_by_everybody(tables: Operator) -> None:
    tables.add_partitions(["p1", "p2", "p3"])
    before = tables.look().version
    assert tables.place("mail", ("p1",)) == ("p1",)
    assert tables.place("mail", ("p2",)) == ("p1",)
    first = tables.placement("mail")
    assert first is not None
    both = tables.replace("mail", replace(first, partitions=("p1", "p3")))
    assert both is not None
    assert tables.placement("mail") == both
    assert tables.look(before).placed == [("mail", ("p1", "p3"))]
    assert tables.look(before).marks == {}
    assert tables.replace("mail", first) is None
    for partitions in (("p1",), ("p3", "p1"), ("p1", "p3", "p9")):
        assert tables.replace("mail", replace(both, partitions=partitions)) is None
    assert tables.placement("bills") is None
    tables.set_state("p2", CLOSING)
    assert tables.place("bills", ("p2",)) is None


def test_a_queue_that_is_found_in_a_partition_is_there_from_now_on(
    tables: Operator,
) -> None:
    tables.add_partitions(["p1", "p2"])
    tables.place("mail", ("p1",))
    assert tables.found(["mail", "bills"], "p2") == 2
    assert tables.found(["mail", "bills"], "p2") == 0
    assert sorted(tables.look().placed) == [("bills", ("p2",)), ("mail", ("p1", "p2"))]


def test_there_is_an_end_to_queues_and_partitions(
    tables: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "QUEUES_MAX", 2)
    monkeypatch.setattr(cluster, "PARTITIONS_MAX", 2)
    tables.add_partitions(["p1"])
    for queue in ("a", "b"):
        assert tables.place(queue, ("p1",))
    assert tables.place("a", ("p1",))
    with pytest.raises(TooManyQueues, match="at most 2 queues"):
        tables.place("c", ("p1",))
    with pytest.raises(BadValue, match="at most 2 partitions"):
        tables.add_partitions(["p2", "p3"])


def test_a_partition_is_closed_only_when_nothing_is_in_it(
    address: str, tables: Operator
) -> None:
    tables.add_partitions(["p1", "p2", "p3"])
    with pytest.raises(BadValue, match="it is open"):
        tables.drop_partition("p2")
    tables.place("mail", ("p2",))
    for name in ("p2", "p3"):
        tables.set_state(name, CLOSING)
    with pytest.raises(BadValue, match="queue 'mail' is there"):
        tables.drop_partition("p2")
    store = PostgresStore(address, "p3")
    store.take_over()
    store.close()
    execute(
        address,
        """INSERT INTO headway.inbox(xact, partition, queue, jobs)
        SELECT 1, id, 'mail', '[]' FROM headway.partitions WHERE name = 'p3'""",
    )
    with pytest.raises(BadValue, match="it has jobs"):
        tables.drop_partition("p3")
    execute(address, "DELETE FROM headway.inbox")
    tables.drop_partition("p3")
    assert sorted(tables.look().view.holdings) == ["p1", "p2"]


def test_what_is_shared_is_said_once(tables: Operator) -> None:
    assert tables.shared("signing", b"one") == b"one"
    assert tables.shared("signing", b"two") == b"one"


def test_a_change_is_told_to_whoever_waits(address: str, tables: Operator) -> None:
    tables.look()
    quiet = os.eventfd(0)
    other = Operator(address)
    try:
        other.add_partitions(["p1"])
        assert tables.wait(quiet, PATIENCE_S)
    finally:
        other.close()
        os.close(quiet)


def test_a_database_of_before_the_cluster_is_brought_up_to_date() -> None:
    with shared.database("older", is_empty=True) as address:
        migrate(address, steps=STEPS[:1])
        store = PostgresStore(address, "p1")
        before, after = migrate(address, is_dry=True)
        assert (before.number, after.number) == (1, len(STEPS))
        migrate(address)
        with shared.database("fresh") as fresh:
            assert shape(address) == shape(fresh)
        store.take_over()
        store.close()


def shape(address: str) -> list[Any]:
    """Columns, functions and indexes of a database."""
    found: list[Any] = []
    for statement in (
        """SELECT table_name, column_name, data_type, column_default, is_nullable
        FROM information_schema.columns WHERE table_schema = 'headway' ORDER BY 1, 2""",
        """SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
        JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'headway' ORDER BY 1""",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'headway' ORDER BY 1",
        "SELECT number, least FROM headway.steps ORDER BY 1",
    ):
        found += execute(address, statement)
    return found


def told(address: str, *words: str, status: int = 0) -> str:
    done = CliRunner().invoke(headway, [*words, "--store", address])
    assert done.exit_code == status, done.output
    return done.output


def test_operators_see_and_change_a_cluster(address: str, tables: Operator) -> None:
    tables.beat(me("one"), is_first=True)
    assert "2 partitions added" in told(address, "partitions", "add", "p1", "p2")
    tables.claim(me("one"), "p1")
    tables.place("mail", ("p1",))
    (node,) = json.loads(told(address, "nodes", "--json"))
    assert (node["name"], node["state"], node["partitions"]) == (
        "one",
        "alive",
        ["p1"],
    )
    first, second = json.loads(told(address, "partitions", "--json"))
    assert (first["name"], first["node"], first["queues"]) == ("p1", "one", 1)
    assert (second["name"], second["node"], second["queues"]) == ("p2", None, 0)
    told(address, "nodes", "drain", "one")
    assert "draining" in told(address, "nodes")
    told(address, "nodes", "undrain", "one")
    told(address, "partitions", "move", "p2", "one")
    assert tables.look().view.holdings["p2"].pinned == "one"
    told(address, "partitions", "move", "p2", "--anywhere")
    assert tables.look().view.holdings["p2"].pinned is None
    told(address, "partitions", "drain", "p2")
    told(address, "partitions", "close", "p2")
    refused = told(address, "partitions", "close", "p1", status=2)
    assert "it is open" in refused
    assert "is not known here" in told(address, "nodes", "drain", "x", status=2)
