"""Arguments as JSON: what goes in comes out, and what could not is refused at once."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadValue
from headway.worker.payloads import Arguments, Unreadable


class Line(msgspec.Struct):
    sku: str
    count: int


@dataclass
class Basket:
    lines: list[Line]
    at: datetime


def everything(
    basket: Basket,
    first: int,
    /,
    second: float,
    third: Annotated[str, msgspec.Meta(max_length=100)] = "default",
    *rest: int,
    named: bytes = b"",
    **more: Line,
) -> Any:
    return basket, first, second, third, rest, named, more


lines = st.builds(Line, st.text(max_size=10), st.integers(-(2**60), 2**60))
times = st.datetimes(timezones=st.just(UTC))
baskets = st.builds(Basket, st.lists(lines, max_size=3), times)
whole = st.integers(-(2**60), 2**60)
names = st.sampled_from(["east", "west", "rest_", "a"])


@given(
    args=st.tuples(baskets, whole, st.floats(-1e300, 1e300)),
    rest=st.one_of(
        st.just(()),
        st.tuples(st.text(max_size=100)),
        st.tuples(st.just(""), whole, whole),
    ),
    named=st.one_of(st.just({}), st.builds(lambda b: {"named": b}, st.binary())),
    more=st.dictionaries(names, lines),
)
def test_call_after_json_is_the_same_call(
    args: Any, rest: Any, named: Any, more: Any
) -> None:
    arguments = Arguments(everything)
    payload = arguments.write((*args, *rest), {**named, **more})
    found, keywords = arguments.read(payload)
    call: Any = everything
    assert call(*found, **keywords) == call(*args, *rest, **named, **more)


def test_payload_is_an_object_that_people_can_read() -> None:
    def send(to: str, count: int = 1) -> None: ...

    assert Arguments(send).write(("ada",), {}) == b'{"to":"ada"}'
    assert Arguments(send).read(b'{"to":"ada"}') == ([], {"to": "ada"})


@pytest.mark.parametrize("value", [object(), {"a": object()}, "seventeen", 1.5, None])
def test_what_the_handler_could_not_read_is_refused_where_it_is_enqueued(
    value: Any,
) -> None:
    def handler(number: int) -> None: ...

    with pytest.raises(BadValue):
        Arguments(handler).write((value,), {})


def test_payload_beyond_a_mebibyte_is_refused() -> None:
    def handler(text: str) -> None: ...

    with pytest.raises(BadValue, match="at most"):
        Arguments(handler).write(("x" * (1 << 20),), {})


@pytest.mark.parametrize("args", [(), (1, 2)])
def test_wrong_number_of_arguments_is_what_python_says(args: tuple[int, ...]) -> None:
    def handler(number: int) -> None: ...

    with pytest.raises(TypeError):
        Arguments(handler).write(args, {})


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_unreadable(payload: bytes) -> None:
    def handler(number: int, more: list[str]) -> None: ...

    with pytest.raises(Unreadable):
        Arguments(handler).read(payload)


@pytest.mark.parametrize(
    "payload", [b"[1]", b'"x"', b"{}", b'{"number":"1"}', b'{"number":1,"new":2}']
)
def test_other_shapes_are_unreadable(payload: bytes) -> None:
    def handler(number: int) -> None: ...

    with pytest.raises(Unreadable):
        Arguments(handler).read(payload)


def test_models_of_pydantic_are_read_and_written() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Card", number=(str, ...), cents=(int, ...))

    def charge(card: Any) -> None: ...

    charge.__annotations__["card"] = model
    arguments = Arguments(charge)
    card = model(number="4242", cents=990)
    _, found = arguments.read(arguments.write((card,), {}))
    assert found == {"card": card}
    with pytest.raises(Unreadable):
        arguments.read(b'{"card":{"number":17}}')


def test_hint_that_is_nowhere_is_named() -> None:
    def handler(number: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(BadValue, match="Nowhere"):
        Arguments(handler).write((1,), {})


def test_reply_comes_before_the_arguments() -> None:
    def charged(reply: Line, order: int) -> None: ...

    arguments = Arguments(charged, has_reply=True)
    assert arguments.read(b'{"order":1}') == ([], {"order": 1})
    assert arguments.read_reply(b'{"sku":"a","count":2}') == Line("a", 2)
    with pytest.raises(Unreadable):
        arguments.read_reply(b"17")


def test_handler_that_takes_no_reply_is_refused() -> None:
    def charged() -> None: ...

    with pytest.raises(BadValue, match="takes no reply"):
        Arguments(charged, has_reply=True)
