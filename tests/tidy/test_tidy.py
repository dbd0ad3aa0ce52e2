"""The tidy test: every rule holds for the whole tree, and every rule can fail."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tidy import honesty, purity, sizes, source, wording
from tests.tidy.source import Finding, Source

ROOT = Path(__file__).resolve().parents[2]

RULES: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "module-length": sizes.module_length,
    "function-length": sizes.function_length,
    "public-methods": sizes.public_methods,
    "parameters": sizes.parameters,
    "init-names": sizes.init_names,
    "line-length": sizes.line_length,
    "module-name": wording.module_names,
    "docstring": wording.docstrings,
    "unfinished": wording.unfinished,
    "foreign": wording.foreign,
    "registry": wording.registries,
    "core-import": purity.core_imports,
    "core-clock": purity.core_clock,
    "syntax": honesty.syntax,
    "assertion": honesty.assertions,
    "sleep": honesty.sleeps,
}

MANY_METHODS = "class Big:\n" + "".join(
    f"    def method_{number}(self): ...\n" for number in range(13)
)
MANY_NAMES = "".join(f"name_{number} = 1\n" for number in range(26))
MANY_KEYWORDS = ", ".join(f"k{number}" for number in range(13))

# Words that a rule looks for are put together here, or it would find this file.
BAD: list[tuple[str, str, str, int]] = [
    ("module-length", "src/headway/long.py", "x = 1\n" * 401, 1),
    ("function-length", "tools/a.py", "def f():\n" + "    x = 1\n" * 61, 1),
    ("public-methods", "src/headway/a.py", MANY_METHODS, 1),
    ("parameters", "tests/a.py", "\ndef f(a, b, c, d, e, f, g, h): ...\n", 2),
    ("parameters", "tests/a.py", f"def f(*, {MANY_KEYWORDS}): ...\n", 1),
    ("init-names", "src/headway/__init__.py", MANY_NAMES, 1),
    ("line-length", "benchmarks/a.py", f"\n# {'x' * 100}\n", 2),
    ("module-name", "src/headway/utils.py", '"""Odds and ends."""\n', 1),
    ("module-name", "src/headway/common/job.py", '"""Jobs."""\n', 1),
    ("docstring", "src/headway/a.py", "x = 1\n", 1),
    ("docstring", "src/headway/a.py", '"""A\nb\nc\nd."""\n', 1),
    ("unfinished", "src/headway/a.py", "x = 1  # TO" + "DO: more\n", 1),
    ("unfinished", "examples/a.py", "raise NotImplemented" + "Error\n", 1),
    ("foreign", "docs/a.md", "see /wor" + "k/main\n", 1),
    ("foreign", "Makefile", "x:\n\tcat ../share" + "d/x\n", 2),
    ("registry", "constraints.txt", "# from pyp" + "i.org\n", 1),
    ("core-import", "src/headway/core/a.py", "def f():\n    import time\n", 2),
    ("core-import", "src/headway/core/a.py", "from os.path import join\n", 1),
    ("core-clock", "src/headway/core/a.py", "x = datetime.now()\n", 1),
    ("core-clock", "src/headway/core/a.py", "x = datetime.datetime.utcnow\n", 1),
    ("core-clock", "src/headway/core/a.py", "open('file')\n", 1),
    ("syntax", "src/headway/a.py", "x = 1\nif x\n", 2),
    ("assertion", "tests/core/test_a.py", "\ndef test_a():\n    1 + 1\n", 2),
    ("sleep", "tests/core/test_a.py", "time.sl" + "eep(1)\n", 1),
    ("sleep", "tests/core/test_a.py", "await asyncio.sl" + "eep(0.1)\n", 1),
]

GOOD: list[tuple[str, str, str]] = [
    ("public-methods", "src/headway/a.py", MANY_METHODS.replace("method_", "_m")),
    ("parameters", "src/headway/a.py", "def f(self, a, b, c, d, e, f, g, *, h): ...\n"),
    ("docstring", "src/headway/a.py", '"""A\nb\nc.\n\nMore\nand\nmore\nof it."""\n'),
    (
        "foreign",
        "docs/a.md",
        "the work of a worker, a network/work queue, shared state\n",
    ),
    ("core-import", "src/headway/sim/a.py", "import time\n"),
    ("core-import", "src/headway/core/a.py", "from . import timers\n"),
    ("core-clock", "src/headway/core/a.py", "x = self.now()\n"),
    ("assertion", "tests/test_a.py", "def test_a():\n    with pytest.raises(E): f()\n"),
    ("sleep", "tests/test_a.py", "await asyncio.sl" + "eep(0)\n"),
]


@pytest.fixture(scope="module")
def tree() -> list[Source]:
    return source.read(ROOT)


@pytest.mark.parametrize("rule", RULES)
def test_tree_keeps_the_rule(rule: str, tree: list[Source]) -> None:
    found = [str(finding) for file in tree for finding in RULES[rule](file)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize(("rule", "path", "text", "line"), BAD)
def test_rule_finds_a_breach(
    tmp_path: Path, rule: str, path: str, text: str, line: int
) -> None:
    (found,) = check(tmp_path, rule, path, text)
    assert str(found).startswith(f"{path}:{line}: {rule}: ")


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_rule_lets_good_code_pass(
    tmp_path: Path, rule: str, path: str, text: str
) -> None:
    assert check(tmp_path, rule, path, text) == []


def test_every_rule_has_a_breach_that_it_finds() -> None:
    assert {rule for rule, *_ in BAD} == set(RULES)


def test_tree_is_the_whole_checkout(tree: list[Source]) -> None:
    paths = {str(file.path) for file in tree}
    assert {"pyproject.toml", "Makefile", "src/headway/core/states.py"} <= paths
    assert "tests/tidy/test_tidy.py" in paths
    assert not any(path.startswith(".venv") for path in paths)


def test_configured_index_is_a_registry_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:key@wheels.example.com/simple")
    text = "--index-url https://wheels.example.com/simple\n"
    (found,) = check(tmp_path, "registry", "constraints.txt", text)
    assert found.text == "wheels.example.com"


def test_no_file_names_the_folder_of_this_checkout(tree: list[Source]) -> None:
    naming = [str(file.path) for file in tree if f"{ROOT}/" in file.text]
    assert naming == []


def check(root: Path, rule: str, path: str, text: str) -> list[Finding]:
    """What a rule finds in a tree of one file, read as the real tree is."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    (only,) = source.read(root)
    return list(RULES[rule](only))
