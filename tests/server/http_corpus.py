"""Broken, odd and hostile HTTP, as bytes, and how it has to be answered."""

from typing import NamedTuple

HOST = b"Host: localhost\r\n"
JOBS = b"/v1/queues/never/jobs"
JSON = b"Content-Type: application/json\r\n"
JOB = b'{"payload":1}'
HUGE = 17 << 20


class Case(NamedTuple):
    name: str
    sent: bytes
    statuses: tuple[int, ...]
    is_closed: bool = True


def get(target: bytes = b"/livez", *headers: bytes, version: bytes = b"1.1") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"GET %s HTTP/%s\r\n%s%s\r\n" % (target, version, HOST, lines)


def post(*headers: bytes, body: bytes = JOB, path: bytes = JOBS) -> bytes:
    """Enqueues a job, with exactly these framing headers."""
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"POST %s HTTP/1.1\r\n%s%s%s\r\n%s" % (path, HOST, JSON, lines, body)


def chunked(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", body=body)


def head_only(lines: bytes) -> bytes:
    return b"GET /livez HTTP/1.1\r\n" + lines + b"\r\n"


LENGTH = b"Content-Length: %d" % len(JOB)
CHUNKS = b"d\r\n%s\r\n0\r\n\r\n" % JOB
CHUNKED = b"Transfer-Encoding: chunked"

FRAMING = [
    Case("length_then_chunked", post(LENGTH, CHUNKED, body=CHUNKS), (400,)),
    Case("chunked_then_length", post(CHUNKED, LENGTH, body=CHUNKS), (400,)),
    Case("two_equal_lengths", post(LENGTH, LENGTH), (400,)),
    Case("two_unequal_lengths", post(LENGTH, b"Content-Length: 3"), (400,)),
    Case("lengths_in_a_list", post(b"Content-Length: 13, 13"), (400,)),
    Case("negative_length", post(b"Content-Length: -1"), (400,)),
    Case("signed_length", post(b"Content-Length: +13"), (400,)),
    Case("hexadecimal_length", post(b"Content-Length: 0xd"), (400,)),
    Case("length_with_underscore", post(b"Content-Length: 1_3"), (400,)),
    Case("empty_length", post(b"Content-Length: "), (400,)),
    Case("length_above_64_bits", post(b"Content-Length: " + b"9" * 30), (400,)),
    Case("length_above_limit", post(b"Content-Length: %d" % HUGE), (413,)),
    Case("length_in_other_digits", post("Content-Length: ١٣".encode()), (400,)),
    Case("length_too_short", post(b"Content-Length: 12"), (400, 400)),
    Case("chunked_twice", post(CHUNKED, CHUNKED, body=CHUNKS), (400,)),
    Case("chunked_and_gzip", post(CHUNKED + b", gzip", body=CHUNKS), (400,)),
    Case(
        "gzip_and_chunked",
        post(b"Transfer-Encoding: gzip, chunked", body=CHUNKS),
        (400,),
    ),
    Case("coding_identity", post(b"Transfer-Encoding: identity"), (400,)),
    Case("coding_unknown", post(b"Transfer-Encoding: xchunked", body=CHUNKS), (400,)),
    Case("coding_with_tab", post(b"Transfer-Encoding:\x0bchunked"), (400,)),
    Case(
        "chunked_in_old_version",
        post(CHUNKED, body=CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0"),
        (400,),
    ),
    Case("compressed_body", post(b"Content-Encoding: gzip", LENGTH), (415,)),
    Case("deflated_body", post(b"Content-Encoding: deflate", LENGTH), (415,)),
]

CHUNKING = [
    Case("negative_chunk", chunked(b"-1\r\nx\r\n0\r\n\r\n"), (400,)),
    Case("chunk_of_no_size", chunked(b"\r\nx\r\n0\r\n\r\n"), (400,)),
    Case("chunk_of_letters", chunked(b"xyz\r\nx\r\n0\r\n\r\n"), (400,)),
    Case("chunk_with_prefix", chunked(b"0xd\r\n%s\r\n0\r\n\r\n" % JOB), (400,)),
    Case("chunk_with_space", chunked(b"d \r\n%s\r\n0\r\n\r\n" % JOB), (400,)),
    Case("chunk_above_64_bits", chunked(b"f" * 17 + b"\r\nx"), (400,)),
    Case("chunk_above_limit", chunked(b"ffffffff\r\n" + b"x" * HUGE), (413,)),
    Case("chunk_longer_than_told", chunked(b"c\r\n%s\r\n0\r\n\r\n" % JOB), (400,)),
    Case("chunk_with_bare_newline", chunked(b"d\n%s\n0\n\n" % JOB), (400,)),
    Case("newline_in_extension", chunked(b"d;a\nb\r\n%s\r\n0\r\n\r\n" % JOB), (400,)),
    Case("endless_extension", chunked(b"1;" + b"a" * (80 << 10)), (400,)),
    Case("endless_trailer", chunked(b"0\r\nX: " + b"a" * (80 << 10)), (400,)),
    Case("many_trailers", chunked(b"0\r\n" + b"X: a\r\n" * 101), (431,)),
    Case("tiny_chunks", chunked(b"1;%s\r\n[\r\n" % (b"a" * 90) * 2_000), (400,)),
    Case("control_byte_in_trailer", chunked(b"0\r\nX: \x00\r\n\r\n"), (400,)),
]

HEADS = [
    Case("bare_newlines", b"GET /livez HTTP/1.1\nHost: localhost\n\n", (400,)),
    Case("bare_newline_in_headers", head_only(b"Host: localhost\nX: y\r\n"), (400,)),
    Case("bare_return", head_only(b"Host: localhost\rX: y\r\n"), (400,)),
    Case("folded_header", head_only(HOST + b"X: a\r\n b\r\n"), (400,)),
    Case("folded_first_header", head_only(b" " + HOST), (400,)),
    Case("space_before_colon", head_only(b"Host : localhost\r\n"), (400,)),
    Case("no_colon", head_only(HOST + b"X\r\n"), (400,)),
    Case("no_name", head_only(HOST + b": x\r\n"), (400,)),
    Case("nul_in_value", head_only(HOST + b"X: a\x00b\r\n"), (400,)),
    Case("nul_in_name", head_only(HOST + b"X\x00: a\r\n"), (400,)),
    Case("control_byte_in_value", head_only(HOST + b"X: a\x01b\r\n"), (400,)),
    Case("delete_in_value", head_only(HOST + b"X: a\x7fb\r\n"), (400,)),
    Case("two_hosts", head_only(HOST + HOST), (400,)),
    Case("no_host", head_only(b""), (400,)),
    Case("two_authorizations", head_only(HOST + b"Authorization: x\r\n" * 2), (400,)),
    Case("long_header", head_only(HOST + b"X: " + b"a" * (33 << 10) + b"\r\n"), (431,)),
    Case("endless_header", head_only(HOST + b"X: " + b"a" * (1 << 20)), (431,)),
    Case("endless_name", head_only(HOST + b"a" * (1 << 20)), (431,)),
    Case("many_headers", head_only(HOST + b"X: a\r\n" * 101), (431,)),
    Case(
        "many_long_headers", head_only(HOST + b"X: %b\r\n" % (b"a" * 999) * 50), (431,)
    ),
    Case("long_target", get(b"/" + b"a" * (9 << 10)), (414,)),
    Case("endless_target", b"GET /" + b"a" * (1 << 20), (414,)),
]

TARGETS = [
    Case("nul_in_target", get(b"/livez\x00"), (400,)),
    Case("control_byte_in_target", get(b"/livez\x1f"), (400,)),
    Case("tab_in_target", get(b"/livez\tx"), (400,)),
    Case("raw_byte_in_target", get(b"/livez\xff"), (400,)),
    Case("fragment_in_target", get(b"/livez#x"), (400,)),
    Case("target_without_slash", get(b"livez"), (400,)),
    Case("target_of_another_host", get(b"http://elsewhere/livez"), (400,)),
    Case("target_of_another_scheme", get(b"ftp://localhost/livez"), (400,)),
    Case("asterisk_of_get", get(b"*"), (400,)),
    Case("target_with_host", get(b"http://localhost/livez"), (200,), False),
    Case("asterisk", get(b"*").replace(b"GET", b"OPTIONS"), (404,), False),
    Case("connect", get(b"localhost:80").replace(b"GET", b"CONNECT"), (400,)),
    Case(
        "another_host", b"GET /livez HTTP/1.1\r\nHost: elsewhere\r\n\r\n", (421,), False
    ),
]

PROTOCOLS = [
    Case("http_2_preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04", (400,)),
    Case("http_2", get(version=b"2.0"), (400,)),
    Case("http_0_9", get(version=b"0.9"), (400,)),
    Case("http_1_2", get(version=b"1.2"), (400,)),
    Case("no_version", b"GET /livez\r\n\r\n", (400,)),
    Case("another_protocol", get().replace(b"HTTP/1.1", b"HTPP/1.1"), (400,)),
    Case("tls_hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 9, (400,)),
    Case("random_bytes", bytes(range(128, 256)), (400,)),
    Case("unknown_method", get().replace(b"GET", b"BREW"), (400,)),
    Case("lower_case_method", get().replace(b"GET", b"get"), (400,)),
    Case("method_of_another_use", get().replace(b"GET", b"PROPFIND"), (405,), False),
    Case("trace", get().replace(b"GET", b"TRACE"), (405,), False),
    Case("delete_where_none_is", get().replace(b"GET", b"DELETE"), (405,), False),
    Case(
        "upgrade_to_http_2",
        get(b"/livez", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"),
        (200,),
        False,
    ),
    Case(
        "upgrade_and_more",
        get(b"/livez", b"Connection: Upgrade", b"Upgrade: websocket") + get(b"/no"),
        (200, 404),
        False,
    ),
    Case("old_version", get(version=b"1.0"), (200,)),
    Case(
        "old_version_kept",
        get(b"/livez", b"Connection: keep-alive", version=b"1.0"),
        (200,),
        False,
    ),
    Case("old_version_without_host", b"GET /livez HTTP/1.0\r\n\r\n", (421,)),
    Case("close_asked_for", get(b"/livez", b"Connection: close"), (200,)),
    Case(
        "nothing_after_close",
        get(b"/livez", b"Connection: close") + post(LENGTH),
        (200,),
    ),
    Case("empty_lines_first", b"\r\n\r\n" + get(), (200,), False),
    Case("broken_after_good", get() * 3 + b"nonsense\r\n\r\n", (200, 200, 200, 400)),
    Case("broken_after_refused", post(LENGTH, body=b"x" * 13) + b"\0", (400, 400)),
]

CORPUS = [*FRAMING, *CHUNKING, *HEADS, *TARGETS, *PROTOCOLS]

ACCEPTED = [
    Case("chunked", chunked(CHUNKS), (201,), False),
    Case("chunk_extension", chunked(b"d;a=b\r\n%s\r\n0\r\n\r\n" % JOB), (201,), False),
    Case("zeros_before_size", chunked(b"000d\r\n%s\r\n0\r\n\r\n" % JOB), (201,), False),
    Case(
        "trailers_change_nothing",
        chunked(b"d\r\n%s\r\n0\r\nHost: elsewhere\r\nContent-Type: x/y\r\n\r\n" % JOB),
        (201,),
        False,
    ),
    Case(
        "one_byte_chunks",
        chunked(b"".join(b"1\r\n%c\r\n" % byte for byte in JOB) + b"0\r\n\r\n"),
        (201,),
        False,
    ),
    Case("identity", post(b"Content-Encoding: identity", LENGTH), (201,), False),
]
"""Odd, but good: each enqueues one job."""
