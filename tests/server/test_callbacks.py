"""Signed callbacks: whom the server believes, and what an answer does."""

import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headway.cli.main import headway as main
from headway.core.errors import BadValue
from headway.server import signatures
from headway.server.callbacks import CallbackFile, Callbacks, Kept, Secret
from headway.server.problems import Refused
from tests.server.process import PATIENCE_S, Answer, Serve, Served, make_token
from tests.server.signing import BODY, NOW, NOW_MS, SECRET, raw, signed


class Heard:
    """What is told of the sources."""

    def __init__(self) -> None:
        self.read: list[object] = []
        self.broken: list[str] = []

    def happened(self, event: str, **fields: object) -> None:
        assert event == "callbacks read"
        self.read.append(fields["sources"])

    def not_read(self, what: str, error: Exception) -> None:
        assert what == "callbacks"
        self.broken.append(str(error))


def call(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), input=given)


def added(data: Path, name: str = "carrier", key: str = "order-{value.order}") -> str:
    """The secret of a new source of the queue orders."""
    done = call(
        *("callback", "add", "--data", data, "--name", name),
        *("--queue", "orders", "--key", key),
    )
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def waiting(served: Served, key: str, token: str | None = None) -> None:
    """A job of the queue orders that waits for the key."""
    job = {"kind": "ship"}
    posted = served.ask("POST", "/v1/queues/orders/jobs", job, token=token)
    assert posted.status == 201
    body = {"queues": ["orders"], "wait": "20s"}
    (leased,) = served.ask("POST", "/v1/lease", body, token=token).json["jobs"]
    wait = {"token": leased["token"], "reply_key": key, "timeout": "1h"}
    assert served.ask("POST", "/v1/wait", wait, token=token).status == 200


def goes_on(served: Served, token: str | None = None) -> Any:
    """The reply that the next job goes on with."""
    body = {"queues": ["orders"], "wait": "20s"}
    (leased,) = served.ask("POST", "/v1/lease", body, token=token).json["jobs"]
    served.ask("POST", "/v1/ack", {"tokens": [leased["token"]]}, token=token)
    return leased["reply"]


def until_heard(served: Served, path: str, body: bytes, **headers: str) -> Answer:
    """A running server knows of a source within a second or two."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        answer = served.ask("POST", path, body, **headers)
        if answer.code != "bad_signature":
            return answer
        assert time.monotonic() < until_s, answer


@pytest.fixture(scope="module")
def carrier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server, and the secret of its source."""
    data = tmp_path_factory.mktemp("callbacks") / "data"
    secret = added(data)
    served = Served(data)
    yield served, secret
    served.stop()


def test_a_secret_is_shown_once_and_only_its_owner_may_read_the_file(
    tmp_path: Path,
) -> None:
    data = tmp_path / "new"
    secret = added(data)
    assert len(signatures.key_of(secret)) == 32
    for path in data.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for option in ((), ("--json",)):
        listed = call("callback", "list", "--data", data, *option).stdout
        assert "order-{value.order}" in listed
        assert secret[6:] not in listed
    again = call(
        *("callback", "add", "--data", data, "--name", "carrier"),
        *("--queue", "orders", "--key", "value"),
    )
    assert (again.exit_code, again.stdout) == (2, "")
    assert "there is a source of this name" in again.stderr
    assert call("callback", "remove", "--data", data, "carrier").exit_code == 0
    assert call("callback", "remove", "--data", data, "carrier").exit_code == 2
    assert CallbackFile(data).read() == []


def test_a_partner_may_bring_its_own_secret(tmp_path: Path) -> None:
    options = ("--name", "own", "--queue", "q", "--key", "id", "--secret-from")
    done = call("callback", "add", "--data", tmp_path, *options, "-", given=SECRET)
    assert (done.exit_code, done.output) == (0, "")
    (kept,) = CallbackFile(tmp_path).read()
    assert kept.secrets[0].secret == SECRET
    file = tmp_path / "secret"
    other = signatures.new_secret()
    file.write_text(other + "\n")
    done = call("callback", "rotate", "--data", tmp_path, "own", "--secret-from", file)
    assert (done.exit_code, done.output) == (0, "")
    (kept,) = CallbackFile(tmp_path).read()
    assert [one.secret for one in kept.secrets] == [other, SECRET]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--name", "../a", "--queue", "q", "--key", "value"),
        ("--name", "a", "--queue", "no queue", "--key", "value"),
        ("--name", "a", "--queue", "q", "--key", "header.x"),
        ("--name", "a", "--queue", "q", "--key", "order"),
        ("--name", "a", "--queue", "q", "--key", "value", "--value", "{"),
        ("--name", "a", "--queue", "q", "--key", "value", "--secret-from", "-"),
        ("--name", "a", "--queue", "q"),
    ],
)
def test_what_makes_no_source_is_refused(
    tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    done = call("callback", "add", "--data", tmp_path, *wrong, given="hello")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "hello" not in done.stderr
    assert CallbackFile(tmp_path).read() == []


def test_the_secret_before_is_good_until_it_ends(tmp_path: Path) -> None:
    file = CallbackFile(tmp_path)
    first, second, third = (signatures.new_secret() for _ in range(3))
    file.add(
        Kept(name="a", queue="q", key="id", secrets=[Secret(first, 0)], created_ms=0)
    )
    now_ms = NOW_MS

    def good() -> list[bool]:
        callbacks = Callbacks(file, Heard(), lambda: now_ms)
        found = []
        for secret in (first, second, third):
            headers = raw(signed(secret, at=NOW))
            try:
                found.append(callbacks.find("a", headers, BODY)[1] == b"m-1")
            except Refused:
                found.append(False)
        return found

    assert good() == [True, False, False]
    file.rotate("a", second, now_ms, 60_000)
    assert good() == [True, True, False]
    now_ms += 60_000
    assert good() == [False, True, False]
    file.rotate("a", first, now_ms, 60_000)
    file.rotate("a", third, now_ms, 60_000)
    assert good() == [True, False, True]
    file.rotate("a", second, now_ms, 0)
    assert good() == [False, True, False]


@pytest.mark.parametrize(
    "content", ["", "{", '{"sources": [{}]}', '{"sources": [], "x": 1}', "[" * 100_000]
)
def test_a_broken_file_stops_a_start_and_changes_nothing_later(
    tmp_path: Path, content: str
) -> None:
    heard = Heard()
    secret = added(tmp_path)
    file = CallbackFile(tmp_path)
    known = Callbacks(file, heard, lambda: NOW_MS)
    (tmp_path / "callbacks.json").write_text(content)
    with pytest.raises(BadValue, match="can't be read as callbacks"):
        Callbacks(file, heard)
    known.check()
    known.check()
    assert len(heard.broken) == 1
    assert known.find("carrier", raw(signed(secret, at=NOW)), BODY)
    (tmp_path / "callbacks.json").unlink()
    known.check()
    assert heard.read == [0]
    with pytest.raises(Refused):
        known.find("carrier", raw(signed(secret, at=NOW)), BODY)


def test_a_signed_answer_finds_its_job_and_a_repeated_one_changes_nothing(
    carrier: tuple[Served, str],
) -> None:
    served, secret = carrier
    waiting(served, "order-17")
    headers = signed(secret)
    first = served.ask("POST", "/v1/callbacks/carrier", BODY, **headers)
    assert (first.status, first.json) == (200, {"fate": "resolved"})
    again = served.ask("POST", "/v1/callbacks/carrier", BODY, **headers)
    assert (again.status, again.json) == (200, {"fate": "repeated"})
    assert goes_on(served) == json.loads(BODY)
    after = served.ask("POST", "/v1/callbacks/carrier", BODY, **headers)
    assert after.json == {"fate": "repeated"}
    counts = served.ask("GET", "/v1/queues/orders").json["counts"]
    assert not any(counts.values()), counts


def test_an_unknown_source_is_refused_like_a_wrong_signature(
    carrier: tuple[Served, str],
) -> None:
    served, secret = carrier
    unknown = served.ask("POST", "/v1/callbacks/nobody", BODY, **signed(secret))
    wrong = signed(signatures.new_secret())
    known = served.ask("POST", "/v1/callbacks/carrier", BODY, **wrong)
    assert (unknown.status, unknown.body) == (known.status, known.body)
    assert (known.status, known.code) == (401, "bad_signature")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_json"),
        (b'{"order": 1, "order": 2}', 400, "bad_json"),
        (b'{"status": "paid"}', 400, "bad_value"),
        (b'{"order": [1]}', 400, "bad_value"),
        (b'{"order": "' + b"x" * (1 << 20) + b'"}', 413, "too_large"),
    ],
)
def test_a_signature_does_not_make_a_body_good(
    carrier: tuple[Served, str], body: bytes, status: int, code: str
) -> None:
    served, secret = carrier
    headers = signed(secret, body)
    answer = served.ask("POST", "/v1/callbacks/carrier", body, **headers)
    assert (answer.status, answer.code) == (status, code)


def test_a_page_of_another_site_is_refused_even_if_it_is_signed(
    carrier: tuple[Served, str],
) -> None:
    served, secret = carrier
    path = "/v1/callbacks/carrier"
    foreign = {"origin": "https://evil.example"}
    answer = served.ask("POST", path, BODY, **signed(secret), **foreign)
    assert (answer.status, answer.code) == (403, "cross_site")
    named = {"host": "evil.example"}
    answer = served.ask("POST", path, BODY, **signed(secret), **named)
    assert (answer.status, answer.code) == (421, "misdirected")


def test_a_key_in_the_address_is_heard_only_where_it_was_asked_for(
    serve: Serve, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    admin = make_token(data, "admin", "admin")
    served = serve()
    secret = added(data, "shop", "order-{url}")
    body_secret = added(data, "carrier")
    waiting(served, "order-a/b", admin)
    path = "/v1/callbacks/shop/a%2Fb"
    answer = until_heard(served, path, BODY, **signed(secret))
    assert (answer.status, answer.json) == (200, {"fate": "resolved"})
    assert goes_on(served, admin) == json.loads(BODY)
    for wrong, used in (
        ("/v1/callbacks/shop", secret),
        ("/v1/callbacks/carrier/17", body_secret),
    ):
        answer = served.ask("POST", wrong, BODY, **signed(used))
        assert (answer.status, answer.code) == (400, "bad_value"), wrong


def test_callbacks_open_no_other_address(tmp_path: Path) -> None:
    added(tmp_path)
    done = call("serve", "--data", tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert done.exit_code == 2
    assert "no token was made" in done.stderr


def test_the_log_names_the_source_and_quotes_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    secret = added(tmp_path / "data")
    served = serve("--log-level", "debug")
    waiting(served, "order-17")
    served.ask("POST", "/v1/callbacks/carrier", BODY, **signed(secret))
    served.stop()
    assert any(
        event.get("bearer") == "callback carrier" and event["status"] == 200
        for event in served.events()
    )
    for canary in (secret[6:], "paid", "order-17", "m-1"):
        assert canary not in served.log()
