"""The templates of our chart filled in, as far as we use the language of templates.

Where there is `helm`, it renders them itself; elsewhere this shows that they are YAML,
and that they name no value that there is not.
"""

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "headway"
VALUE = re.compile(r"\.Values((?:\.[A-Za-z]\w*)+)")
INCLUDED = re.compile(r'include "([^"]+)"')
DEFINED = re.compile(r'define "([^"]+)"')
RELEASE = {".Release.Name": "r1", ".Release.Namespace": "default"}
NAMES = {"headway.secret": "r1-headway"}
LABELS = {"app.kubernetes.io/name": "headway", "app.kubernetes.io/instance": "r1"}
_BLOCK = re.compile(
    r'\{\{- (?:include "headway\.labels" \.|toYaml (\S+)) \| nindent (\d+) '
)
_INLINE = re.compile(r"\{\{-? ?(.+?) ?-?\}\}")
_OPENS = re.compile(r"\{\{- (if|range|define|with) ")


def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def templates() -> list[Path]:
    return sorted((CHART / "templates").iterdir())


def look_up(name: str, given: dict[str, Any]) -> Any:
    """The value of a name such as `.Values.service.port`; KeyError if there is none."""
    found: Any = given
    for part in name.removeprefix(".Values.").split("."):
        found = found[part]
    return found


def paths(given: dict[str, Any], before: str = "") -> set[str]:
    """Every name that has a value; what is empty or free is one as a whole."""
    found: set[str] = set()
    for key, value in given.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and value:
            found |= paths(value, f"{name}.")
        else:
            found.add(name)
    return found


def filled(template: Path, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a template, every condition taken as met."""
    lines = [_line(line, given) for line in template.read_text().splitlines()]
    text = "\n".join(line for line in lines if line is not None)
    return [made for made in yaml.safe_load_all(text) if made is not None]


def _line(line: str, given: dict[str, Any]) -> str | None:
    if _OPENS.search(line) or line.strip() in ("{{- end }}", "{{- else }}"):
        return None
    block = _BLOCK.search(line)
    if block is not None:
        name, depth = block.groups()
        what = LABELS if name is None else look_up(name, given)
        text = yaml.safe_dump(what, default_flow_style=not what)
        return "\n".join(" " * int(depth) + row for row in text.splitlines())
    return _INLINE.sub(lambda found: _inline(found[1], given), line)


def _inline(expression: str, given: dict[str, Any]) -> str:
    if expression in RELEASE:
        return RELEASE[expression]
    included = INCLUDED.match(expression)
    if included is not None:
        return NAMES[included[1]]
    if expression == ".":
        return "one.of.several"
    found = VALUE.search(expression)
    assert found is not None, f"the chart uses something new: {expression}"
    return str(look_up(found[0], given)) or "empty"
