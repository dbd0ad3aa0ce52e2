"""Replies from JSON lines, and what all bridges do whatever they read."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headway.bridge.lines import LINE_BYTES_MAX, Lines
from tests.bridge.crossing import Bridging, made_queue, replies, wait_for
from tests.server.process import Serve, Served, command

OPTIONS = ("--queue", "orders", "--key", "value.order")


def run(served: Served, given: bytes, *options: str) -> Any:
    """What it tells at its end of lines that come by standard input."""
    done = subprocess.run(
        command("bridge", "lines", *options, "--server", served.address),
        input=given,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def lines_of(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_lines_are_replies_and_the_same_lines_again_change_nothing(
    serve: Serve,
) -> None:
    served = serve()
    wait_for(served, [f"o{number}" for number in range(50)])
    given = lines_of(*({"order": f"o{number}", "n": number} for number in range(50)))
    assert run(served, given, *OPTIONS)[-1]["resolved"] == 50
    last = run(served, given.rstrip(), *OPTIONS)[-1]
    assert (last["event"], last["repeated"], last["in_flight"]) == ("stopped", 50, 0)
    found = replies(served, 50)
    assert {key: value["n"] for key, value in found.items()} == {
        f"o{number}": number for number in range(50)
    }


def test_of_two_replies_of_one_key_the_earlier_counts(serve: Serve) -> None:
    served = serve()
    made_queue(served)
    keys = [f"o{number}" for number in range(40)]
    values = [{"order": key, "turn": turn} for key in keys for turn in range(5)]
    last = run(served, lines_of(*values), *OPTIONS)[-1]
    assert (last["early"], last["repeated"]) == (40, 160)
    wait_for(served, keys)
    found = replies(served, 40)
    assert {value["turn"] for value in found.values()} == {0}


def test_bad_lines_are_told_by_their_number_and_the_rest_goes_on(serve: Serve) -> None:
    served = serve()
    made_queue(served)
    long = b'{"order": "' + b"x" * (LINE_BYTES_MAX + 1) + b'"}\n'
    given = b"\n" + lines_of({"order": 1}) + b"nonsense\n" + long + b'{"order": 2}'
    told = run(served, given, *OPTIONS)
    bad = [line for line in told if line["event"] == "bad message"]
    assert sorted((line["offset"], line["why"]) for line in bad) == [
        (2, "value: it is no JSON"),
        (3, "the line is longer than 2 MiB"),
    ]
    assert (told[-1]["early"], told[-1]["bad"]) == (2, 2)


def test_a_file_is_read_to_its_end_and_early_replies_that_find_no_room_wait(
    serve: Serve, tmp_path: Path
) -> None:
    served = serve()
    assert served.ask("PUT", "/v1/queues/orders", {"early_replies": 3}).status < 300
    file = tmp_path / "answers.ndjson"
    file.write_bytes(lines_of(*({"order": f"o{number}"} for number in range(5))))
    options = ("lines", str(file), *OPTIONS, "--report-every", "100ms")
    with Bridging(tmp_path, served, *options) as bridge:
        bridge.until(lambda: bridge.counts().get("early") == 3)
        bridge.until(lambda: bool(bridge.events("put off")))
        wait_for(served, [f"o{number}" for number in range(5)])
        assert bridge.ended() == 0
    assert bridge.counts()["early"] + bridge.counts()["resolved"] == 5
    assert len(replies(served, 5)) == 5


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_lines_are_found_however_they_arrive(size: int) -> None:
    reading, writing = os.pipe()
    source = Lines(reading, "pipe")
    texts = [b'{"a": 1}', b"", b"x" * 100, b"last"]
    content = b"\n".join(texts)
    found: list[bytes | None] = []
    try:
        for at in range(0, len(content), size):
            os.write(writing, content[at : at + size])
            found += [message.value for message in source.poll(10, 0.0)]
            assert not source.is_over
        os.close(writing)
        while not source.is_over:
            found += [message.value for message in source.poll(10, 0.0)]
    finally:
        os.close(reading)
    assert found == [text for text in texts if text]
