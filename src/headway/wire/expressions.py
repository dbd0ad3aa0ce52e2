"""Where in a message a key or a value is: paths and templates, read once, never run.

`value.order.id` is a path; `order-{value.order.id}` is text with paths in braces. An
expression can look at what it is given and do nothing else.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec

from headway.core.errors import BadValue

LENGTH_MAX: Final = 1_024
STEPS_MAX: Final = 32
KEY_LENGTH_MAX: Final = 1_024
_WHOLE_BITS_MAX: Final = 4_096
"""Of a number in a key: more digits than a key may have."""
_NAME: Final = re.compile(r"[^\s.\[\]{}\"']+")
_INDEX: Final = re.compile(r"\[(\d{1,9})\]")
_QUOTED: Final = re.compile(r'\[("(?:[^"\\]|\\.)*")\]')
_ENDS: Final = ("{", "}", "")
_GOES_ON: Final = 'a path goes on with .name, [0] or ["any name"]'
_encode: Final = msgspec.json.Encoder().encode

Step = str | int


class NotFound(Exception):
    """A message has no such key or value. The text quotes nothing of the message."""


class Given:
    """What an expression can look at, under the names by which it starts."""

    __slots__ = ("_headers", "_texts", "_value", "raw")

    def __init__(
        self,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        **texts: bytes | None,
    ) -> None:
        """`value` is JSON, None stands for null; all else is text."""
        self.raw = b"null" if value is None else value
        self._headers = headers
        self._texts = texts
        self._value: Any = msgspec.UNSET

    def value(self) -> Any:
        if self._value is msgspec.UNSET:
            self._value = _json(self.raw, "value")
        return self._value

    def text(self, root: str) -> bytes:
        return _there(self._texts.get(root), root)

    def header(self, name: str) -> bytes:
        """The last one of the name, whose case does not matter."""
        found = None
        wanted = name.lower()
        for known, value in self._headers:
            if known.lower() == wanted:
                found = value
        return _there(found, f"header.{name}")


class _Path(msgspec.Struct, frozen=True):
    root: str
    steps: tuple[Step, ...]
    text: str

    def find(self, given: Given) -> Any:
        """What stands there, as JSON has it."""
        steps = self.steps
        if self.root == "value":
            return self._walk(given.value(), steps)
        if self.root == "header":
            content = given.header(str(steps[0]))
            steps = steps[1:]
        else:
            content = given.text(self.root)
        if steps:
            return self._walk(_json(content, self.text), steps)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise NotFound(f"{self.text}: it is no UTF-8") from None

    def _walk(self, found: Any, steps: tuple[Step, ...]) -> Any:
        for step in steps:
            if isinstance(step, int):
                if not isinstance(found, list):
                    raise NotFound(f"{self.text}: there is no list for [{step}]")
                if step >= len(found):
                    raise NotFound(f"{self.text}: the list has no item {step}")
                found = found[step]
            else:
                if not isinstance(found, dict):
                    raise NotFound(f"{self.text}: there is no object for {step!r}")
                if step not in found:
                    raise NotFound(f"{self.text}: there is no {step!r}")
                found = found[step]
        return found


class Expression:
    """A path, or text with paths in it."""

    def __init__(
        self, text: str, parts: tuple[str | _Path, ...], *, is_template: bool
    ) -> None:
        self.text = text
        self._parts = parts
        self._is_template = is_template
        self.roots = frozenset(part.root for part in parts if isinstance(part, _Path))
        """The names by which its paths start."""

    def __str__(self) -> str:
        return self.text

    def key(self, given: Given) -> str:
        """The key of a reply. Raises NotFound if the message has none."""
        made = self._joined(given)
        if not 1 <= len(made) <= KEY_LENGTH_MAX or not made.isprintable():
            rule = f"a key has 1 to {KEY_LENGTH_MAX} printable characters"
            raise NotFound(f"{self.text}: {rule}")
        return made

    def json(self, given: Given) -> bytes:
        """A value as JSON; the whole value stays byte for byte as it is."""
        first = self._parts[0]
        if self._is_template or isinstance(first, str):
            return _encode(self._joined(given))
        found = first.find(given)
        is_whole = first.root == "value" and not first.steps
        return given.raw if is_whole else _encode(found)

    def _joined(self, given: Given) -> str:
        return "".join(
            part if isinstance(part, str) else _as_text(part.find(given), part.text)
            for part in self._parts
        )


def parse(text: str, name: str, roots: Collection[str]) -> Expression:
    """Reads an expression whose paths start with one of `roots`.

    Raises BadValue, which says where it goes wrong; `name` is what it is for.
    """
    if not 1 <= len(text) <= LENGTH_MAX or not text.isprintable():
        rule = f"an expression has 1 to {LENGTH_MAX} printable characters"
        raise BadValue(name, text[:80], rule)
    return _Reader(text, name, roots).expression()


class _Reader:
    """Reads one expression from its first character to its last."""

    def __init__(self, text: str, name: str, roots: Collection[str]) -> None:
        self._text = text
        self._name = name
        self._roots = roots
        self._at = 0

    def expression(self) -> Expression:
        text = self._text
        plain = _QUOTED.sub("", text)
        if "{" not in plain and "}" not in plain:
            path = self._path("; text needs a path in braces: order-{value.id}")
            if self._at < len(text):
                raise self._bad(_GOES_ON)
            return Expression(text, (path,), is_template=False)
        parts: list[str | _Path] = []
        while self._at < len(text):
            parts.append(self._part())
        return Expression(text, tuple(parts), is_template=True)

    def _part(self) -> str | _Path:
        text, at = self._text, self._at
        if text[at : at + 2] in ("{{", "}}"):
            self._at += 2
            return text[at]
        if text[at] == "}":
            raise self._bad("a } without its {; a brace itself is }}")
        if text[at] != "{":
            self._at = next(
                i for i in range(at, len(text) + 1) if text[i : i + 1] in _ENDS
            )
            return text[at : self._at]
        self._at += 1
        path = self._path()
        if self._at == len(text):
            raise self._bad("a { without its }; a brace itself is {{")
        if text[self._at] != "}":
            raise self._bad(_GOES_ON)
        self._at += 1
        return path

    def _path(self, hint: str = "") -> _Path:
        text, begin = self._text, self._at
        root = _NAME.match(text, begin)
        if root is None or root[0] not in self._roots:
            known = ", ".join(sorted(self._roots))
            raise self._bad(f"a path starts with one of {known}{hint}")
        self._at = root.end()
        steps: list[Step] = []
        while (step := self._step()) is not None:
            steps.append(step)
        if len(steps) > STEPS_MAX:
            raise self._bad(f"a path has at most {STEPS_MAX} steps")
        if root[0] == "header" and not (steps and isinstance(steps[0], str)):
            raise self._bad("a header has a name: header.correlation-id")
        return _Path(root[0], tuple(steps), text[begin : self._at])

    def _step(self) -> Step | None:
        text, at = self._text, self._at
        step: Step
        if text.startswith(".", at) and (found := _NAME.match(text, at + 1)):
            step = found[0]
        elif found := _INDEX.match(text, at):
            step = int(found[1])
        elif found := _QUOTED.match(text, at):
            try:
                step = msgspec.json.decode(found[1], type=str)
            except msgspec.MsgspecError:
                raise self._bad("it is no JSON text") from None
        else:
            return None
        self._at = found.end()
        return step

    def _bad(self, rule: str) -> BadValue:
        place = f"at character {self._at + 1}"
        return BadValue(self._name, self._text[:80], f"{place}: {rule}")


def _there(found: bytes | None, what: str) -> bytes:
    if found is None:
        raise NotFound(f"{what}: the message has none")
    return found


def _json(content: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NotFound(f"{what}: it is no JSON") from None


def _as_text(found: Any, what: str) -> str:
    """Text and whole numbers can be told by everybody in one way only."""
    if isinstance(found, str):
        return found
    is_whole = isinstance(found, int) and not isinstance(found, bool)
    if not is_whole or found.bit_length() > _WHOLE_BITS_MAX:
        raise NotFound(f"{what}: it is neither text nor a whole number")
    return str(found)
