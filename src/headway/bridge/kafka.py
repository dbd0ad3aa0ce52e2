"""Kafka as a source, and as the place for messages that nobody can use."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headway.bridge.port import (
    Gone,
    Marks,
    Message,
    NotNow,
    Place,
    SourceFailed,
    Told,
)
from headway.core.errors import BadValue

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition

POLL_BYTES: Final = 8 << 20
CLOSED_S: Final = 10.0
SET_ASIDE_MS: Final = 10_000
REFRESH_MS: Final = 30_000
"""After how long a topic is noticed that was made later than its bridge."""
OWN: Final = {
    "bootstrap.servers": "--brokers says it",
    "group.id": "--group says it",
    "enable.auto.commit": "offsets are committed when their reply is durable",
    "enable.auto.offset.store": "offsets are committed when their reply is durable",
    "enable.partition.eof": "an end is no message",
}
"""Settings that are not the caller's, and why."""


class KafkaSource:
    """Reads topics as one of a group."""

    def __init__(
        self, topics: Sequence[str], group: str, settings: Mapping[str, str], told: Told
    ) -> None:
        """`settings` are librdkafka's, with `bootstrap.servers` among them."""
        self._topics = list(topics)
        self._told = told
        self._consumer = _made(
            "Consumer",
            {
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": REFRESH_MS,
                **settings,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "error_cb": self._failed,
            },
            told,
        )
        self._gone: Gone = lambda _: {}
        self._found: list[Message] = []
        """Read and not handed out: taken back if its partition goes meanwhile."""
        self._is_resting = False

    @property
    def is_over(self) -> bool:
        return False

    def open(self, gone: Gone) -> None:
        self._gone = gone
        self._consumer.subscribe(
            self._topics,
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )

    def poll(self, most: int, wait_s: float) -> list[Message]:
        self._rest(is_full=most == 0)
        size = sum(message.size for message in self._found)
        while True:
            has_enough = len(self._found) >= most or size >= POLL_BYTES
            got = self._consumer.poll(0.0 if self._found or has_enough else wait_s)
            if got is None:
                break
            error = got.error()
            if error is not None:
                self._failed(error)
                break
            message = _message(got)
            self._found.append(message)
            size += message.size
            if has_enough:
                break
        handed, self._found = self._found[:most], self._found[most:]
        return handed

    def commit(self, marks: Marks) -> None:
        from confluent_kafka import KafkaException

        try:
            for done in self._consumer.commit(
                offsets=_offsets(marks), asynchronous=False
            ):
                if done.error is not None:
                    raise NotNow(str(done.error))
        except KafkaException as error:
            raise NotNow(str(error)) from error

    def close(self) -> None:
        self._consumer.close()

    def _rest(self, *, is_full: bool) -> None:
        """Without room partitions are paused: polls go on, and bring nothing."""
        if is_full:
            # Each time, since others may have been assigned since.
            self._consumer.pause(self._consumer.assignment())
        elif self._is_resting:
            self._consumer.resume(self._consumer.assignment())
        self._is_resting = is_full

    def _assigned(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        if partitions:
            self._told.happened("assigned", partitions=_shown(partitions))

    def _revoked(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        marks = self._let_go(partitions)
        if marks:
            try:
                self.commit(marks)
            except NotNow as error:
                self._told.warned("not committed", error=str(error)[:200])
        self._told.happened("revoked", partitions=_shown(partitions))

    def _lost(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        """They are another's already: nothing can be committed."""
        self._let_go(partitions)
        self._told.warned("lost", partitions=_shown(partitions))

    def _let_go(self, partitions: "list[TopicPartition]") -> Marks:
        places: list[Place] = [(one.topic, one.partition) for one in partitions]
        self._found = [one for one in self._found if one.place not in places]
        return self._gone(places)

    def _failed(self, error: Any) -> None:
        if error.fatal():
            raise SourceFailed(str(error))
        self._told.warned("kafka", error=error.name(), text=error.str()[:200])


class KafkaAside:
    """Writes what nobody can use to a topic, with why and where from in its headers."""

    def __init__(self, topic: str, settings: Mapping[str, str], told: Told) -> None:
        self._topic = topic
        self._producer: Producer = _made(
            "Producer",
            {
                "message.max.bytes": 16 << 20,
                "message.timeout.ms": SET_ASIDE_MS,
                **settings,
                "enable.idempotence": True,
            },
            told,
        )

    def put(self, message: Message, why: str) -> None:
        from confluent_kafka import KafkaError, KafkaException

        told: list[Any] = []
        place = f"{message.topic}/{message.partition}/{message.offset}"
        try:
            self._producer.produce(
                self._topic,
                value=message.value,
                key=message.key,
                headers=[
                    *message.headers,
                    ("headway-error", why.encode()),
                    ("headway-source", place.encode()),
                ],
                on_delivery=lambda error, _: told.append(error),
            )
        except (KafkaException, BufferError) as error:
            raise SourceFailed(f"{place} can't be set aside: {error}") from error
        while not told:
            self._producer.flush(CLOSED_S)
        refused = told[0]
        if refused is None:
            return
        if refused.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise SourceFailed(f"{place} is too large for {self._topic}")
        raise NotNow(refused.str())

    def close(self) -> None:
        self._producer.flush(CLOSED_S)


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the caller's; those that are not are refused."""
    for name, value in settings.items():
        if name in OWN:
            raise BadValue("set", name, OWN[name])
        if name.endswith("_cb") or name == "logger":
            raise BadValue("set", name, "must be a setting of librdkafka")
        if "\0" in value:
            raise BadValue("set", name, "holds a zero byte")
    return dict(settings)


def _made(kind: str, settings: Mapping[str, Any], told: Told) -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        text = "Kafka needs a package more: pip install 'headway[kafka]'"
        raise SourceFailed(text) from error
    try:
        return getattr(confluent_kafka, kind)(dict(settings), logger=_logger(told))
    except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
        text = error.args[0].str() if _is_told(error) else str(error)
        raise SourceFailed(f"Kafka's settings are not right: {text}") from error


def _is_told(error: Exception) -> bool:
    return bool(error.args) and hasattr(error.args[0], "str")


def _message(got: Any) -> Message:
    return Message(
        got.topic(),
        got.partition(),
        got.offset(),
        got.value(),
        got.key(),
        tuple(got.headers() or ()),
    )


def _offsets(marks: Marks) -> "list[TopicPartition]":
    from confluent_kafka import TopicPartition

    return [TopicPartition(*place, offset) for place, offset in marks.items()]


def _shown(partitions: "list[TopicPartition]") -> list[str]:
    return [f"{one.topic}/{one.partition}" for one in partitions]


def _logger(told: Told) -> logging.Logger:
    """What librdkafka has to say, as lines like all others."""
    logger = logging.Logger("headway.bridge.kafka", logging.WARNING)
    logger.addHandler(_Heard(told))
    return logger


class _Heard(logging.Handler):
    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.warned("librdkafka", text=record.getMessage()[:300])
