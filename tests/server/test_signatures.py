"""Signatures: whom the server believes, judged by a library that partners use."""

from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from headway.core.errors import BadValue
from headway.server import signatures
from headway.server.problems import Refused
from tests.server.signing import BODY, NOW, NOW_MS, SECRET, raw, signed


def check(headers: dict[str, str], body: bytes = BODY, secret: str = SECRET) -> bytes:
    return signatures.check([signatures.key_of(secret)], raw(headers), body, NOW_MS)


def test_a_partners_library_is_believed() -> None:
    assert check(signed(SECRET, at=NOW)) == b"m-1"


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook_id": "m-2"},
        {"webhook_id": ""},
        {"webhook_timestamp": str(NOW_MS // 1_000 + 1)},
        {"webhook_timestamp": "soon"},
        {"webhook_signature": ""},
        {"webhook_signature": "v1,"},
        {"webhook_signature": "v1,AAAA v1a,BBBB"},
        {"webhook_signature": signatures.PREFIX},
    ],
)
def test_whatever_was_not_signed_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        check(signed(SECRET, at=NOW) | changed)
    assert caught.value.code == "bad_signature"


def test_another_body_or_another_secret_is_refused() -> None:
    headers = signed(SECRET, at=NOW)
    for body in (BODY + b" ", b"", BODY.replace(b"17", b"18")):
        with pytest.raises(Refused, match="not its signature"):
            check(headers, body)
    with pytest.raises(Refused, match="not its signature"):
        check(headers, secret=signatures.new_secret())


def test_one_good_signature_among_others_is_enough_and_other_versions_are_not() -> None:
    headers = signed(SECRET, at=NOW)
    good = headers["webhook_signature"]
    other = Webhook(signatures.new_secret()).sign("m-1", NOW, BODY.decode())
    assert check(headers | {"webhook_signature": f"v1a,x {other} {good}"}) == b"m-1"
    many = " ".join([other] * signatures.SIGNATURES_MAX + [good])
    for signature in (good.replace("v1,", "v2,"), good.upper(), many):
        with pytest.raises(Refused):
            check(headers | {"webhook_signature": signature})


@pytest.mark.parametrize(("seconds", "is_good"), [(300, True), (301, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_timestamp_may_be_five_minutes_off(
    seconds: int, is_good: bool, sign: int
) -> None:
    headers = signed(SECRET, at=NOW + timedelta(seconds=sign * seconds))
    if is_good:
        assert check(headers) == b"m-1"
    else:
        with pytest.raises(Refused, match="5 minutes off"):
            check(headers)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "whsec_AAAA", "whsec_!" + "A" * 43, SECRET[6:], SECRET * 3],
)
def test_what_is_no_secret_is_refused_and_not_quoted(secret: str) -> None:
    with pytest.raises(BadValue, match=r"24 to 64 bytes") as caught:
        signatures.key_of(secret)
    assert "= '…':" in str(caught.value)


def test_a_secret_without_padding_is_the_same() -> None:
    assert signatures.key_of(SECRET.rstrip("=")) == signatures.key_of(SECRET)
