"""A type checker finds a wrong argument before anybody runs it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER = """
import headway

app = headway.App("memory:")


@app.job(queue="mail", slo="5s", tenant=lambda to, **_: to)
def send(to: str, count: int = 1) -> str:
    return to * count


@app.job
async def plain(number: int) -> None:
    return None


@app.job(result="1h")
async def counted() -> int:
    return 1


@send.on_reply
def sent(reply: dict[str, str], to: str, count: int = 1) -> None:
    return None


send.enqueue("ada", count=2)
send.options(delay="5s", key="k").enqueue("ada")
text: str = send("ada")
job: str = send.enqueue("ada")
answer: str = send.enqueue("ada").result("5s")
number: int = counted.enqueue().result()


async def main() -> None:
    await send.aenqueue("ada")
    await plain(1)
    answer: str = await (await send.aenqueue("ada")).aresult("5s")
    number: int = await counted.enqueue().aresult()
    for one in await counted.aenqueue_many([()]):
        number = one.result()
"""
WRONG = {
    "send.enqueue(1)": "arg-type",
    'send.enqueue("ada", cuont=2)': "call-arg",
    'send.options(delay="5s").enqueue()': "call-arg",
    'send.options(dealy="5s")': "call-arg",
    'plain.enqueue("1")': "arg-type",
    "app.job(queue=1)": "call-overload",
    'wrong: int = send("ada")': "assignment",
    'wrong_too: int = send.enqueue("ada").result()': "assignment",
    "wrong_again: str = counted.enqueue().result()": "assignment",
    "send.enqueue_many([()])[0].result().bit_length()": "attr-defined",
}


def check(tmp_path: Path, text: str) -> str:
    file = tmp_path / "user.py"
    file.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache")],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is in the group check"
)
def test_type_checker_knows_the_handlers_own_signature(tmp_path: Path) -> None:
    first = len(USER.splitlines()) + 1
    said = check(tmp_path, USER + "\n".join(WRONG) + "\n")
    found = {
        int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]")
        for line in said.splitlines()
        if ": error: " in line
    }
    assert found == dict(enumerate(WRONG.values(), first)), said
