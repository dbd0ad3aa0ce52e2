"""Markup that can't be broken by data: whatever is not markup already is escaped."""

from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset({"meta", "br", "hr", "col"})
_NAMES: Final = {"class_": "class", "for_": "for", "view_box": "viewBox"}


class Markup(str):
    """Text that is markup already. Only this module makes it."""

    __slots__ = ()


Inside = str | int | float | None | Iterable["Inside"]


def tag(
    name: str, /, *inside: Inside, **attributes: str | float | bool | None
) -> Markup:
    """An element; attributes that are None or False are left out."""
    told = "".join(
        f' {_NAMES.get(key, key.replace("_", "-"))}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{join(inside)}</{name}>")


def join(inside: Iterable[Inside]) -> Markup:
    return Markup("".join(_markup(one) for one in inside))


def trusted(source: str) -> Markup:
    """For text that is part of this package."""
    return Markup(source)


def text(value: object) -> str:
    """As text and nothing else; what can't be seen is shown as a replacement mark."""
    if value is True:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    shown = (c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(value))
    return escape("".join(shown))


def _markup(inside: Inside) -> str:
    if isinstance(inside, Markup):
        return inside
    if inside is None:
        return ""
    if isinstance(inside, str | int | float):
        return text(inside)
    return join(inside)
