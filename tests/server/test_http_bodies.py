"""Bodies are read strictly, quickly, and come back byte for byte."""

import base64
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.server import bodies
from headway.server.problems import Refused
from headway.wire.jobs import NewJob
from tests.server.serving_fixture import Serving, serving

REFUSED = {
    "twice": b'{"a":1,"a":1}',
    "twice_within": b'[{"x":{"a":1,"b":2,"a":3}}]',
    "twice_by_escape": b'{"a":1,"\\u0061":2}',
    "twice_with_quotes": b'{"\\"":1,"\\u0022":"\\\\"}',
    "twice_empty": b'{"":"","":""}',
    "not_a_number": b"NaN",
    "infinity": b"[Infinity]",
    "minus_infinity": b"-Infinity",
    "deep": b"[" * 10_000 + b"]" * 10_000,
    "very_deep": b"[" * 10**6 + b"]" * 10**6,
    "deep_objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "million_digits": b"1" * 10**6,
    "minus_million_digits": b"-" + b"1" * 10**6,
    "309_digits": b"[1," + b"9" * 309 + b"]",
    "above_double": b"1e309",
    "below_double": b"-1e400",
    "huge_exponent": b"1e" + b"9" * 1_000,
    "bad_utf8": b'"\xff"',
    "overlong_utf8": b'"\xc0\xaf"',
    "raw_surrogate": b'"\xed\xa0\x80"',
    "lone_surrogate": b'"\\ud800"',
    "lone_low_surrogate": b'{"\\udc00":1}',
    "surrogates_swapped": b'"\\udc00\\ud800"',
    "byte_order_mark": b"\xef\xbb\xbf{}",
    "utf_16": "{}".encode("utf-16"),
    "trailing_text": b"{} x",
    "trailing_nul": b"{}\x00",
    "two_values": b"{}{}",
    "empty": b"",
    "white": b" \n",
    "raw_nul": b'"\x00"',
    "raw_tab": b'"\t"',
    "leading_zero": b"01",
    "plus": b"+1",
    "point_at_end": b"1.",
    "comma_at_end": b"[1,]",
    "comment": b"/**/1",
    "single_quotes": b"{'a':1}",
    "other_space": "\u00a01".encode(),
    "open": b"[" * 10**6,
}
GOOD = [
    b'{"a":{"a":1},"b":[{"a":1},{"a":1}]}',
    b'{"\\"":1,"\\\\":2,"\\\\\\"":"\\u0022\\u005c"}',
    b'["\\u0000","\\ud83d\\ude00","\\/"]',
    b"9" * 308,
    b'"' + b"9" * 5_000 + b'"',
    b"0." + b"1" * 5_000,
    b" [ 1e308 , -0 , 1E-400 , -0.0 ] ",
    b"18446744073709551616",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving() as running:
        yield running


@pytest.mark.parametrize("body", REFUSED.values(), ids=list(REFUSED))
def test_what_readers_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as error:
        bodies.check(body)
    assert error.value.code == "bad_json"


@pytest.mark.parametrize("body", GOOD, ids=lambda body: body[:20].decode())
def test_odd_but_plain_json_is_read(body: bytes) -> None:
    bodies.check(body)


def test_a_number_is_too_long_wherever_it_stands() -> None:
    for place in range(40):
        before, digits = b" " * place, b"1" * bodies.DIGITS_MAX
        bodies.check(b"[%b%b,1]" % (before, digits))
        with pytest.raises(Refused):
            bodies.check(b"[%b%b2,1]" % (before, digits))


def test_refused_bodies_are_answered_by_400(server: Serving) -> None:
    for name, body in REFUSED.items():
        for sent in (body, b'{"payload":%s}' % body):
            answer = server.ask("POST", "/v1/queues/never/jobs", sent)
            assert answer.status == 400, name
            assert answer.json["code"] in ("bad_json", "bad_value"), name
    lease = {"queues": ["never"]}
    assert server.ask("POST", "/v1/lease", lease).json == {"jobs": []}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from('ab"\\é:'), inner), max_size=3).map(tuple)
    ),
    max_leaves=8,
)
"""Lists are arrays, tuples are objects as pairs, so that a key can come twice."""


def written(value: Any, is_escaped: bool) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(written(one, is_escaped) for one in value) + "]"
    if isinstance(value, tuple):
        pairs = (
            f"{written(key, is_escaped)} :{written(one, is_escaped)}"
            for key, one in value
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, str) and is_escaped:
        units = value.encode("utf-16-be", "surrogatepass")
        found = re.findall("....", units.hex())
        return '"' + "".join("\\u" + unit for unit in found) + '"'
    return json.dumps(value, ensure_ascii=is_escaped)


def is_strict(body: bytes) -> bool:
    """The reference: the standard library with everything doubtful refused."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(found)) == len(found)
        for key, _ in found:
            key.encode()
        return dict(found)

    def real(text: str) -> float:
        assert math.isfinite(float(text))
        return float(text)

    def constant(text: str) -> None:
        raise AssertionError(text)

    try:
        found = json.loads(
            body.decode(),
            object_pairs_hook=pairs,
            parse_float=real,
            parse_constant=constant,
        )
        json.dumps(found, ensure_ascii=False).encode()
    except (AssertionError, ValueError):
        return False
    return True


def is_accepted(body: bytes) -> bool:
    try:
        bodies.check(body)
    except Refused:
        return False
    return True


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.booleans())
def test_accepted_is_exactly_what_a_strict_reader_accepts(
    value: Any, is_escaped: bool
) -> None:
    body = written(value, is_escaped).encode("utf-8", "surrogatepass")
    assert is_accepted(body) == is_strict(body)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.booleans(), st.data())
def test_damaged_bodies_are_judged_as_a_strict_reader_does(
    value: Any, is_escaped: bool, data: st.DataObject
) -> None:
    body = bytearray(written(value, is_escaped).encode("utf-8", "surrogatepass"))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body)))
        size = data.draw(st.integers(0, 2))
        body[place : place + size] = data.draw(
            st.sampled_from(list(b'{}[]",:\\u01.-eE \xff\xef\x00')).map(
                lambda x: b"%c" % x
            )
        )
    assert is_accepted(bytes(body)) == is_strict(bytes(body))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=20))
def test_keys_that_differ_only_to_the_eye_are_different(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    bodies.check(json.dumps({text: 1, text + "\u200b": '"\\'}).encode())


PAYLOADS = [
    '"\\u0000"',
    '"a\\u0000b\\u001f"',
    '"\\ud83d\\ude00 \U0001f600"',
    '"\u202eabc\u2066\u200f"',
    '{"e\u0301":"\u00e9","\\u00e9":1e308}',
    '{ "spaces" : [ 1 , 2.50 , -0 ] }',
    '"<script>alert(1)</script>\\u001b[31m\\/"',
    "18446744073709551616",
    "null",
    '""',
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payload_comes_back_byte_for_byte(server: Serving, payload: str) -> None:
    body = f'{{"payload":{payload}}}'.encode()
    made = server.ask("POST", "/v1/queues/same/jobs", body)
    assert made.status == 201
    job = made.json["jobs"][0]["id"]
    inside = b'"payload":' + payload.strip().encode()
    assert inside in server.ask("GET", f"/v1/jobs/{job}").body
    leased = server.ask("POST", "/v1/lease", {"queues": ["same"]})
    assert inside in leased.body
    server.ask("POST", "/v1/ack", {"tokens": [leased.json["jobs"][0]["token"]]})


def test_bytes_come_back_as_they_were(server: Serving) -> None:
    content = bytes(range(256)) * 4
    body = {"payload_base64": base64.b64encode(content).decode()}
    assert server.ask("POST", "/v1/queues/bytes/jobs", body).status == 201
    leased = server.ask("POST", "/v1/lease", {"queues": ["bytes"]}).json["jobs"][0]
    assert base64.b64decode(leased["payload_base64"]) == content


BAD_VALUES = [
    ("delay", -1),
    ("delay", 2**63),
    ("delay", 1e308),
    ("delay", "5parsecs"),
    ("delay", "-5s"),
    ("delay", "1e3s"),
    ("delay", "9" * 15 + "d"),
    ("delay", "0.0001ms"),
    ("delay", True),
    ("slo", -1),
    ("slo", "abc"),
    ("run_at", -1),
    ("run_at", 2**63),
    ("run_at", 253_402_300_800_000),
    ("run_at", "10000-01-01T00:00:00Z"),
    ("run_at", "2026-02-30T00:00:00Z"),
    ("run_at", "2026-01-01T00:00:00"),
    ("run_at", "1969-12-31T00:00:00Z"),
    ("run_at", "9999-12-31T23:59:59-12:00"),
    ("priority", 2**63),
    ("priority", 1.5),
    ("weight", 0),
    ("weight", 1e308),
    ("cost", -1),
    ("attempts", 0),
    ("lifetime", "soon"),
    ("timeout", -(2**63)),
    ("labels", {"": "x"}),
    ("labels", {"a": "b\n"}),
    ("headers", {"a": 1}),
    ("kind", "a\x00"),
    ("kind", "k" * 129),
    ("tenant", "t" * 10_000),
    ("idempotency_key", ""),
    ("payload_base64", "*"),
    ("payload_base64", "é"),
    ("windows", [{"span": "25:00-26:00"}]),
    ("windows", [{"span": "09:00-17:00", "zone": "../../etc/passwd"}]),
    ("windows", []),
    ("retry", {"type": "fixed", "delay": "5parsecs"}),
    ("retry", {"type": "never"}),
    ("unknown", 1),
]


@pytest.mark.parametrize(("key", "value"), BAD_VALUES)
def test_bad_value_is_refused_and_named(server: Serving, key: str, value: Any) -> None:
    answer = server.ask("POST", "/v1/queues/never/jobs", {key: value})
    assert answer.status == 400, answer
    problem = answer.json
    assert problem["code"] == "bad_value"
    named = re.split(r"[.\[]", problem["key"])[0]
    assert named
    assert f'"{named}' in json.dumps({key: value}), problem


def test_newline_at_the_end_is_part_of_a_name(server: Serving) -> None:
    for body in ({"queues": ["q\n"]}, {"worker": "w\n"}, {"wait": "5s\n"}):
        assert server.ask("POST", "/v1/lease", body).status == 400, body


def test_missing_and_unknown_keys_are_named(server: Serving) -> None:
    assert server.ask("POST", "/v1/ack", {}).json["key"] == "tokens"
    body = {"jobs": [{"token": "x", "eror": ""}]}
    assert server.ask("POST", "/v1/nack", body).json["key"] == "jobs[0].eror"


@pytest.mark.parametrize(
    ("wait", "status"), [(0, 200), ("61s", 400), (-1, 400), ("5parsecs", 400)]
)
def test_wait_is_bounded(server: Serving, wait: Any, status: int) -> None:
    answer = server.ask("POST", "/v1/lease", {"queues": ["q"], "wait": wait})
    assert answer.status == status
    if status == 400:
        assert answer.json["key"] == "wait"


QUEUES = [
    "a'b",
    'a"b',
    "a%22b",
    "../x",
    "%2e%2e",
    "%2e%2e%2fx",
    "..",
    ".",
    "%00",
    "a%00b",
    "%ff",
    "a%0ab",
    "a%0a",
    "a%20b",
    "-a",
    "%F0%9F%98%80",
    "a;drop",
    "a%25b",
    "",
    "a" * 129,
    "a" * 10_240,
]


@pytest.mark.parametrize("name", QUEUES, ids=lambda name: name[:20] or "empty")
def test_queue_names_that_are_none_are_refused(server: Serving, name: str) -> None:
    answer = server.ask("POST", f"/v1/queues/{name}/jobs", {})
    assert answer.status in (400, 404, 414)
    assert answer.headers["content-type"] == "application/problem+json"


def test_lines_are_values_of_their_own(server: Serving) -> None:
    lines = {"content-type": "application/x-ndjson"}
    path = "/v1/queues/lines/jobs"
    good = b'{"payload":1}\n\n{"payload":2}\r\n'
    answer = server.ask("POST", path, good, lines)
    assert (answer.status, len(answer.json["jobs"])) == (201, 2)
    for bad in (b'{"payload":[1\n2]}\n', b'{"payload":1},{"payload":2}', b"[]", b""):
        assert server.ask("POST", path, bad, lines).status == 400, bad


def test_reader_and_checker_agree() -> None:
    decoder = msgspec.json.Decoder(NewJob)
    job = bodies.read(b'{"kind":"a","payload":{"b":[1e5]}}', decoder)
    assert bytes(job.payload) == b'{"b":[1e5]}'
