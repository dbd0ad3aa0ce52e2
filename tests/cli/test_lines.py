"""`headway enqueue --lines`: whole files, and answers that stay out."""

import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.cli import lines
from headway.cli.lines import batches
from headway.cli.refused import Refused
from tests.cli.conftest import Call


def written(path: Path, count: int, **more: object) -> Path:
    jobs = [{"payload": n, **more} for n in range(count)]
    path.write_text("\n\n".join(map(json.dumps, jobs)) + "\n")
    return path


def test_all_lines_become_jobs(call: Call, tmp_path: Path) -> None:
    file = written(tmp_path / "jobs", 2_500, delay="1h")
    assert "2,500 jobs sent to bulk" in call("enqueue", "bulk", "--lines", file).stdout
    found = json.loads(call("queue", "show", "bulk", "--json").stdout)
    assert found["counts"]["scheduled"] == 2_500


def test_lines_come_from_stdin_and_known_keys_are_told(call: Call) -> None:
    given = '{"idempotency_key": "a"}\n{"idempotency_key": "b"}\n'
    arguments = ("enqueue", "keyed", "--lines", "-")
    assert call(*arguments, given=given).stdout == "2 jobs sent to keyed\n"
    done = call(*arguments, "--json", given=given)
    assert json.loads(done.stdout) == {"jobs": 2, "duplicates": 2, "shed": 0}


def test_a_line_that_is_no_job_is_named_and_what_was_taken(
    call: Call, tmp_path: Path
) -> None:
    file = written(tmp_path / "jobs", 1_000)
    with file.open("a") as end:
        end.write('{"payload": 1}\nno job\n')
    done = call("enqueue", "some", "--lines", file, status=2)
    assert "line 2001 is no job" in done.stderr
    assert done.stderr.count("\n") == 1
    done = call("enqueue", "some", "--lines", "-", given='{"pay": 1}', status=2)
    assert "0 jobs before were taken, lines 1 to 1 were not taken" in done.stderr


def test_batches_are_bounded_and_know_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "BATCH_BYTES", 60)
    keyed = b'{"idempotency_key":"x"}\n'
    found = list(batches(io.BytesIO(keyed * 3 + b'\n{"payload":1}')))
    assert [(one.first, one.last, len(one.jobs)) for one in found] == [
        (1, 2, 2),
        (3, 5, 2),
    ]
    assert [one.is_repeatable for one in found] == [True, False]
    monkeypatch.setattr(lines, "LINE_BYTES", 8)
    with pytest.raises(Refused, match="line 1 is longer"):
        list(batches(io.BytesIO(keyed)))


@contextmanager
def deaf(answers: list[bytes]) -> Iterator[tuple[str, list[int]]]:
    """A server that answers each connection's request as listed; b"" hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))
    met: list[int] = []

    def serve() -> None:
        for answer in answers:
            line, _ = listener.accept()
            with line, line.makefile("rb") as text:
                length = 0
                while head := text.readline().strip():
                    if head.lower().startswith(b"content-length:"):
                        length = int(head.split(b":")[1])
                met.append(len(json.loads(text.read(length))))
                line.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", met
    thread.join(10)


def answer(status: str, body: object) -> bytes:
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(text)}\r\n"
    return head.encode() + b"\r\n" + text


TAKEN = answer("201 Created", {"jobs": [], "duplicates": 1})
BUSY = answer("503 Busy", {"title": "busy", "code": "busy"})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "FIRST_PAUSE_S", 0.001)


def test_lines_with_keys_are_sent_again_when_an_answer_stays_out(
    call: Call, tmp_path: Path
) -> None:
    file = written(tmp_path / "jobs", 1, idempotency_key="k")
    with deaf([b"", BUSY, TAKEN]) as (url, met):
        done = call("enqueue", "q", "--lines", file, "--server", url)
    assert "1 job sent to q, 1 of them known already" in done.stdout
    assert met == [1, 1, 1]


def test_lines_without_keys_are_never_sent_twice(call: Call, tmp_path: Path) -> None:
    file = written(tmp_path / "jobs", 1)
    with deaf([b""]) as (url, met):
        done = call("enqueue", "q", "--lines", file, "--server", url, status=2)
    assert "lines 1 to 1 may or may not have been taken" in done.stderr
    assert met == [1]


def test_lines_without_keys_are_sent_again_when_nothing_was_done(
    call: Call, tmp_path: Path
) -> None:
    file = written(tmp_path / "jobs", 1)
    with deaf([BUSY, TAKEN]) as (url, met):
        call("enqueue", "q", "--lines", file, "--server", url)
    assert met == [1, 1]
