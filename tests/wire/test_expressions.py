"""Keys and values out of messages: what expressions find, and how they say no."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadValue
from headway.wire.expressions import Given, NotFound, parse

ROOTS = ("value", "key", "header")
ORDER = {
    "order": {"id": 17, "no": "A-1", "a.b": "dots", "}": "brace", 'q"': "quote"},
    "items": [{"sku": "x"}, {"sku": "y"}],
    "": "empty",
}
MESSAGE = Given(
    json.dumps(ORDER).encode(),
    [("Correlation-Id", b"old"), ("correlation-id", b"c-1"), ("meta", b'{"id": 5}')],
    key=b"k-1",
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("value.order.id", "17"),
        ("value.order.no", "A-1"),
        ('value.order["a.b"]', "dots"),
        ('value.order["}"]', "brace"),
        (r'value.order["q\""]', "quote"),
        ('value[""]', "empty"),
        ("value.items[1].sku", "y"),
        ("key", "k-1"),
        ("header.correlation-id", "c-1"),
        ("header.CORRELATION-ID", "c-1"),
        ("header.meta.id", "5"),
        ("order-{value.order.id}", "order-17"),
        ("{value.order.id}/{key}", "17/k-1"),
        ('{value.order["}"]}!', "brace!"),
        ("{{{key}}}", "{k-1}"),
        ("}}{{", "}{"),
    ],
)
def test_a_key_is_taken_from_its_place(text: str, key: str) -> None:
    assert parse(text, "key", ROOTS).key(MESSAGE) == key


@pytest.mark.parametrize(
    ("text", "place", "rule"),
    [
        ("", None, "1 to 1024"),
        ("x" * 2_000, None, "1 to 1024"),
        ("value\n", None, "printable"),
        ("order", 1, "starts with one of header, key, value"),
        ("values.id", 1, "text needs a path in braces"),
        ("order-{id}", 8, "starts with one of"),
        ("order-{value.id", 16, "a { without its }"),
        ("order}", 6, "a } without its {"),
        ("{}", 2, "starts with one of"),
        ("value.", 6, "goes on with"),
        ("value..id", 6, "goes on with"),
        ("value.a b", 8, "goes on with"),
        ("value[-1]", 6, "goes on with"),
        ("value[x]", 6, "goes on with"),
        ('value["\\x"]', 6, "no JSON text"),
        ("value.__class__.x()|y z", 22, "goes on with"),
        ("header", 7, "a header has a name"),
        ("header[0]", 10, "a header has a name"),
        ("value" + ".a" * 40, 86, "at most 32 steps"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(
    text: str, place: int | None, rule: str
) -> None:
    with pytest.raises(BadValue) as caught:
        parse(text, "key", ROOTS)
    assert rule in str(caught.value)
    assert caught.value.key == "key"
    if place is not None:
        assert f"at character {place}:" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text", "why"),
    [
        (b"{", "value.id", "value: it is no JSON"),
        (b"\xff", "value.id", "value: it is no JSON"),
        (b"[" * 100_000, "value.id", "value: it is no JSON"),
        (None, "value.id", "there is no object for 'id'"),
        (b'{"id": {}}', "value.no", "there is no 'no'"),
        (b'{"id": 1.5}', "value.id", "neither text nor a whole number"),
        (b'{"id": true}', "value.id", "neither text nor a whole number"),
        (b'{"id": null}', "value.id", "neither text nor a whole number"),
        (b'{"id": []}', "order-{value.id}", "neither text nor a whole number"),
        (b'{"id": %s}' % (b"9" * 1_300), "value.id", "neither text nor a whole"),
        (b'{"id": {}}', "value.id[0]", "there is no list for [0]"),
        (b'{"id": []}', "value.id[0]", "the list has no item 0"),
        (b'{"id": ""}', "value.id", "1 to 1024 printable"),
        (b'{"id": "a\\nb"}', "value.id", "1 to 1024 printable"),
        (b'{"id": "%s"}' % (b"a" * 1_025), "value.id", "1 to 1024 printable"),
        (b"1", "key", "key: the message has none"),
        (b"1", "header.x", "header.x: the message has none"),
        (b"1", "header.broken", "header.broken: it is no UTF-8"),
    ],
)
def test_a_message_without_the_key_is_told_apart(
    value: bytes | None, text: str, why: str
) -> None:
    message = Given(value, [("broken", b"\xff"), ("x", None)])
    with pytest.raises(NotFound) as caught:
        parse(text, "key", ROOTS).key(message)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("value", json.dumps(ORDER).encode()),
        ("value.items[0]", b'{"sku":"x"}'),
        ("key", b'"k-1"'),
        ("{key}", b'"k-1"'),
        ("no. {value.order.id}", b'"no. 17"'),
    ],
)
def test_a_value_is_json(text: str, value: bytes) -> None:
    assert parse(text, "value", ROOTS).json(MESSAGE) == value


def test_the_whole_value_stays_as_it_was_written_and_none_is_null() -> None:
    whole = parse("value", "value", ROOTS)
    assert whole.json(Given(b' {"a":1.10} ')) == b' {"a":1.10} '
    assert whole.json(Given(None)) == b"null"
    with pytest.raises(NotFound, match="no JSON"):
        whole.json(Given(b'1, "payload_base64": "x"'))


def test_names_that_are_not_offered_are_not_read() -> None:
    with pytest.raises(BadValue, match="starts with one of id, value"):
        parse("header.x", "key", ("value", "id"))
    assert parse("{id}-{value.a}", "key", ("value", "id")).roots == {"id", "value"}


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        found = parse(text, "key", ROOTS)
    except BadValue:
        return
    try:
        key = found.key(MESSAGE)
    except NotFound:
        return
    assert key.isprintable()


@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
def test_any_name_can_be_written_and_any_text_around_it(name: str, around: str) -> None:
    quoted = json.dumps(name, ensure_ascii=True)
    shown = "".join(filter(str.isprintable, around))
    escaped = shown.replace("{", "{{").replace("}", "}}")
    message = Given(json.dumps({name: "x"}).encode())
    text = f"{escaped}{{value[{quoted}]}}"
    assert parse(text, "key", ROOTS).key(message) == f"{shown}x"
