"""Arguments of handlers as JSON: an object with a field for each argument.

They are read against the handler's own type hints. Nothing is ever unpickled.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, reduce
from inspect import Parameter
from operator import or_
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from headway.core.defaults import RESULT_BYTES_MAX, RESULT_PROBLEM_MAX
from headway.core.errors import BadValue
from headway.wire.values import PAYLOAD_MAX
from headway.wire.work import ResultBody
from headway.worker.outcomes import WaitFor

_ABSENT: Final = object()
"""An argument that was not given: the handler's own default stands."""
_BY_POSITION: Final = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)


class Unreadable(Exception):
    """A payload that the handler can't be called with."""


class Arguments:
    """How the arguments of one handler are written and read."""

    def __init__(
        self, function: Callable[..., Any], *, has_reply: bool = False
    ) -> None:
        """With a reply the first parameter is not part of the payload."""
        self._function = function
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        self._reply: Parameter | None = None
        if has_reply:
            if not parameters:
                name = getattr(function, "__name__", "it")
                raise BadValue("on_reply", name, "takes no reply")
            self._reply = parameters.pop(0)
        self._signature = signature.replace(parameters=parameters)
        self._parameters = parameters
        self._is_plain = not any(one.kind in _BY_POSITION for one in parameters) and (
            not any(one.kind is Parameter.VAR_KEYWORD for one in parameters)
        )

    def write(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The payload of a call. What the handler could not read back is refused here."""
        bound = self._signature.bind(*args, **kwargs)
        try:
            payload = _encode(bound.arguments)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadValue("arguments", _kind(error), str(error)) from error
        if len(payload) > PAYLOAD_MAX:
            raise BadValue("arguments", len(payload), f"at most {PAYLOAD_MAX} bytes")
        try:
            self.read(payload)
        except Unreadable as error:
            raise BadValue("arguments", bound.arguments, str(error)) from error
        return payload

    def read(self, payload: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments. Raises Unreadable."""
        try:
            found = self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(
                f"the payload does not fit the handler: {error}"
            ) from error
        values = {
            one.name: value
            for one in self._parameters
            if (value := getattr(found, one.name)) is not _ABSENT
        }
        return ([], values) if self._is_plain else self._placed(values)

    def read_reply(self, content: bytes) -> Any:
        """The reply as the first parameter's hint wants it."""
        assert self._reply is not None
        try:
            return self._reply_decoder.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(f"the reply does not fit the handler: {error}") from error

    def _placed(self, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        named: dict[str, Any] = {}
        has_rest = any(one.kind is Parameter.VAR_POSITIONAL for one in self._parameters)
        for one in self._parameters:
            if one.name not in values:
                continue
            value = values[one.name]
            match one.kind:
                case Parameter.VAR_POSITIONAL:
                    args += value
                case Parameter.VAR_KEYWORD:
                    named |= value
                case Parameter.POSITIONAL_ONLY:
                    args.append(value)
                case Parameter.POSITIONAL_OR_KEYWORD if has_rest:
                    args.append(value)
                case _:
                    named[one.name] = value
        return args, named

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return _hints(self._function)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for one in self._parameters:
            hint = self._hints.get(one.name, Any)
            if one.kind is Parameter.VAR_POSITIONAL:
                hint = list[hint]  # type: ignore[valid-type]
            elif one.kind is Parameter.VAR_KEYWORD:
                hint = dict[str, hint]  # type: ignore[valid-type]
            elif one.default is Parameter.empty:
                fields.append((one.name, hint))
                continue
            default = msgspec.field(default_factory=lambda: _ABSENT)
            fields.append((one.name, hint, default))
        shape = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        return msgspec.json.Decoder(shape, dec_hook=_foreign)

    @cached_property
    def _reply_decoder(self) -> msgspec.json.Decoder[Any]:
        assert self._reply is not None
        hint = self._hints.get(self._reply.name, Any)
        return msgspec.json.Decoder(hint, dec_hook=_foreign)


class Returned:
    """How what a function returns is read by those who asked for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        hint = _hints(function).get("return", Any)
        if get_origin(hint) in (Union, UnionType):
            values = [one for one in get_args(hint) if one is not WaitFor]
            hint = reduce(or_, values)
        elif hint is WaitFor:
            hint = Any  # A reply completes its jobs.
        self._decoder = msgspec.json.Decoder(hint, dec_hook=_foreign)

    def read(self, value: bytes) -> Any:
        """Raises a msgspec error for what does not fit the type hint."""
        return self._decoder.decode(value)


def returned(value: Any) -> ResultBody:
    """What a handler returned, to be told; or why it can't be, for the job is done."""
    try:
        content = _encode(value)
    except Exception as error:  # values may show themselves by code of their own
        return ResultBody(problem=_problem(f"the result can't be JSON: {error}"))
    if len(content) > RESULT_BYTES_MAX:
        text = f"the result has {len(content)} bytes; {RESULT_BYTES_MAX} may be kept"
        return ResultBody(problem=text)
    return ResultBody(msgspec.Raw(content))


def _problem(text: str) -> str:
    return text[:RESULT_PROBLEM_MAX].encode("utf-8", "replace").decode()


def written(value: Any) -> bytes:
    """Any value as JSON, by the same rules."""
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadValue("value", _kind(error), str(error)) from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        name = getattr(function, "__qualname__", "a handler")
        rule = f"a type hint can't be found at run time: {error}"
        raise BadValue("handler", name, rule) from error


def _shown(value: Any) -> Any:
    """What msgspec does not know: models of pydantic show themselves."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    raise TypeError(f"{type(value).__qualname__} can't be written as JSON")


def _foreign(kind: type, value: Any) -> Any:
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    if isinstance(value, kind):
        return value
    raise TypeError(f"{kind.__qualname__} can't be read from JSON")


def _kind(error: BaseException) -> str:
    return type(error).__name__


_encode: Final = msgspec.json.Encoder(enc_hook=_shown).encode
