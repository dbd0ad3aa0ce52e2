"""What some pages need beside them that is not ours: a database, brokers."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.postgres import shared

SERVED_AS = "SERVED_AS"
"""Options of the server of a page."""
Beside = Callable[[], AbstractContextManager[Mapping[str, str]]]


@contextmanager
def database() -> Iterator[Mapping[str, str]]:
    """The roles and the database that pages speak of; it has a shop already."""
    cluster = shared.cluster()
    import psycopg

    there = {"host": "127.0.0.1", "port": str(cluster.port), "user": "postgres"}
    with psycopg.connect(**there, dbname="postgres", autocommit=True) as connection:
        for statement in (
            "CREATE ROLE headway LOGIN",
            "CREATE ROLE shop LOGIN",
            "CREATE DATABASE jobs OWNER headway",
        ):
            connection.execute(statement)
        with psycopg.connect(**there, dbname="jobs") as inside:
            inside.execute("CREATE TABLE orders(id integer PRIMARY KEY)")
            inside.execute("ALTER TABLE orders OWNER TO shop")
        try:
            # Addresses of the page name no port.
            yield {"PGPORT": there["port"]}
        finally:
            connection.execute("DROP DATABASE jobs WITH (FORCE)")
            connection.execute("DROP ROLE shop")
            connection.execute("DROP ROLE headway")


@contextmanager
def named_database() -> Iterator[Mapping[str, str]]:
    """For every shell of a page, as on each of its machines."""
    with database() as known:
        yield {**known, "HEADWAY_STORE": "postgresql://headway@localhost/jobs"}


@contextmanager
def node() -> Iterator[Mapping[str, str]]:
    """The page's server is a node, and has partitions to spare."""
    with named_database() as known:
        subprocess.run(
            [sys.executable, "-m", "headway.cli.main", "migrate"],
            env={**os.environ, **known},
            check=True,
            capture_output=True,
        )
        yield {**known, SERVED_AS: "--node rack-2 --partitions 6"}


@contextmanager
def brokers() -> Iterator[Mapping[str, str]]:
    """Kafka with two topics; without its library the page can't be run."""
    from tests.bridge.crossing import Cluster

    cluster = Cluster()
    for topic in ("answers", "answers-dead"):
        cluster.send(topic, [{"order": {"id": 17}}])
    yield {"KAFKA_BROKERS": cluster.brokers}


@contextmanager
def spark_cluster() -> Iterator[Mapping[str, str]]:
    """A master with two workers, as a cluster has them on machines of their own."""
    from tests.spark.cluster import cluster, environment

    with TemporaryDirectory() as name, cluster(Path(name)) as master:
        wanted = ("JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON")
        there = environment()
        yield {"SPARK_MASTER": master, **{one: there[one] for one in wanted}}


BESIDE: Mapping[str, Beside] = {
    "docs/cluster.md": named_database,
    "docs/cluster-routing.md": node,
    "docs/deploy.md": database,
    "docs/http-reference.md": node,
    "docs/pipeline.md": spark_cluster,
    "docs/postgres.md": database,
    "docs/replies.md": brokers,
    "docs/spark-worker.md": spark_cluster,
}
