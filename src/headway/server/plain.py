"""Types of bodies without the rule that a body of plain text can't break anyway."""

from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from headway.wire.values import TEXT

_RULES: Final = (
    "gt",
    "ge",
    "lt",
    "le",
    "multiple_of",
    "min_length",
    "max_length",
)


def is_plain(body: bytes) -> bool:
    """Whether no text in it can break the rule of texts, `TEXT`.

    Control characters must be escaped in JSON, but for one; here nothing is.
    """
    return b"\\" not in body and b"\x7f" not in body


def plain(kind: Any) -> Any:
    """The same type, whose texts are not matched with `TEXT`; itself if none are.

    A match is a call of Python's own `re` for every text, dearer than all else that is
    done to read it. What is read is an instance of the type itself, or of one below it.
    """
    origin = get_origin(kind)
    if origin is Annotated:
        return _annotated(kind)
    if origin in (Union, UnionType):
        return _of_parts(kind, lambda parts: reduce(or_, parts))
    if origin in (list, dict):
        return _of_parts(kind, lambda parts: origin[tuple(parts)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    return kind


def _of_parts(kind: Any, make: Any) -> Any:
    parts = get_args(kind)
    found = [plain(part) for part in parts]
    is_same = all(one is other for one, other in zip(parts, found, strict=True))
    return kind if is_same else make(found)


def _annotated(kind: Any) -> Any:
    of, *notes = get_args(kind)
    found = plain(of)
    kept = [_unmatched(note) for note in notes]
    if found is of and kept == notes:
        return kind
    return Annotated[(found, *kept)]


def _unmatched(note: Any) -> Any:
    if not isinstance(note, Meta) or note.pattern != TEXT:
        return note
    return Meta(**{name: getattr(note, name) for name in _RULES})


@cache
def _struct(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    hints = get_type_hints(kind, include_extras=True)
    found = {name: plain(hints[name]) for name in kind.__struct_fields__}
    if all(found[name] is hints[name] for name in found):
        return kind
    fields = [
        _field(field, found[field.name]) for field in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, bases=(kind,), kw_only=True)


def _field(field: msgspec.structs.FieldInfo, kind: Any) -> Any:
    if field.required:
        return field.name, kind
    if field.default is msgspec.NODEFAULT:
        return field.name, kind, msgspec.field(default_factory=field.default_factory)
    return field.name, kind, field.default
