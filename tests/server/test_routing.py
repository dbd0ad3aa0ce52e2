"""Routes are found by method and path, whatever was asked before."""

import pytest

from headway.server.handlers.table import ROUTES
from headway.server.http.message import Request
from headway.server.problems import Refused
from headway.server.routing import Router


def request(path: str, method: bytes = b"POST") -> Request:
    return Request(method, path.encode(), {})


def test_a_queue_is_found_again_by_its_own_name_and_method() -> None:
    router = Router(ROUTES)
    for _ in range(2):
        for number in range(1_500):
            found = router.find(request(f"/v1/queues/q{number}/jobs"))
            assert found.params == {"queue": f"q{number}"}
            assert found.route.path == "/v1/queues/{queue}/jobs"
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            router.find(request("/v1/queues/q7/jobs", b"DELETE"))
        assert refused.value.code == "method_not_allowed"
        found = router.find(request("/v1/queues/q7", b"GET"))
        assert (found.route.method, found.params) == ("GET", {"queue": "q7"})
        found = router.find(request("/v1/queues/q7", b"PUT"))
        assert (found.route.method, found.params) == ("PUT", {"queue": "q7"})


def test_the_query_is_no_part_of_what_is_found() -> None:
    router = Router(ROUTES)
    for query in ("", "?a=1", "?b"):
        found = router.find(request(f"/v1/queues/mail/jobs{query}"))
        assert found.params == {"queue": "mail"}
    name = "n" * 5_000
    for _ in range(2):
        assert router.find(request(f"/v1/queues/{name}/jobs")).params["queue"] == name
