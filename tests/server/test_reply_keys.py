"""Keys of replies: what can be waited for can be answered."""

from urllib.parse import quote

import pytest

from tests.server.process import Served


@pytest.mark.parametrize("key", ["order-17", "ö/ä ?&", "\u00a0", "a\nb", "\u200b"])
def test_a_key_may_be_waited_for_exactly_if_it_can_be_answered(
    served: Served, key: str
) -> None:
    assert served.ask("POST", "/v1/queues/asks/jobs", {"kind": "k"}).status == 201
    leased = served.ask("POST", "/v1/lease", {"queues": ["asks"]}).json["jobs"][0]
    body = {"token": leased["token"], "reply_key": key, "timeout": "1h"}
    waits = served.ask("POST", "/v1/wait", body)
    path = f"/v1/queues/asks/replies/{quote(key, safe='')}"
    answered = served.ask("POST", path, {"payload": 1})
    assert waits.status == answered.status
    if waits.status != 200:
        assert (waits.code, answered.code) == ("bad_value", "bad_value")
        tokens = {"tokens": [leased["token"]]}
        assert served.ask("POST", "/v1/ack", tokens).status == 200
    else:
        assert answered.json["fate"] == "resolved"
