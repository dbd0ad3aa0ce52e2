"""A real Kafka broker, from Maven's repository: fetched once, run by java, stopped."""

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.bridge.crossing import PARTITIONS, PATIENCE_S, Topics, until

ROOT = Path(__file__).resolve().parents[2]
VERSION = "4.1.0"
JARS = ROOT / "out" / f"kafka-{VERSION}"
FETCH_S = 240
POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>headway.tests</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def jars() -> Path:
    """Where the broker's jars are; the test is left out where they can't be had."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"a real broker needs {program}")
    if JARS.is_dir():
        return JARS
    fresh = JARS.with_name(f"{JARS.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / "pom.xml").write_text(POM)
    goal = "dependency:copy-dependencies"
    options = ["-DoutputDirectory=.", "-DincludeScope=runtime"]
    try:
        subprocess.run(
            ["mvn", "-q", "-B", "-f", str(fresh / "pom.xml"), goal, *options],
            cwd=fresh,
            capture_output=True,
            timeout=FETCH_S,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("the broker's jars can't be fetched by mvn")
    fresh.rename(JARS)
    return JARS


class Broker:
    """One broker in KRaft mode, with its data in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._java = ["java", "-Xmx256m", "-cp", f"{jars()}/*"]

    def __enter__(self) -> Self:
        port, controller = free_ports()
        settings = self._folder / "broker.properties"
        data = self._folder / "broker-data"
        settings.write_text(
            SETTINGS.format(port=port, controller=controller, data=data)
        )
        form = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]
        subprocess.run(
            [*self._java, *form, str(settings)],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        with (self._folder / "broker.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(settings)], stdout=log, stderr=log
            )
        self._admin = AdminClient(
            {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
        )
        try:
            until(self._is_there)
        except BaseException:
            self.__exit__()
            raise
        self.topics = Topics(f"127.0.0.1:{port}")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def make(self, topic: str) -> None:
        (made,) = self._admin.create_topics(
            [NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)]
        ).values()
        made.result(PATIENCE_S)

    def _is_there(self) -> bool:
        assert self._process.poll() is None, "the broker has ended"
        try:
            return bool(self._admin.list_topics(timeout=1.0).brokers)
        except KafkaException:
            return False


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
