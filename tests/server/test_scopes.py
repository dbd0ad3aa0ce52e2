"""Who may do what: every route by every verb on every kind of queue."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadValue
from headway.server.handlers.table import ROUTES
from headway.server.routing import Route
from headway.server.scopes import ANYBODY, NOBODY, Bearer, Scope, Verb, parse_scopes
from tests.server.process import Answer, Served, make_token
from tests.server.recipes import QUEUE, RECIPES, Target

VERBS: list[Verb] = [verb for verb in Verb if verb.is_scope]
PATTERNS = (QUEUE, QUEUE[:3] + "*", "other", "oth*", "*")
COVERING = (QUEUE, QUEUE[:3] + "*", "*")
OPEN = {"/livez", "/readyz", "/openapi.json", "/", "/dashboard/{file}"}
SIGNED = {"/v1/callbacks/{source}", "/v1/callbacks/{source}/{key}"}
FILLED = {"queue": QUEUE, "id": "p1_999", "file": "app.js"}
QUEUES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)


class Known(NamedTuple):
    """A server, and the tokens that it knows."""

    served: Served
    tokens: dict[tuple[Verb, str], str]
    admin: str
    expired: str

    def ask(self, route: Route, target: Target, token: str | None) -> Answer:
        return self.served.ask(route.method, target.path, target.body, token=token)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    data = tmp_path_factory.mktemp("scopes") / "data"
    tokens: dict[tuple[Verb, str], str] = {
        (verb, pattern): make_token(data, f"{verb}-{number}", f"{verb}:{pattern}")
        for verb in VERBS
        for number, pattern in enumerate(PATTERNS)
    }
    admin = make_token(data, "admin", "admin")
    expired = make_token(data, "expired", "admin", expires_ms=1)
    served = Served(data)
    served.until(200, f"/v1/jobs?queue={QUEUE}", admin)
    yield Known(served, tokens, admin, expired)
    served.stop()


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def asks_for_a_scope(route: Route) -> bool:
    return route.verb is not Verb.SIGNED


def target_of(route: Route, known: Known) -> Target:
    """A request that comes to a decision on QUEUE."""
    if not route.is_queue_checked:
        return RECIPES[named(route)].make(known.served, known.admin)
    path = route.path
    for name in route.names:
        path = path.replace(f"{{{name}}}", FILLED.get(name, "x"))
    return Target(path, route.example)


def is_allowed(route: Route, verb: Verb, pattern: str) -> bool:
    if route.verb is not verb:
        return False
    has_queue = not route.is_queue_checked or "queue" in route.names
    return pattern in COVERING if has_queue else pattern == "*"


def refusal(route: Route, verb: Verb) -> int:
    is_elsewhere = route.verb is verb and not route.is_queue_checked
    return RECIPES[named(route)].hidden if is_elsewhere else 403


def test_every_route_without_a_queue_in_its_path_has_a_recipe() -> None:
    wanted = {named(route) for route in ROUTES if not route.is_queue_checked}
    assert wanted == set(RECIPES), "tests/server/recipes.py says how to decide these"


def test_nothing_is_open_but_health_the_description_and_files_without_data() -> None:
    assert {route.path for route in ROUTES if route.verb is Verb.OPEN} == OPEN


def test_nothing_is_signed_but_callbacks_and_no_token_is_good_for_it(
    known: Known,
) -> None:
    routes = [route for route in ROUTES if route.verb is Verb.SIGNED]
    assert {route.path for route in routes} == SIGNED
    for route in routes:
        for token in (None, "hw_unknown", known.admin, *known.tokens.values()):
            answer = known.ask(route, target_of(route, known), token)
            assert (answer.status, answer.code) == (401, "bad_signature")
            assert not answer.headers["www-authenticate"].startswith("Bearer")


def test_every_verb_on_a_queue_is_checked_there() -> None:
    for route in ROUTES:
        if "queue" in route.names:
            assert route.is_queue_checked, named(route)


@pytest.mark.parametrize("route", [*filter(asks_for_a_scope, ROUTES)], ids=named)
def test_a_route_is_open_to_its_verb_on_its_queue_alone(
    route: Route, known: Known
) -> None:
    target = target_of(route, known)
    for token in (None, "hw_unknown", known.expired):
        answer = known.ask(route, target, token)
        if route.verb is Verb.OPEN:
            assert answer.status in route.answers
        else:
            assert answer.status == 401, token
            assert answer.headers["www-authenticate"].startswith("Bearer")
    allowed = []
    for (verb, pattern), token in known.tokens.items():
        if is_allowed(route, verb, pattern):
            allowed.append(token)
        elif route.verb is not Verb.OPEN:
            answer = known.ask(route, target, token)
            assert answer.status == refusal(route, verb), (verb, pattern, answer)
    for number, token in enumerate([*allowed, known.admin]):
        # The first finds what the refused have left: all of it.
        if number:
            target = target_of(route, known)
        answer = known.ask(route, target, token)
        assert answer.status not in (401, 403), answer
        assert answer.status < 500, answer
        if not route.is_queue_checked:
            assert answer.status in route.answers, answer


def test_a_job_that_may_be_read_but_not_cancelled_is_no_secret(known: Known) -> None:
    both = known.served.make_token("both", f"read:{QUEUE}", "manage:other")
    target = RECIPES["DELETE /v1/jobs/{id}"].make(known.served, known.admin)
    known.served.until(200, target.path, both)
    assert known.served.ask("DELETE", target.path, token=both).status == 403


def test_all_queues_are_leased_only_by_who_may_work_on_all(known: Known) -> None:
    tokens = known.tokens
    one, every = tokens[Verb.WORK, QUEUE], tokens[Verb.WORK, "*"]
    assert known.served.ask("POST", "/v1/lease", {}, token=one).status == 403
    assert known.served.ask("POST", "/v1/lease", {}, token=every).status == 200


def test_one_lease_of_another_queue_spoils_the_whole_ack(known: Known) -> None:
    served, admin = known.served, known.admin
    mine = RECIPES["POST /v1/ack"].make(served, admin).body
    path = "/v1/queues/other/jobs"
    assert served.ask("POST", path, {"kind": "x"}, token=admin).status == 201
    body = {"queues": ["other"]}
    (job,) = served.ask("POST", "/v1/lease", body, token=admin).json["jobs"]
    assert isinstance(mine, dict)
    both = {"tokens": [*mine["tokens"], job["token"]]}
    worker = known.tokens[Verb.WORK, QUEUE]
    assert served.ask("POST", "/v1/ack", both, token=worker).status == 403
    assert served.ask("POST", "/v1/ack", both, token=admin).json["stale"] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "work:",
        "open",
        "open:*",
        "signed",
        "signed:*",
        "WORK",
        "work:a b",
        "work:*a",
        "work:a**",
        "admin:x",
    ],
)
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        parse_scopes([text])


def test_admin_is_everything_and_nobody_nothing() -> None:
    admin = Bearer("admin", parse_scopes(["admin"]))
    for verb in VERBS:
        assert admin.may(verb, None)
        assert admin.may(verb, "any")
        assert ANYBODY.may(verb, None)
        assert not NOBODY.may(verb, "any")
        assert not NOBODY.may_some(verb)
    assert NOBODY.may(Verb.OPEN)
    assert NOBODY.may(Verb.SIGNED)


@given(st.sampled_from(VERBS), QUEUES, QUEUES)
def test_a_scope_is_good_for_its_verb_and_names_that_match(
    verb: Verb, name: str, queue: str
) -> None:
    exact, beginning = Scope(verb, name), Scope(verb, name + "*")
    assert exact.covers(verb, queue) == (name == queue)
    assert beginning.covers(verb, queue) == queue.startswith(name)
    assert not exact.covers(verb, None)
    assert not beginning.covers(verb, None)
    for other in set(VERBS) - {verb}:
        assert not beginning.covers(other, name)
    assert Scope.parse(str(beginning)) == beginning
