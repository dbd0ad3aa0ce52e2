"""Names, docstrings and words: what may not be written, and where from it would come."""

import ast
import configparser
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.tidy.source import Finding, Source

DRAWERS = {"utils", "common", "helpers", "manager", "base", "types"}
"""Module names that say nothing, so that anything may be put there."""

DOCSTRING_LINES_MAX = 3

# Patterns with a class of one letter find others, but not the line they stand in.
UNFINISHED = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b|NotImplemente[d]Error")

FOREIGN = re.compile(
    r"(?<![\w.])/(?:wor[k]|far[m]|roo[t])(?=[/\s`'\")]|$)"
    r"|(?<![\w.])/hom[e]/\w"
    r"|\.\./share[d]|(?<![\w/])share[d]/"
    r"|DEVELOPERS\.m[d]|\b[Ii]ssu[e] \d"
)
"""Folders and papers of a machine or of people, not of the project."""

REGISTRIES = re.compile(
    r"\bpyp[i]\.org|pythonhoste[d]\.org|registr[y]\.(?:npmjs|yarnpkg)"
    r"|(?<![\w/])crate[s]\.io|golan[g]\.org|mave[n]\.(?:apache\.)?org"
    r"|(?:deb|security|snapshot)\.debia[n]\.org|archive\.ubunt[u]\.com"
)
"""Hosts of package registries: where packages come from is the user's to say."""


def module_names(source: Source) -> Iterator[Finding]:
    if source.tree is not None:
        for part in (*source.path.parts[:-1], source.path.stem):
            if part.strip("_") in DRAWERS:
                yield source.finding(1, "module-name", f"{part} says nothing")


def docstrings(source: Source) -> Iterator[Finding]:
    if source.tree is None or source.folder != "src":
        return
    docstring = ast.get_docstring(source.tree)
    if docstring is None:
        yield source.finding(1, "docstring", "the module has none")
        return
    length = len(docstring.split("\n\n")[0].splitlines())
    if length > DOCSTRING_LINES_MAX:
        yield source.finding(1, "docstring", f"its first paragraph has {length} lines")


def unfinished(source: Source) -> Iterator[Finding]:
    yield from matches(source, "unfinished", UNFINISHED)


def foreign(source: Source) -> Iterator[Finding]:
    yield from matches(source, "foreign", FOREIGN)


def registries(source: Source) -> Iterator[Finding]:
    yield from matches(source, "registry", REGISTRIES)
    for host in configured_hosts():
        yield from matches(source, "registry", re.compile(re.escape(host)))


def matches(source: Source, rule: str, pattern: re.Pattern[str]) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        found = pattern.search(line)
        if found:
            yield source.finding(number, rule, found[0])


def configured_hosts() -> set[str]:
    """Hosts of the indexes that this machine installs from, loopback aside."""
    parser = configparser.RawConfigParser()
    home = Path.home()
    parser.read(
        ["/etc/pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf"]
    )
    addresses = [os.environ.get("PIP_INDEX_URL"), os.environ.get("PIP_EXTRA_INDEX_URL")]
    for section in parser.sections():
        addresses += [parser.get(section, "index-url", fallback=None)]
    hosts = {urlsplit(address).hostname for address in addresses if address}
    return {host for host in hosts if host and "." in host and not host[0].isdigit()}
