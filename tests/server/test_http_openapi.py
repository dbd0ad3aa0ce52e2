"""The description of the API is valid, complete, and keeps to itself."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator

from headway.server.handlers.table import ROUTES
from headway.server.openapi import describe
from headway.server.problems import CODES, problem
from headway.server.routing import Route

DOCUMENT: dict[str, Any] = json.loads(describe(ROUTES))
PROBLEM = "application/problem+json"


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def errors_of(schema: Any, value: Any) -> list[str]:
    """Against a schema of the document, whose references lead into the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def test_document_is_valid() -> None:
    assert [
        str(error) for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()
    ] == []


def test_every_route_is_described_once() -> None:
    described = {(method, path) for method, path, _ in operations()}
    assert described == {(route.method, route.path) for route in ROUTES}
    assert len(ROUTES) == len(described)


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    known = {tag["name"] for tag in DOCUMENT["tags"]}
    for method, path, operation in operations():
        assert operation["summary"].endswith("."), (method, path)
        assert set(operation["tags"]) <= known, (method, path)


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_schemas_are_valid(name: str) -> None:
    Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])


def test_bodies_have_examples_that_keep_to_their_schemas() -> None:
    for method, path, operation in operations():
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            assert "example" in content, (method, path)
            assert errors_of(content["schema"], content["example"]) == [], (
                method,
                path,
            )


def test_examples_within_schemas_keep_to_them() -> None:
    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            for example in schema.get("examples", ()):
                assert errors_of(schema, example) == [], schema
            if "default" in schema:
                assert errors_of(schema, schema["default"]) == [], schema
            for inner in schema.values():
                walk(inner)
        elif isinstance(schema, list):
            for inner in schema:
                walk(inner)

    walk(DOCUMENT["components"]["schemas"])


def test_patterns_hold_no_rule_of_python_alone() -> None:
    text = json.dumps(DOCUMENT)
    assert "(?!" not in text
    assert "\\\\Z" not in text


def told(route: Route) -> dict[str, set[str]]:
    """Codes by status, as an operation lists them."""
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    found: dict[str, set[str]] = {}
    for status, answer in operation["responses"].items():
        if PROBLEM in answer["content"] if "content" in answer else False:
            limits = answer["content"][PROBLEM]["schema"]["allOf"][1]["properties"]
            assert limits["status"] == {"const": int(status)}
            found[status] = set(limits["code"]["enum"])
    return found


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_problem_of_a_route_is_listed_under_its_status(route: Route) -> None:
    by_status = told(route)
    listed = set().union(*by_status.values())
    assert set(route.problems) <= listed
    for status, codes in by_status.items():
        assert {CODES[code].status for code in codes} == {int(status)}
    if route.body is not None:
        assert {"bad_json", "unsupported_media_type", "too_large"} <= listed
    assert ("unauthorized" in listed) == route.verb.is_scope


@pytest.mark.parametrize("code", CODES)
def test_every_problem_is_told_as_the_schema_has_it(code: str) -> None:
    body = json.loads(problem(code, "why", "key").body)
    schema = {"$ref": "#/components/schemas/Problem"}
    assert errors_of(schema, body) == []
    assert body["type"] == f"urn:headway:problem:{code}"
    assert errors_of(schema, {**body, "status": "400"}) != []
