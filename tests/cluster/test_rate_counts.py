"""A token's rate in a cluster: a request counts where it came in, and counts once."""

from benchmarks import cluster as bench
from headway.server.rates import RequestRate
from headway.server.scopes import parse_scopes
from headway.server.tokens import FILE, TokenFile, wall_ms
from tests.cluster.chaos.asking import Asker
from tests.postgres import shared

QUEUES = [f"q{number}" for number in range(8)]


def test_a_request_to_many_partitions_counts_once() -> None:
    shared.cluster()  # without a PostgreSQL, the test is left out
    with bench.cluster([], 4) as nodes:
        first, second = nodes.folder / "n1", nodes.folder / "n2"
        for folder in (first, second):
            folder.mkdir(mode=0o700)
        scopes = parse_scopes(["admin"])
        # One request, and the next after twelve minutes.
        slow = TokenFile(first).add("slow", scopes, wall_ms(), rate=RequestRate(5, "h"))
        free = TokenFile(first).add("free", scopes, wall_ms())
        (second / FILE).write_bytes((first / FILE).read_bytes())
        (second / FILE).chmod(0o600)
        nodes.start("n1")
        nodes.start("n2")
        ports = {name: int(url.rpartition(":")[2]) for name, url in nodes.urls.items()}
        anybody, limited = Asker(ports, free), Asker(ports, slow)
        for queue in QUEUES:
            told = anybody.ask("n1", "POST", f"/v1/queues/{queue}/jobs", {"kind": "k"})
            assert told.outcome == "ok", told
        for name in ("n1", "n2"):
            found = limited.ask(name, "GET", "/v1/queues")
            assert found.outcome == "ok", found
            assert len(found.content["queues"]) > len(QUEUES)
            again = limited.ask(name, "GET", f"/v1/queues/{QUEUES[0]}")
            assert again.code == "rate_limited"
        anybody.close()
        limited.close()
