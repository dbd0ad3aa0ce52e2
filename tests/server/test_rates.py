"""Tokens with a rate: so many requests, and a word when to come again."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.main import headway as main
from headway.client.blocking import Client
from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from headway.server.guard import Guard
from headway.server.http.message import Request
from headway.server.problems import Refused
from headway.server.rates import Allowance, RequestRate
from headway.server.scopes import Verb, parse_scopes
from headway.server.tokens import Keyring, TokenFile
from tests.server.process import Serve, make_token
from tests.server.test_tokens import Heard

SCOPES = parse_scopes(["work:*"])
METRIC = "headway_requests_rate_limited_total"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def create(data: Path, name: str, *options: str) -> str:
    made = call(
        *("token", "create", "--data", data, "--name", name),
        *("--scope", "admin", *options),
    )
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


@given(
    st.integers(1, 2_000),
    st.sampled_from("smh"),
    st.lists(st.floats(0, 5, width=32), max_size=60),
)
def test_no_more_come_through_than_the_rate_and_a_second_allow(
    count: int, unit: str, gaps_s: list[float]
) -> None:
    rate = RequestRate(count, unit)
    allowance = Allowance(rate)
    now_s = 1_000.0
    passed: list[float] = []
    for gap_s in gaps_s:
        now_s += gap_s
        while (wait_s := allowance.take(now_s)) == 0 and len(passed) < 10_000:
            passed.append(now_s)
        if wait_s:
            # Whoever waits as told is let in.
            assert Allowance.take(allowance, now_s + wait_s + 1e-6) == 0
            passed.append(now_s + wait_s)
            now_s += wait_s + 1e-6
    burst = max(1.0, 1 / rate.each_s)
    for first in range(len(passed)):
        span_s = passed[-1] - passed[first]
        assert len(passed) - first <= burst + span_s / rate.each_s + 1.001


@pytest.mark.parametrize(
    "text", ["", "5", "0/s", "5/d", "-1/s", "5/ s", "1e3/s", "5/s\n"]
)
def test_what_is_no_rate_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadValue, match="rate"):
        RequestRate.parse(text)
    done = call(
        *("token", "create", "--data", tmp_path, "--name", "a"),
        *("--scope", "admin", f"--rate={text}"),
    )
    assert done.exit_code == 2
    assert TokenFile(tmp_path).read() == []


def test_a_rate_holds_for_its_token_alone_and_by_the_clock(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    slow = file.add("slow", SCOPES, 0, rate=RequestRate(2, "m")).encode()
    free = file.add("free", SCOPES, 0).encode()
    now_s = 50.0
    keyring = Keyring(file, Heard())
    guard = Guard(keyring, "127.0.0.1", (), lambda: now_s)

    def ask(secret: bytes) -> int:
        """0 if it is let in, or after how long to come again."""
        headers = {b"authorization": b"Bearer " + secret}
        try:
            guard.bearer(Request(b"GET", b"/", headers), Verb.WORK)
        except Refused as refused:
            return refused.retry_s if refused.code == "rate_limited" else -1
        return 0

    assert [ask(slow), ask(slow)] == [0, 30]
    now_s = 70.5
    assert ask(slow) == 10
    assert not any(ask(free) for _ in range(1_000))
    # A change of the file does not fill the bucket again.
    file.add("other", SCOPES, 0)
    keyring.check()
    assert ask(slow) == 10
    now_s = 80.5
    assert [ask(slow), ask(slow)] == [0, 30]
    assert guard.over_rate == 4


def test_a_request_counts_once_however_often_it_is_looked_at(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    secret = file.add("slow", SCOPES, 0, rate=RequestRate(1, "h")).encode()
    guard = Guard(Keyring(file, Heard()), "127.0.0.1", ())
    request = Request(b"GET", b"/", {b"authorization": b"Bearer " + secret})
    assert guard.bearer(request, Verb.WORK) is guard.bearer(request, Verb.WORK)
    assert guard.over_rate == 0


def test_a_server_refuses_what_is_above_the_rate_and_counts_it(
    tmp_path: Path, serve: Serve
) -> None:
    data = tmp_path / "data"
    slow, free = create(data, "slow", "--rate", "3/h"), create(data, "free")
    server = serve()
    path = "/v1/queues/q/jobs"
    assert server.ask("POST", path, {"kind": "k"}, slow).status == 201
    refused = server.ask("POST", path, {"kind": "k"}, slow)
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert 1_000 < int(refused.headers["retry-after"]) <= 1_200
    assert "'slow' may make 3/h requests" in refused.json["detail"]
    # Nothing was done, and what needs no token is not counted.
    assert server.ask("GET", "/v1/queues/q", token=free).json["counts"]["ready"] == 1
    assert server.ask("GET", "/livez").status == 200
    text = server.ask("GET", "/metrics", token=free).body.decode()
    assert f"{METRIC} 1" in text.splitlines()


def test_the_client_waits_and_comes_again(tmp_path: Path, serve: Serve) -> None:
    token = create(tmp_path / "data", "app", "--rate", "10/s")
    reader = make_token(tmp_path / "data", "reader", "read:*")
    server = serve()
    client = Client(server.address, token)
    for _ in range(25):
        client.enqueue("q", [JobSpec(kind="k")])
    client.close()
    found = server.ask("GET", "/v1/queues/q", token=reader).json
    assert found["counts"]["ready"] == 25


def test_a_rate_is_listed_and_files_without_one_stay_as_they_were(
    tmp_path: Path,
) -> None:
    create(tmp_path, "a")
    assert '"rate"' not in TokenFile(tmp_path).path.read_text()
    create(tmp_path, "b", "--rate", "500/s")
    lines = call("token", "list", "--data", tmp_path).stdout.splitlines()
    assert "500/s" not in lines[0]
    assert ", 500/s  " in lines[1]
