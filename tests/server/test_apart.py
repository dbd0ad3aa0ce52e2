"""`headway serve --apart`, as its user meets it."""

from pathlib import Path

import pytest

from headway.core.errors import BadValue
from headway.server.settings import Secret, Settings
from tests.server.process import Served


def test_a_database_has_no_owner_apart(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="apart = 'yes': is for a file"):
        Settings(data=tmp_path, store=Secret("postgresql:///x"), is_apart=True)


def test_it_serves_as_any_server_and_leaves_nobody_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    served = Served(data, "--apart")
    made = served.ask("PUT", "/v1/queues/mail", {})
    assert made.status in (200, 201)
    assert served.ask("POST", "/v1/queues/mail/jobs", {"payload": 1}).status == 201
    (job,) = served.ask("POST", "/v1/lease", {"queues": ["mail"]}).json["jobs"]
    assert served.ask("POST", "/v1/ack", {"tokens": [job["token"]]}).status == 200
    assert served.stop() == 0
    again = Served(data)
    assert again.ask("POST", "/v1/lease", {"queues": ["mail"]}).json["jobs"] == []
    assert again.stop() == 0
