"""The server against its own description: whatever is asked, the answer is in it."""

import collections
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis.errors import Unsatisfiable
from schemathesis import checks
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.engine import events, from_schema
from schemathesis.generation import GenerationMode
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER

from tests.server.serving_fixture import PATIENCE_S, Serving, serving

GENERAL = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
"""What holds for every request, good or bad."""


class Drive:
    """Asks, counts what was asked, and remembers what was wrong with the answers."""

    def __init__(self, server: Serving, examples: int, phases: list[str]) -> None:
        self.server = server
        self.count = 0
        self.statuses: collections.Counter[int] = collections.Counter()
        self.failures: list[str] = []
        self.schema = schemathesis.openapi.from_url(
            f"{server.address}/openapi.json", config=config(examples, phases)
        )

    @contextmanager
    def hooked(self) -> Iterator[None]:
        def before_call(_: Any, case: Any, kwargs: Any) -> None:
            shorten(case)

        def after_call(_: Any, case: Any, response: Any) -> None:
            self.count += 1
            self.statuses[response.status_code] += 1

        schemathesis.hook(before_call)
        schemathesis.hook(after_call)
        try:
            yield
        finally:
            GLOBAL_HOOK_DISPATCHER.unregister(before_call)
            GLOBAL_HOOK_DISPATCHER.unregister(after_call)

    def run_engine(self) -> None:
        for event in from_schema(self.schema).execute():
            if isinstance(event, events.NonFatalError | events.FatalError):
                self.failures.append(repr(event))
            elif isinstance(event, events.ScenarioFinished):
                self._look_at(event.recorder)

    def _look_at(self, recorder: Any) -> None:
        for nodes in recorder.checks.values():
            for node in nodes:
                if node.failure_info is not None:
                    info = node.failure_info
                    self.failures.append(f"{info.failure}\n{info.code_sample}")

    def cross(self, pool: int, until: int) -> None:
        """Generating is dear, so that generated requests have children by each other."""
        chance = random.Random(7)
        families = [found for found in self._families(pool) if len(found) > 1]
        with requests.Session() as session:
            while self.count < until:
                for cases in families:
                    one, other = chance.sample(cases, 2)
                    self._ask(child(one, other, chance), session)

    def _families(self, pool: int) -> Iterator[list[Any]]:
        for result in self.schema.get_all_operations():
            assert isinstance(result, Ok)
            operation = result.ok()
            found: list[Any] = []
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                size = pool if mode is GenerationMode.POSITIVE else pool // 3
                generate(operation.as_strategy(generation_mode=mode), size, found)
            yield found

    def _ask(self, case: Any, session: requests.Session) -> None:
        shorten(case)
        response = case.call(session=session, timeout=PATIENCE_S)
        try:
            case.validate_response(response, checks=GENERAL)
        except (Failure, FailureGroup) as error:
            self.failures.append(str(error))


def config(examples: int, phases: list[str]) -> Any:
    every = ("examples", "coverage", "fuzzing", "stateful")
    return schemathesis.Config.from_dict(
        {
            "seed": 7,
            "suppress-health-check": ["all"],
            "request-timeout": PATIENCE_S,
            "generation": {
                "max-examples": examples,
                "deterministic": True,
                "no-shrink": True,
                "database": "none",
            },
            "phases": {name: {"enabled": name in phases} for name in every},
            "checks": {
                # No pattern can say which dates and time zones there are.
                "positive_data_acceptance": {"enabled": False},
                # DELETE cancels a job, whose history stays, and discards a write that
                # was not published, or says that it was.
                "use_after_free": {"enabled": False},
            },
        }
    )


def generate(strategy: Any, size: int, found: list[Any]) -> None:
    @hypothesis.settings(
        max_examples=size,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(case: Any) -> None:
        found.append(case)

    with suppress(Unsatisfiable):
        collect()


def child(one: Any, other: Any, chance: random.Random) -> Any:
    """Each part, and each member of the body, from either parent."""

    def mixed(first: Any, second: Any) -> Any:
        if not isinstance(first, dict) or not isinstance(second, dict):
            return chance.choice((first, second))
        picked: dict[str, Any] = {}
        for name in [*first, *(name for name in second if name not in first)]:
            parent = chance.choice((first, second))
            if name in parent:
                picked[name] = parent[name]
        return picked

    return one.operation.Case(
        method=one.operation.method.upper(),
        path_parameters=mixed(one.path_parameters, other.path_parameters),
        headers=chance.choice((one.headers, other.headers)),
        cookies=chance.choice((one.cookies, other.cookies)),
        query=mixed(one.query, other.query),
        body=mixed(one.body, other.body),
        media_type=chance.choice((one.media_type, other.media_type)),
    )


def shorten(case: Any) -> None:
    """Nobody waits for jobs here; a wait that is refused stays as it is."""
    body = case.body
    if case.path == "/v1/lease" and isinstance(body, dict):
        wait = body.get("wait")
        if isinstance(wait, str) or (isinstance(wait, int) and wait > 0):
            body["wait"] = 0


def drive(server: Serving, examples: int, phases: list[str], least: int) -> Drive:
    driven = Drive(server, examples, phases)
    with driven.hooked():
        driven.run_engine()
        driven.cross(3 * examples, least)
    return driven


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving() as running:
        # The index has a process of its own, which may come a little later.
        while running.ask("GET", "/v1/jobs").status == 503:
            assert running.process.poll() is None
        yield running


def check(driven: Drive, least: int) -> None:
    assert driven.failures == [], "\n\n".join(driven.failures[:5])
    assert driven.count >= least
    assert {200, 201, 204, 400, 404, 405} <= set(driven.statuses)
    assert driven.server.ask("GET", "/readyz").status == 200


def test_answers_are_as_described(server: Serving) -> None:
    driven = drive(server, 3, ["examples", "coverage", "stateful"], 5_000)
    check(driven, 5_000)
    assert driven.server.process.poll() is None


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_answers_are_as_described_at_length(server: Serving) -> None:
    phases = ["examples", "coverage", "fuzzing", "stateful"]
    driven = drive(server, 100, phases, 100_000)
    check(driven, 100_000)
    assert driven.server.process.poll() is None
