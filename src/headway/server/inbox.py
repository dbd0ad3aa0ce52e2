"""What an application leaves in the inbox of a database: a body, read like any other."""

from typing import Any, Final

import msgspec

from headway.core.commands import Enqueue
from headway.core.errors import BadValue
from headway.server.bodies import read
from headway.server.problems import Refused
from headway.server.shapes import spec_of
from headway.wire.jobs import NewJobs
from headway.wire.values import QueueName

BYTES_MAX: Final = 16 << 20
_jobs: Final["msgspec.json.Decoder[Any]"] = msgspec.json.Decoder(NewJobs)


def enqueue_of(queue: str, body: bytes) -> Enqueue:
    """As `POST /v1/queues/{queue}/jobs` takes it; raises BadValue."""
    if len(body) > BYTES_MAX:
        raise BadValue("jobs", len(body), f"at most {BYTES_MAX} bytes")
    try:
        name = msgspec.convert(queue, QueueName)
        return Enqueue(name, [spec_of(job) for job in read(body, _jobs)])
    except msgspec.ValidationError as error:
        raise BadValue("queue", queue, "is no name of a queue") from error
    except Refused as refused:
        raise BadValue(refused.key or "jobs", "", str(refused)) from refused
