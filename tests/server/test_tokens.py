"""Tokens: made, kept, found, revoked, and read again by a server that runs."""

import asyncio
import json
import re
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.cli.main import headway as main
from headway.core.errors import BadValue
from headway.server.ids import signing_key
from headway.server.log import Watcher
from headway.server.scopes import Verb, parse_scopes
from headway.server.serving import Server, Unsafe
from headway.server.settings import Settings
from headway.server.tokens import Keyring, TokenFile
from tests.server.process import PATIENCE_S, Serve, command, make_token

SCOPES = parse_scopes(["work:*"])
WORK = "/record"


class Heard:
    """What a keyring tells."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.broken: list[str] = []

    def tokens_read(self, count: int) -> None:
        self.read.append(count)

    def not_read(self, what: str, error: Exception) -> None:
        assert what == "tokens"
        self.broken.append(str(error))


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def refused(*options: str) -> str:
    """The one line on stderr of a server that does not start."""
    done = subprocess.run(
        command("serve", "--port", "0", *options),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    (said,) = [line for line in lines if not line.startswith("{")]
    assert json.loads(lines[0])["event"] == "not served"
    return said


def test_a_secret_is_shown_once_and_kept_nowhere(tmp_path: Path) -> None:
    data = tmp_path / "new"
    made = call(
        *("token", "create", "--data", data, "--name", "shop"),
        *("--scope", "enqueue:orders-*", "--scope", "work", "--expires", "30d"),
    )
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    assert re.fullmatch(r"hw_[A-Za-z0-9_-]{43}", secret)
    for path in data.iterdir():
        assert secret not in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    (token,) = json.loads(call("token", "list", "--data", data, "--json").stdout)
    assert token["scopes"] == ["enqueue:orders-*", "work:*"]
    assert token["expires_ms"] - token["created_ms"] == 30 * 86_400_000
    line = call("token", "list", "--data", data).stdout
    assert "shop  made " in line
    assert ", expires " in line
    bearer = Keyring(TokenFile(data), Heard()).find(secret.encode())
    assert bearer is not None
    assert bearer.name == "shop"
    assert bearer.may(Verb.ENQUEUE, "orders-1")
    assert not bearer.may(Verb.ENQUEUE, "others")


def test_a_name_is_given_once_and_free_again_when_revoked(tmp_path: Path) -> None:
    create = ("token", "create", "--data", tmp_path, "--name", "a", "--scope", "admin")
    first = call(*create).stdout.strip()
    again = call(*create)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "there is a token of this name" in again.stderr
    revoked = call("token", "revoke", "--data", tmp_path, "a")
    assert revoked.exit_code == 0
    assert "no token is left" in revoked.stderr
    assert call("token", "revoke", "--data", tmp_path, "a").exit_code == 2
    second = call(*create).stdout.strip()
    keyring = Keyring(TokenFile(tmp_path), Heard())
    assert keyring.find(first.encode()) is None
    assert keyring.find(second.encode()) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        ("--name", "../a", "--scope", "admin"),
        ("--name", "", "--scope", "admin"),
        ("--name", "a" * 65, "--scope", "admin"),
        ("--name", "a\n", "--scope", "admin"),
        ("--name", "a"),
        ("--name", "a", "--scope", "work:"),
        ("--name", "a", "--scope", "all"),
        ("--name", "a", "--scope", "admin", "--expires", "0s"),
        ("--name", "a", "--scope", "admin", "--expires", "soon"),
        ("--name", "a", "--scope", "admin", "--expires", "-1d"),
    ],
)
def test_what_makes_no_token_is_refused(tmp_path: Path, wrong: tuple[str, ...]) -> None:
    done = call("token", "create", "--data", tmp_path / "data", *wrong)
    assert (done.exit_code, done.stdout) == (2, "")
    assert TokenFile(tmp_path / "data").read() == []


def test_tokens_expire_by_the_clock(file: TokenFile) -> None:
    secret = file.add("a", SCOPES, 1_000, 5_000).encode()
    now_ms = 4_999
    keyring = Keyring(file, Heard(), lambda: now_ms)
    assert keyring.find(secret) is not None
    now_ms = 5_000
    assert keyring.find(secret) is None
    assert keyring.is_required


@pytest.mark.parametrize(
    "secret", [b"", b"hw_", b"hw_" + b"A" * 43, b"\xff" * 9, b"x" * 30_000]
)
def test_what_was_never_made_is_nobodys(file: TokenFile, secret: bytes) -> None:
    file.add("a", SCOPES, 0)
    keyring = Keyring(file, Heard())
    assert keyring.find(secret) is None
    # Whoever has read the file has not got a token by that.
    assert keyring.find(file.read()[0].sha256.encode()) is None


def test_a_change_is_noticed_and_nothing_else_is_read(file: TokenFile) -> None:
    heard = Heard()
    keyring = Keyring(file, heard)
    was_required = keyring.is_required
    keyring.check()
    assert heard.read == []
    secret = file.add("a", SCOPES, 0).encode()
    assert keyring.find(secret) is None
    keyring.check()
    keyring.check()
    assert heard.read == [1]
    assert (was_required, keyring.is_required) == (False, True)
    assert keyring.find(secret) is not None


def test_a_server_that_was_closed_is_not_opened_by_a_file_that_is_gone(
    file: TokenFile,
) -> None:
    secret = file.add("a", SCOPES, 0).encode()
    keyring = Keyring(file, Heard())
    file.path.unlink()
    keyring.check()
    assert keyring.is_required
    assert keyring.find(secret) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"tokens": [{"name": "a"}]}',
        '{"tokens": [], "more": 1}',
        '{"tokens": [{"name":"a","sha256":"00","scopes":["admin"],"created_ms":0}]}',
        '{"tokens": [{"name":"a","sha256":"%s","scopes":["all"],"created_ms":0}]}'
        % ("0" * 64),
        "[" * 100_000,
    ],
)
def test_a_broken_file_stops_a_start_and_never_loosens(
    file: TokenFile, content: str
) -> None:
    heard = Heard()
    was_open = Keyring(file, heard)
    secret = file.add("a", SCOPES, 0).encode()
    had_one = Keyring(file, heard)
    file.path.write_text(content)
    with pytest.raises(BadValue, match="can't be read as tokens"):
        Keyring(file, heard)
    with pytest.raises(BadValue):
        file.add("b", SCOPES, 0)
    had_one.check()
    had_one.check()
    assert had_one.find(secret) is not None
    assert len(heard.broken) == 1
    was_open.check()
    assert was_open.is_required
    assert was_open.find(secret) is None


def test_writers_side_by_side_lose_no_token(tmp_path: Path) -> None:
    def make(start: int) -> None:
        for number in range(start, start + 5):
            make_token(tmp_path, f"t{number}", "admin")

    threads = [threading.Thread(target=make, args=(5 * turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    names = {token.name for token in TokenFile(tmp_path).read()}
    assert names == {f"t{number}" for number in range(20)}
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"tokens.json", "tokens.json.lock"}


def test_a_signing_key_is_made_once_and_only_its_owner_may_read_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "signing.key"
    key = signing_key(path)
    assert len(key) == 32
    assert signing_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["signing.key"]


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_signing_key_that_was_cut_short_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "signing.key"
    path.write_bytes(content)
    with pytest.raises(BadValue, match="is no key"):
        signing_key(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "127.1"])
def test_without_tokens_no_other_address_is_served(tmp_path: Path, host: str) -> None:
    server = Server(Settings(data=tmp_path, host=host, port=0), Watcher("error"))
    for _ in range(2):
        with pytest.raises(Unsafe, match="no token was made"):
            asyncio.run(server.run(pytest.fail))
        # A file without tokens is none.
        make_token(tmp_path, "a", "admin")
        TokenFile(tmp_path).revoke("a")
    assert not (tmp_path / "headway.db").exists()


def test_an_unsafe_start_is_refused_in_one_line(tmp_path: Path) -> None:
    said = refused("--data", str(tmp_path), "--host", "0.0.0.0")
    assert said.startswith("headway: 0.0.0.0 can be reached by others")


def test_a_server_does_not_start_on_broken_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("{")
    assert "can't be read as tokens" in refused("--data", str(tmp_path))


def test_a_server_that_runs_open_is_closed_by_the_first_token(serve: Serve) -> None:
    served = serve()
    assert served.ask("GET", WORK).status == 204
    secret = served.make_token("first", "work")
    served.until(401, WORK)
    assert served.ask("GET", WORK, token=secret).status == 204
    # Whoever has a token may call it by any name.
    assert served.ask("GET", WORK, token=secret, host="any.example").status == 204
    TokenFile(served.data).revoke("first")
    served.until(401, WORK, secret)
    (served.data / "tokens.json").unlink()
    second = served.make_token("second", "work")
    served.until(204, WORK, second)
    served.stop()
    events = [event["event"] for event in served.events()]
    assert events[0] == "started"
    assert events.count("tokens read") >= 3


def test_a_token_is_taken_from_its_header_alone(serve: Serve, tmp_path: Path) -> None:
    secret = make_token(tmp_path / "data", "a", "admin")
    served = serve()
    for path, headers in (
        (f"{WORK}?token={secret}", {}),
        (f"{WORK}?access_token={secret}", {}),
        (WORK, {"authorization": f"Basic {secret}"}),
        (WORK, {"authorization": secret}),
        (WORK, {"authorization": f"Bearer{secret}"}),
        (WORK, {"authorization": f"Bearer {secret} {secret}"}),
        (WORK, {"authorization": f"Bearer {secret.upper()}"}),
        (WORK, {"authorization": "Bearer"}),
        (WORK, {"authorization": "Bearer \xff"}),
        (WORK, {"cookie": f"token={secret}"}),
    ):
        assert served.ask("GET", path, **headers).status == 401, (path, headers)
    answer = served.ask("GET", WORK, authorization=f"bearer  {secret} ")
    assert answer.status == 204
    # What is open to anybody is so with any token, too.
    assert served.ask("GET", "/livez", token="hw_old").status == 200
