"""TLS: with a certificate there is no way in without it."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.server.process import PATIENCE_S, Serve, command, make_token

openssl = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(openssl is None, reason="needs the openssl command")


def certify(data: Path, *more: str) -> tuple[str, ...]:
    """A certificate for 127.0.0.1, and the options that name it."""
    data.mkdir(exist_ok=True)
    certificate, key = str(data / "tls.crt"), str(data / "tls.key")
    assert openssl is not None
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=headway"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
            *(more or ("-nodes",)),
        ],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return "--certificate", certificate, "--private-key", key


def refused(data: Path, *options: str) -> str:
    done = subprocess.run(
        command("serve", "--data", str(data), "--port", "0", *options),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.splitlines()[-1]


@needs_openssl
def test_requests_are_answered_over_tls_and_in_no_other_way(
    serve: Serve, tmp_path: Path
) -> None:
    options = certify(tmp_path / "data")
    secret = make_token(tmp_path / "data", "a", "admin")
    served = serve(*options)
    assert served.address.startswith("https://")
    assert served.ask("GET", "/record", token=secret).status == 204
    with socket.create_connection(served.place, timeout=PATIENCE_S) as plain:
        plain.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = plain.makefile("rb").read()
    assert b"HTTP/" not in got
    assert served.ask("GET", "/livez").status == 200
    assert served.stop() == 0
    assert [event["event"] for event in served.events()] == [
        "started",
        "stopping",
        "stopped",
    ]
    assert served.events()[0]["tls"] is True


@needs_openssl
def test_old_versions_of_tls_are_refused(serve: Serve, tmp_path: Path) -> None:
    served = serve(*certify(tmp_path / "data"))
    place = "{}:{}".format(*served.place)
    assert openssl is not None
    for version, is_good in (("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
        # At the lowest level of security the command itself refuses no version.
        ciphers = ("-cipher", "DEFAULT@SECLEVEL=0")
        done = subprocess.run(
            [openssl, "s_client", "-connect", place, version, *ciphers],
            input=b"",
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode == 0) == is_good, version


@needs_openssl
def test_a_key_behind_a_password_is_refused_without_a_question(tmp_path: Path) -> None:
    data = tmp_path / "data"
    options = certify(data, "-passout", "pass:secret")
    assert "the key is encrypted" in refused(data, *options)


@needs_openssl
def test_a_certificate_and_a_key_of_another_are_refused(tmp_path: Path) -> None:
    options = certify(tmp_path / "one")
    other = certify(tmp_path / "two")
    said = refused(tmp_path / "data", *options[:2], *other[2:])
    assert said.startswith("headway: certificate = ")


def test_files_that_are_missing_or_not_given_are_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.pem")
    said = refused(tmp_path, "--certificate", gone, "--private-key", gone)
    assert "gone.pem" in said
    assert "needs a certificate" in refused(tmp_path, "--certificate", gone)


def test_tokens_without_tls_are_warned_of_where_others_may_listen(
    serve: Serve, tmp_path: Path
) -> None:
    make_token(tmp_path / "data", "a", "admin")
    # Not known for a loopback address by its text, and one all the same.
    far = serve("--host", "127.1")
    far.stop()
    assert [event["event"] for event in far.events()][:2] == ["started", "no tls"]
    near = serve()
    near.stop()
    assert "no tls" not in [event["event"] for event in near.events()]
