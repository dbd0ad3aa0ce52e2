"""Writes docs/http-reference.md from the server's own description of its routes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.server.handlers.table import ROUTES
from headway.server.openapi import describe
from headway.server.scopes import Verb

PAGE = Path("docs/http-reference.md")
HEAD = """# HTTP routes

Written by `make docs` from the routes themselves: the same that `GET /openapi.json` describes
for programs. How requests are read, what is limited and what errors look like is in
[HTTP](http.md); what the verbs in *needs* mean, in [security](security.md#scopes).

The examples run as they stand, but for those that steer a cluster. They expect the server's
address in `HEADWAY_SERVER`, as the command line does, and name what you would have from
earlier answers by variables: `$job`, `$token` of a lease, `$number` of an operation; of a
signed message, its `$message`, `$time` in seconds and `$signature`. With tokens, add
`-H "authorization: Bearer $HEADWAY_TOKEN"`.

Durations are milliseconds or text such as `"5s"`, moments milliseconds since 1970 or text such
as `"2026-11-27T08:00:00Z"`. Fields in bold must be there. Every route can also answer with the
[errors](http.md#errors) that any request may meet; *problems* are those beside them.
"""
NAMES = {
    "attempt": "a1",
    "file": "style.css",
    "id": "$job",
    "key": "order-17",
    "kind": "send_mail",
    "name": "nightly",
    "number": "$number",
    "partition": "p1",
    "queue": "mail",
    "reader": "lake",
    "source": "carrier",
    "tenant": "acme",
}
"""What stands for the names of a path in examples."""
OTHERS = {
    "DELETE /v1/jobs/{id}": {"id": "$other"},
    "DELETE /v1/queues/{queue}/schedules/{name}": {"name": "old"},
    "GET /v1/jobs/{id}/result": {"id": "$done"},
    "POST /v1/callbacks/{source}/{key}": {"source": "parcels", "key": "17"},
    "POST /v1/jobs/{id}/redrive": {"id": "$dead"},
    "POST /ack/{id}": {"id": "$record"},
    "POST /nack/{id}": {"id": "$record"},
    "PUT /v1/writes/{id}/chunks/{partition}/{attempt}/{number}": {
        "id": "write-1",
        "partition": "0",
        "number": "0",
    },
    "POST /v1/writes/{id}/publish": {"id": "write-2"},
    "GET /v1/writes/{id}": {"id": "write-1"},
    "DELETE /v1/writes/{id}": {"id": "write-1"},
}
OTHERS |= {
    f"POST /v1/nodes/{{name}}/{verb}": {"name": "rack-2"}
    for verb in ("drain", "undrain")
}
QUERIES = {
    "GET /v1/jobs": "?queue=mail&limit=10",
    "GET /v1/history/{partition}": "?first=1",
    "PUT /v1/writes/{id}/chunks/{partition}/{attempt}/{number}": "?queue=mail",
}
TOKEN = "p1_0000000100000001c0ffee00c0ffee00.mail"
"""The token of the routes' own examples."""
SIGNED = (
    ' \\\n    -H "webhook-id: $message" -H "webhook-timestamp: $time"'
    ' \\\n    -H "webhook-signature: $signature"'
)
BINARY = {"GET /v1/history/{partition}"}
Schema = dict[str, Any]


def page() -> str:
    document = json.loads(describe(ROUTES))
    parts = [HEAD]
    for tag in document["tags"]:
        parts.append(f"\n## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    parts += told(method.upper(), path, operation, document)
    parts += types(document["components"]["schemas"])
    return "".join(parts)


def types(schemas: Schema) -> Iterator[str]:
    """Objects that are part of others, so that no table above shows their fields."""
    text = json.dumps([found.get("properties", {}) for found in schemas.values()])
    yield "\n## Types\n\nWhat the tables above name, and what answers hold.\n"
    for name in sorted(schemas):
        found = schemas[name]
        if f'schemas/{name}"' not in text or not found.get("properties"):
            continue
        yield f"\n### {name}\n\n{found.get('description', '')}\n"
        yield "\n| field | type |\n|---|---|\n"
        for field, schema in found["properties"].items():
            shown = (
                f"**`{field}`**" if field in found.get("required", ()) else f"`{field}`"
            )
            yield f"| {shown} | {kind(schema)} |\n"


def told(
    method: str, path: str, operation: dict[str, Any], document: Schema
) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    yield f"\n### {method} {path}\n\n{operation['summary']}\n"
    if "description" in operation:
        yield f"{operation['description']}\n"
    yield f"\n*Needs* {needed(method, path)}.\n"
    rows = [*parameters(operation), *body(operation, schemas)]
    if rows:
        yield "\n| | field | type |\n|---|---|---|\n" + "".join(rows)
    yield example(method, path, operation)
    yield "\n" + "; ".join(answers(operation, schemas)) + ".\n"
    if codes := problems(method, path):
        yield f"\n*Problems*: {', '.join(f'`{code}`' for code in codes)}.\n"


def needed(method: str, path: str) -> str:
    (route,) = [one for one in ROUTES if (one.method, one.path) == (method, path)]
    if route.verb is Verb.OPEN:
        return "nothing"
    if route.verb is Verb.SIGNED:
        return "a [signature](replies.md#signed-callbacks)"
    return f"`{route.verb}`"


def problems(method: str, path: str) -> tuple[str, ...]:
    (route,) = [one for one in ROUTES if (one.method, one.path) == (method, path)]
    return route.problems


def parameters(operation: dict[str, Any]) -> Iterator[str]:
    for one in operation.get("parameters", ()):
        if one["in"] != "path":
            yield row(one["in"], one["name"], one["schema"], one["required"])


def body(operation: dict[str, Any], schemas: Schema) -> Iterator[str]:
    if "requestBody" not in operation:
        return
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    found = resolved(schema, schemas)
    for name, field in found.get("properties", {}).items():
        yield row("body", name, field, name in found.get("required", ()))


def resolved(schema: Schema, schemas: Schema) -> Schema:
    """The object behind a reference; of one or many, that of one."""
    if "$ref" in schema:
        found: Schema = schemas[schema["$ref"].rpartition("/")[2]]
        return found
    for choice in schema.get("anyOf", ()):
        if "$ref" in choice:
            return resolved(choice, schemas)
    if "items" in schema:
        return resolved(schema["items"], schemas)
    return schema


def row(place: str, name: str, schema: Schema, is_required: bool) -> str:
    shown = f"**`{name}`**" if is_required else f"`{name}`"
    return f"| {place} | {shown} | {kind(schema)} |\n"


def kind(schema: Schema) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        choices = [kind(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(choices))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    if "const" in schema:
        return f"`{schema['const']}`"
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            parts = ", ".join(kind(one) for one in schema["prefixItems"])
            return f"list: {parts}"
        case "array":
            return f"list of {kind(schema.get('items', {}))}"
        case "object":
            return f"{kind(schema.get('additionalProperties') or {})} by name"
        case "string" if "examples" in schema:
            return f'text such as `"{schema["examples"][0]}"`'
        case "integer":
            return "whole number"
        case None:
            return "any JSON"
        case other:
            return {"string": "text", "boolean": "true or false"}.get(other, str(other))


def example(method: str, path: str, operation: dict[str, Any]) -> str:
    route = f"{method} {path}"
    address = path
    for name, value in {**NAMES, **OTHERS.get(route, {})}.items():
        address = address.replace("{" + name + "}", value)
    words = ["curl -s --fail-with-body"]
    content = operation.get("requestBody", {}).get("content", {})
    given = content.get("application/json", {}).get("example")
    if method not in {"GET", "POST"} or (method == "POST" and given is None):
        words.append(f"-X {method}")
    words.append(f'"$HEADWAY_SERVER{address}{QUERIES.get(route, "")}"')
    if route in BINARY:
        words.append("-o events.bin")
    lines = " ".join(words)
    if "callbacks" in path:
        lines += SIGNED
    if given is not None:
        lines += f" \\\n    -H 'content-type: application/json' -d {quoted(given)}"
    return f"\n```sh\n{lines}\n```\n"


def quoted(given: Any) -> str:
    text = json.dumps(given)
    if TOKEN in text:
        text = text.replace(TOKEN, "'\"$token\"'")
    return f"'{text}'"


def answers(operation: dict[str, Any], schemas: Schema) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        if int(status) >= 400:
            continue
        content = answer.get("content", {})
        if "application/json" not in content:
            yield f"*{status}* {' or '.join(f'`{one}`' for one in content) or 'no body'}"
            continue
        found = resolved(content["application/json"]["schema"], schemas)
        fields = ", ".join(f"`{name}`" for name in found.get("properties", ()))
        yield f"*{status}* with {fields}" if fields else f"*{status}* with JSON"


def main() -> None:
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
