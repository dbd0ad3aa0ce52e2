"""Where the blocks of one page run: a folder, a shell, an interpreter and a server."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.docs.beside import BESIDE, SERVED_AS
from tests.docs.blocks import ROOT, Block, commands, is_like, steps
from tests.docs.standin import functions

HERE = Path(__file__).parent
ADDRESS = "http://127.0.0.1:8080"
LOAD = "--port 8080"
"""Where something looks for a server on this machine."""
PATIENCE_S = 60
PAUSE_S = 0.1
TRIES = 100
STAYING = ("serve", "worker", "bridge")
"""Commands that go on until they are stopped."""
ON_POSTGRES = {"docs/postgres.md"}
"""Pages whose SQL is for PostgreSQL: what is before them says how it runs."""
LOOKING = re.compile(
    r"headway (?:dead groups|dead list|job show|jobs|operation|queue show|queues|running"
    r"|timeline|why)|curl -s http"
)
"""Commands that only look: workers and the index may need a moment, so they are asked
again until they show what the page shows."""

SHELL = r"""
set -euo pipefail
make() { command make --no-print-directory -n -C "$ROOT" "$@" > make.log; }
if [ -f page.sh ]; then . ./page.sh; fi
"""
SHELL = f"{functions()}{SHELL}"
"""What a page may ask for that a test must not do: it is looked at instead."""


class Stage:
    """Runs blocks in the order of their page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.patience_s = PATIENCE_S
        self._beside = ExitStack()
        self._running: list[subprocess.Popen[Any]] = []
        self._driver: subprocess.Popen[str] | None = None
        self._env = self._environment()
        (folder / ".venv").symlink_to(sys.prefix)
        for name in ("examples", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)
        # Pages write into it.
        secrets = shutil.ignore_patterns("secrets")
        shutil.copytree(ROOT / "deploy", folder / "deploy", ignore=secrets)

    def _environment(self) -> dict[str, str]:
        binaries = Path(sys.executable).parent
        known = {
            **os.environ,
            "HTTP_PORT": "0",
            "PATH": f"{binaries}:{os.environ.get('PATH', '')}",
            "PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{self.folder}",
            "PYTHONUNBUFFERED": "1",
            "ROOT": str(ROOT),
            "COLUMNS": "100",
        }
        for name in ("HEADWAY_SERVER", "HEADWAY_TOKEN", "HEADWAY_URL", "MAKEFLAGS"):
            known.pop(name, None)
        return known

    def run(self, block: Block) -> None:
        text = self._placed(block.text)
        if block.title and block.language not in {"json", "http"}:
            target = self.folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif block.language == "sql":
            is_here = block.page in ON_POSTGRES
            code = f"sql({text!r})" if is_here else f"spark.sql({text!r}).collect()"
            self.python(code, str(ROOT / block.page), block.line)
        elif block.language == "python":
            self.python(text, str(ROOT / block.page), block.line)
        elif is_staying(block):
            if "headway bridge" in text:
                self.serve()
            if " --every " in text:
                # Something that it may find.
                self.shell("headway enqueue mail --kind welcome", str(block))
            self._start(text, block)
        elif block.language == "console":
            self._console(block)
        else:
            self.shell(text, str(block))

    def enter(self, page: str) -> None:
        """Before the first block of a page: its server, and what it takes for granted."""
        if page in BESIDE:
            self.know(self._beside.enter_context(BESIDE[page]()))
        name = Path(page).with_suffix("").name
        before = HERE / "before" / f"{name}.py"
        code = before.read_text() if before.exists() else ""
        if ADDRESS in code:
            self.serve()
        if code:
            self.python(self._placed(code), str(before), 0)

    def know(self, variables: Mapping[str, str]) -> None:
        """Everything that starts from now on has these in its environment."""
        self._env.update(variables)

    def serve(self) -> None:
        if not self.address:
            more = self._env.get(SERVED_AS, "")
            self._start(f"headway serve --data headway-data {more}", None)

    def _placed(self, text: str) -> str:
        if ADDRESS in text or "HEADWAY_SERVER" in text or LOAD in text:
            self.serve()
        if not self.address:
            return text
        here = LOAD.replace("8080", self.address.rpartition(":")[2])
        return text.replace(ADDRESS, self.address).replace(LOAD, here)

    def python(self, code: str, name: str, line: int) -> str:
        if self._driver is None:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "tests.docs.driver"],
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        asked = {"code": code, "name": name, "line": line}
        self._driver.stdin.write(json.dumps(asked) + "\n")
        self._driver.stdin.flush()
        ready, _, _ = select.select([self._driver.stdout], [], [], self.patience_s)
        assert ready, f"{name}:{line}: does not end"
        answer = json.loads(self._driver.stdout.readline())
        assert not answer["error"], answer["error"]
        return str(answer["said"])

    def shell(self, text: str, where: str, shown: str = "…") -> str:
        """Runs it; what only looks is asked again, until it shows what it should."""
        for _ in range(TRIES if LOOKING.match(text) else 1):
            done = self._bash(text)
            if done.returncode == 0 and is_like(done.stdout, shown):
                return done.stdout
            threading.Event().wait(PAUSE_S)
        raise AssertionError(f"{where}:\n{text}\n{done.stdout}{done.stderr}")

    def _bash(self, text: str) -> subprocess.CompletedProcess[str]:
        if re.search(r"\bheadway (?!serve)", text):
            self.serve()
        return subprocess.run(
            ["bash", "-c", SHELL + text],
            cwd=self.folder,
            env={**self._env, "BLOCK": text},
            capture_output=True,
            text=True,
            timeout=self.patience_s,
            check=False,
        )

    def _console(self, block: Block) -> None:
        for step in steps(block):
            text, shown = self._placed(step.command), self._placed(step.output)
            self.shell(text, str(block), shown)

    def _start(self, text: str, block: Block | None) -> None:
        """A server, a worker or a bridge, until the page is over.

        It is the last command; those before it end, and what they print is theirs.
        """
        *first, last = text.strip().replace("\\\n", " ").splitlines()
        script = "\n".join((SHELL + "{ :", *first, "} >&2", f"exec env {last}"))
        log = self.folder / f"{len(self._running)}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self._env,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._running.append(process)
        if " bridge " in last:
            self._wait_for(process, log, '"assigned"')
            return
        if " --every " in last:
            self._wait_for(process, log, "batch ")
            process.send_signal(signal.SIGINT)
            process.wait(self.patience_s)
            return
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
        said = process.stdout.readline() if ready else ""
        assert said.startswith("headway "), f"{block}: {said}{log.read_text()}"
        if " listens on " in said:
            self.address = said.split()[-1]
            self._env["HEADWAY_SERVER"] = self.address

    def _wait_for(self, process: subprocess.Popen[Any], log: Path, word: str) -> None:
        """Until its log says so."""
        until_s = time.monotonic() + self.patience_s
        while word not in log.read_text():
            is_there = process.poll() is None and time.monotonic() < until_s
            assert is_there, f"no {word}: {log.read_text()}"
            threading.Event().wait(PAUSE_S)

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver.communicate()
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        self._beside.close()


def is_staying(block: Block) -> bool:
    """Whether the block is one command that goes on, such as a server."""
    if block.language not in {"sh", "console"}:
        return False
    plain = [[word for word in words if "=" not in word] for words in commands(block)]
    return any(
        words[0].endswith("headway")
        and len(words) > 1
        and (words[1] in STAYING or "--every" in words)
        for words in plain
        if words
    )
