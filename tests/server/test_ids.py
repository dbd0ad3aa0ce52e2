"""Lease tokens: read as they were written, and by nobody else."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.server.ids import Ids
from headway.server.problems import Refused

KEY = bytes(range(32))
QUEUES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
NUMBERS = st.integers(0, 2**63 - 1) | st.integers(2**33, 2**33 + 50)


def older(number: int, queue: str) -> str:
    """As servers signed that had a digest for each token."""
    content = number.to_bytes(8, "big")
    mac = blake2b(content + queue.encode(), digest_size=8, key=KEY).digest()
    return f"p1_{(content + mac).hex()}.{queue}"


@given(st.lists(st.tuples(NUMBERS, QUEUES), max_size=40, unique_by=lambda one: one[0]))
def test_what_was_signed_is_read(leases: list[tuple[int, str]]) -> None:
    signed = [Ids("p1", KEY).token(*lease) for lease in leases]
    good, stale, queues = Ids("p1", KEY).read_tokens([*signed, *signed])
    numbers = [number for number, _ in leases]
    assert good == dict(zip(numbers, signed, strict=True))
    assert not stale
    assert queues == list(dict.fromkeys(queue for _, queue in leases))


@given(NUMBERS, QUEUES, st.data())
def test_what_was_changed_is_none_of_ours(
    number: int, queue: str, data: st.DataObject
) -> None:
    ids = Ids("p1", KEY)
    token = ids.token(number, queue)
    place = data.draw(st.integers(0, len(token) - 1))
    put = data.draw(st.characters().filter(lambda one: one != token[place]))
    changed = token[:place] + put + token[place + 1 :]
    for text in (changed, token[:place], token + put, put + token, token.upper()):
        if text != token:
            assert ids.read_tokens([token, text])[1] == [text]


@pytest.mark.parametrize(
    "text", ["", ".", "p1_", "p1_.mail", "p1_" + 32 * "0", 80 * "."]
)
def test_what_looks_like_no_token_is_stale(text: str) -> None:
    assert Ids("p1", KEY).read_tokens([text]) == ({}, [text], [])


def test_numbers_that_int_would_read_are_none() -> None:
    ids = Ids("p1", KEY)
    token = ids.token(7, "mail")
    rest = token[len("p1_") + 16 :]
    for number in ("0x00000000000007", "+000000000000007", "0_0_0_0_0_0_0_07"):
        text = f"p1_{number:0>16}{rest}"
        assert len(text) == len(token)
        assert ids.read_tokens([text])[1] == [text]
    assert ids.read_tokens([f"p1_-000000000000007{rest}"])[0] == {}


def test_other_keys_partitions_and_queues_sign_otherwise() -> None:
    ids = Ids("p1", KEY)
    token = ids.token(17, "mail")
    number_and_mac = token.removeprefix("p1_").removesuffix(".mail")
    others = [
        Ids("p1", bytes(32)).token(17, "mail"),
        Ids("p2", KEY).token(17, "mail"),
        f"p1_{number_and_mac}.post",
        f"p1_{number_and_mac}.",
        f"p1_{number_and_mac}",
    ]
    assert ids.read_tokens(others) == ({}, others, [])


def test_no_signature_says_anything_of_its_neighbours() -> None:
    ids = Ids("p1", KEY)
    macs = {
        ids.delivery(number, queue)[-16:]
        for number in range(1_000)
        for queue in ("mail", "post")
    }
    assert len(macs) == 2_000
    assert not any(mac[:8] == mac[8:] for mac in macs)


def test_tokens_of_an_older_server_are_good() -> None:
    tokens = [older(number, "mail") for number in (1, 2, 2**33 + 5)]
    good, stale, queues = Ids("p1", KEY).read_tokens(tokens)
    assert (list(good), stale, queues) == ([1, 2, 2**33 + 5], [], ["mail"])


def test_what_is_kept_of_late_is_bounded_and_not_needed() -> None:
    ids = Ids("p1", KEY)
    tokens = [ids.token(number * 8, f"q{number % 3}") for number in range(10_000)]
    assert ids.read_tokens(tokens)[1] == []
    forged = [f"p1_{number:032x}.q" for number in range(10_000)]
    assert ids.read_tokens(forged)[1] == forged
    assert ids.token(8, "q1") == tokens[1]


def test_a_delivery_is_of_its_queue() -> None:
    ids = Ids("p1", KEY)
    delivery = ids.delivery(9, "mail")
    assert ids.read_delivery(delivery, "mail") == 9
    for text in (delivery, delivery + "0", delivery[:-1], "p1_x", "ü" * 35):
        with pytest.raises(Refused):
            ids.read_delivery(text, "post")
