"""The description of the API, made from its routes and their types."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final, get_args, get_type_hints

import msgspec

from headway.server.problems import CODES, KIND
from headway.server.routing import NDJSON, Route
from headway.server.scopes import Verb
from headway.wire.live import REASON, REASON_MAX, REASON_PATTERN
from headway.wire.problems import Problem
from headway.wire.values import END, QUEUE, TEXT

_REFERENCE: Final = "#/components/schemas/{name}"
_ALWAYS: Final = (
    "bad_http",
    "bad_value",
    "misdirected",
    "cross_site",
    "too_slow",
    "uri_too_long",
    "headers_too_large",
    "busy",
    "stopped",
)
"""What every route may answer, whatever is asked of it."""
_WITH_BODY: Final = ("bad_json", "too_large", "unsupported_media_type")
_WITH_TOKEN: Final = ("unauthorized", "forbidden")
_SIGNED_BY: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
_TAGS: Final = {
    "jobs": "Enqueue jobs, look at them, cancel them.",
    "work": "What workers do, and replies from outside.",
    "writes": "Millions of jobs, sent in chunks and published as a whole.",
    "queues": "Queues, their rules, tenants and kinds.",
    "dead": "Dead letters: list, redrive, discard.",
    "schedules": "Jobs at every tick of a cron expression.",
    "operations": "Bulk operations and capacity.",
    "history": "Everything that happened, by number, for those who read all of it.",
    "records": "One simple queue by four endpoints.",
    "cluster": "Nodes and partitions.",
    "dashboard": "The dashboard, and what it alone asks for.",
    "about": "Health, metrics and this description.",
}


def describe(routes: Iterable[Route]) -> bytes:
    """The OpenAPI 3.1 document."""
    routes = tuple(routes)
    types = [Problem]
    for route in routes:
        kinds = (route.body, *route.answers.values())
        types += [kind for kind in kinds if kind and not isinstance(kind, str | tuple)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    by_type = dict(zip(map(_key, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        methods = paths.setdefault(route.path, {})
        methods[route.method.lower()] = _operation(route, by_type)
    used = [tag for tag in _TAGS if any(route.tag == tag for route in routes)]
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Headway",
            "version": version("headway"),
            "description": "A durable job queue that keeps its promises.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag, "description": _TAGS[tag]} for tag in used],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    # Patterns of JSON Schema know no newline behind the end, so none is ruled out.
    return msgspec.json.encode(document).replace(msgspec.json.encode(END)[1:-1], b"$")


def _key(kind: Any) -> int:
    return id(kind)


def _operation(route: Route, schemas: Mapping[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.tag],
        "responses": _responses(route, schemas),
    }
    if route.description:
        found["description"] = " ".join(route.description.split())
    if not route.verb.is_scope:
        found["security"] = []
    parameters = [_path_parameter(name) for name in route.names]
    if route.is_reasoned:
        parameters.append(_reason_parameter())
    if route.verb is Verb.SIGNED:
        parameters += [_header_parameter(name) for name in _SIGNED_BY]
    if route.query is not None:
        parameters += _query_parameters(route.query)
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": schemas[_key(route.body)]}}
        if route.example is not None:
            content["application/json"]["example"] = route.example
        if route.is_lines:
            content[NDJSON] = {"schema": {"type": "string"}}
        found["requestBody"] = {"required": route.is_body_needed, "content": content}
    return found


def _responses(route: Route, schemas: Mapping[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in route.answers.items():
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if isinstance(kind, str | tuple):
            kinds = (kind,) if isinstance(kind, str) else kind
            text = {"schema": {"type": "string"}}
            answer["content"] = {one.partition(";")[0]: text for one in kinds}
        elif kind is not None:
            answer["content"] = {"application/json": {"schema": schemas[_key(kind)]}}
        found[str(status)] = answer
    codes = [*_ALWAYS, *route.problems]
    if route.body is not None:
        codes += _WITH_BODY
    if route.verb.is_scope:
        codes += _WITH_TOKEN
    if route.names:
        codes.append("not_found")
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(CODES[code].status, []).append(code)
    for status, names in sorted(by_status.items()):
        known = found.setdefault(str(status), {"description": "", "content": {}})
        content = known.setdefault("content", {})
        told = {"code": {"enum": names}, "status": {"const": status}}
        schema = {"allOf": [schemas[_key(Problem)], {"properties": told}]}
        content[KIND.decode()] = {"schema": schema}
        titles = "; ".join(f"`{name}`: {CODES[name].title}" for name in names)
        known["description"] = "; ".join(filter(None, (known["description"], titles)))
    return found


def _path_parameter(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
    if name == "queue":
        schema = {"type": "string", "pattern": QUEUE}
    elif name == "key":
        schema = {"type": "string", "pattern": TEXT, "minLength": 1, "maxLength": 1024}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _header_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "header", "required": True, "schema": schema}


def _reason_parameter() -> dict[str, Any]:
    text = "Why it is done, percent-encoded: kept beside who did it, and when."
    schema = {
        "type": "string",
        "pattern": REASON_PATTERN,
        "maxLength": 9 * REASON_MAX,
    }
    return {
        "name": REASON,
        "in": "header",
        "required": False,
        "description": text,
        "schema": schema,
    }


def _query_parameters(kind: Any) -> list[dict[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in msgspec.structs.fields(kind):
        hint = hints[field.name]
        options = [one for one in get_args(hint) if one is not type(None)]
        schema = msgspec.json.schema(options[0] if len(options) == 1 else hint)
        found.append(
            {
                "name": field.encode_name,
                "in": "query",
                "required": field.required,
                "schema": schema,
            }
        )
    return found
