"""What the site adds to the pages: a navigation that forgives, pages made of files
outside docs, links that lead to them, and drawings that follow the theme."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DRAWING = re.compile(r"^!\[([^\]]*)\]\(((?:\.\./)*images/[\w-]+\.svg)\)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")
PICTURE = re.compile(
    r'<picture>\s*<source[^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">'
    r"\s*</picture>"
)
"""One picture by night and one by day; a page of the site asks its own theme."""
FOLDERS = ("decisions/", "examples/")
"""Entries of the navigation that stand for all pages of a folder."""
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "changelog.d/README.md": "changelog.md",
}
"""Files outside docs that have a page of another name."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Takes what is there from the list, and puts what nobody listed at its end."""
    docs = Path(config.docs_dir)
    made = {page.src_uri for page in made_pages(config)}
    there = made | {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    config.nav = list(listed(config.nav or [], there))
    left = sorted(there - set(named(config.nav)))
    if left:
        config.nav.append({"More": left})
    return config


def listed(entries: list[Any], there: set[str]) -> Iterator[Any]:
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            inner = list(listed(target, there))
            if inner:
                yield {title: inner}
        elif target in FOLDERS:
            index = f"{target}index.md"
            inside = {page for page in there if page.startswith(target)} - {index}
            yield {title: [index, *sorted(inside, reverse=target == "decisions/")]}
        elif target in there:
            yield entry


def named(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        targets = entry.values() if isinstance(entry, dict) else [entry]
        for target in targets:
            yield from named(target) if isinstance(target, list) else [target]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page in made_pages(config):
        files.append(page)
    return files


def made_pages(config: MkDocsConfig) -> Iterator[File]:
    """Pages of files that live elsewhere in the checkout."""
    texts = {
        "changelog.md": changelog(),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(),
        "decisions/index.md": decisions(),
        "examples/index.md": examples(),
        "examples/scenarios.md": scenarios(),
    }
    for program in sorted((ROOT / "examples").glob("*.py")):
        texts[f"examples/{program.stem}.md"] = shown(program)
    for path, text in texts.items():
        yield File.generated(config, path, content=text)


def decisions() -> str:
    lines = ["# Decisions", "", "What was chosen, against what, and what was measured."]
    lines.append("")
    for record in sorted((ROOT / "docs" / "decisions").glob("*.md"), reverse=True):
        if record.name != "0000-template.md":
            title = record.read_text().partition("\n")[0].removeprefix("# ")
            lines.append(f"- [{title}]({record.name})")
    return "\n".join(lines) + "\n"


def changelog() -> str:
    """All fragments, the newest first."""
    fragments = sorted((ROOT / "changelog.d").glob("0*.md"), reverse=True)
    told = "".join(fragment.read_text().rstrip() + "\n" for fragment in fragments)
    return f"# What is new\n\nSince the beginning; there was no release yet.\n\n{told}"


def examples() -> str:
    lines = ["# Examples", "", "Whole programs; the tests run each of them.", ""]
    lines += [
        f"- [{program.name}]({program.stem}.md): {about(program)}"
        for program in sorted((ROOT / "examples").glob("*.py"))
    ]
    lines += ["", "[Scenarios of the simulator](scenarios.md)"]
    return "\n".join(lines) + "\n"


def about(program: Path) -> str:
    text = ast.get_docstring(ast.parse(program.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def shown(program: Path) -> str:
    code = program.read_text().rstrip()
    return f"# {program.name}\n\n```python\n{code}\n```\n"


def scenarios() -> str:
    parts = [
        "# Scenarios\n\n`headway simulate examples/scenarios/NAME.toml` runs each.\n"
    ]
    for scenario in sorted((ROOT / "examples" / "scenarios").glob("*.toml")):
        text = scenario.read_text().rstrip()
        parts.append(f"\n## {scenario.stem}\n\n```toml\n{text}\n```\n")
    return "".join(parts)


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    here = PurePosixPath(page.file.src_uri).parent
    top = "../" * len(here.parts)
    is_ours = page.file.src_uri not in {"changelog.md", "contributing.md"}
    written = "docs" / here if is_ours else PurePosixPath()

    def leading(link: re.Match[str]) -> str:
        return f"]({top}{target(link[1], written)}{link[2] or ''})"

    def drawn(drawing: re.Match[str]) -> str:
        file = Path(config.docs_dir, here, drawing[2])
        text = re.sub(
            r"<\?xml.*?\?>|<style>.*?</style>", "", file.read_text(), flags=re.S
        )
        return f'<figure class="drawing" markdown="0">{text.strip()}</figure>'

    markdown = DRAWING.sub(drawn, markdown)
    by_theme = r"![\2](\3#only-light)![\2](\1#only-dark)"
    markdown = PICTURE.sub(by_theme, markdown)
    return LINK.sub(leading, markdown)


def target(link: str, folder: PurePosixPath) -> str:
    """Where a link of a file in that folder leads on the site, seen from its top."""
    parts: list[str] = []
    for part in (folder / link).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    path = "/".join(parts)
    if path.startswith("docs/"):
        inner = path.removeprefix("docs/")
        if (ROOT / path).is_dir():
            is_readme = (ROOT / path / "README.md").exists()
            return f"{inner}/{'README' if is_readme else 'index'}.md"
        return inner
    if path.startswith("examples/scenarios"):
        name = PurePosixPath(path).stem
        return "examples/scenarios.md" + (f"#{name}" if path.endswith(".toml") else "")
    if path.startswith("examples"):
        name = PurePosixPath(path).stem
        return f"examples/{'index' if name == 'examples' else name}.md"
    return ELSEWHERE.get(path, path)
