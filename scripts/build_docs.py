"""Build docs/site with zensical from README, docs/ and pages generated from the code; fail on a dead link.

The pages of the command come from its parser, those of the spec from its JSON Schema, those of Python from docstrings.
``make docs`` installs the generator into a separate environment.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from symphony_charts.cli.parser import SymphonyParser  # noqa: E402 - of this checkout
from symphony_charts.cli.verbs import GROUPS, VERBS  # noqa: E402 - likewise
from symphony_charts.settings.project import settings_schema  # noqa: E402 - likewise
from symphony_charts.spec.json_schema import json_schema  # noqa: E402 - likewise

PAGES, SITE = ROOT / "build" / "docs", ROOT / "docs" / "site"
GENERATOR = ROOT / ".cache" / "docs" / "bin" / "zensical"
# The menu, besides the references. Pages that no part names go into the last part.
PARTS = {
    "Tutorial": ["tutorial-rl", "tutorial-platform"],
    "Guides": [
        *("local", "watching", "sweep", "gitops", "releases", "secrets", "oci", "automation"),
        *("import", "from-skypilot", "from-xpk", "from-compose", "from-helm", "from-symphony"),
        *("torchx", "dijob", "argo", "own-project", "examples"),
    ],
    "Concepts": ["spec", "chart", "workloads", "placement", "local-speed"],
    "Reference": ["glossary", "cli", "settings", "variables", "pools", "output"],
    "Project": ["development", "e2e"],
}
PYTHON = {
    "Builders": ["symphony_charts.spec.builder.experiment", "symphony_charts.spec.builder.pods"],
    "Clusters": [
        "symphony_charts.clusters.base",
        "symphony_charts.clusters.tmux",
        "symphony_charts.clusters.kubernetes",
    ],
    "Commands of your own": ["symphony_charts.cli.parser"],
    "Errors": ["symphony_charts.errors"],
}


def main() -> None:
    """Write the pages, build the site, and check all its links."""
    for name in ("pictures", "screens"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / f"{name}.py")], check=True)
    settings = ROOT / "docs" / "settings.md"
    settings.write_text(with_settings(settings.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.rmtree(PAGES, ignore_errors=True)
    lay_pages(PAGES)
    config = PAGES.parent / "mkdocs.yml"
    config.write_text((ROOT / "scripts" / "site.yml").read_text(encoding="utf-8") + menu(), encoding="utf-8")
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run([str(GENERATOR), "build", "--clean", "--config-file", str(config)], check=True)
    shutil.move(PAGES.parent / "site", SITE)
    dead = list(dead_links(SITE))
    if dead:
        raise SystemExit("\n".join(["dead links:", *dead]))
    print(f"{sum(1 for _ in SITE.rglob('*.html'))} pages in {SITE.relative_to(ROOT)}, no dead link")


def lay_pages(folder: Path) -> None:
    """Write every page of the site as Markdown below `folder`, which is new."""
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("site"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (folder / "index.md").write_text(readme.replace('"docs/', '"').replace("](docs/", "]("), encoding="utf-8")
    written = {**cli_pages(), **schema_pages(), **python_pages(), "decisions/index.md": decisions_page()}
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for page in folder.rglob("*.md"):
        page.write_text(without_links_outside(page), encoding="utf-8")


def without_links_outside(page: Path) -> str:
    """Return the text of a page; links to files outside of the site, such as an example, become plain text."""

    def keep(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        if re.match(r"[a-z]+:", match[2]) or not target or (page.parent / target).is_file():
            return match[0]
        index = page.parent / target / "index.md"
        return f"[{match[1]}]({target}/index.md)" if index.is_file() else match[1]

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", keep, page.read_text(encoding="utf-8"))


def menu() -> str:
    known = {name for names in PARTS.values() for name in names}
    others = sorted(path.stem for path in (ROOT / "docs").glob("*.md") if path.stem not in known)
    lines = ["", "nav:", "  - Overview: index.md"]
    for part, names in PARTS.items():
        lines.append(f"  - {part}:")
        lines += [f"    - {name}.md" for name in [*names, *(others if part == "Reference" else [])]]
        if part == "Reference":
            lines += [
                "    - Verbs:",
                *(f"      - verbs/{name}.md" for name in ["index", *sorted(v.name for v in VERBS)]),
            ]
            lines += ["    - schema.md", "    - python.md"]
        if part == "Project":
            lines.append("    - Decisions:")
            lines += [
                f"      - decisions/{name}"
                for name in ["index.md", *sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))]
            ]
    return "\n".join(lines) + "\n"


# The command


def cli_pages() -> dict[str, str]:
    """Return a page for each verb, from its parser, and an index page."""
    sys.argv[0] = "symph"  # the first word of the usage
    parser = SymphonyParser()
    parser.load_all()
    index = ["# Verbs", "", "`symph VERB --help` prints the same text.", ""]
    pages = {}
    for group, title in GROUPS.items():
        index += [f"## {title}", "", "| verb | other names | effect |", "|---|---|---|"]
        for verb in (verb for verb in VERBS if verb.group == group):
            others = ", ".join(f"`{name}`" for name in verb.aliases)
            index.append(f"| [`{verb.name}`]({verb.name}.md) | {others} | {_cell(verb.summary)} |")
            pages[f"verbs/{verb.name}.md"] = "\n".join(_verb(f"symph {verb.name}", parser.get_subparser(verb.name), 1))
        index.append("")
    return {**pages, "verbs/index.md": "\n".join(index)}


def _verb(title: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield from (
        f"{'#' * level} {title}",
        "",
        _text(parser.description or ""),
        "",
        "```text",
        parser.format_usage().strip(),
    )
    yield from ("```", "", "| argument | meaning |", "|---|---|")
    nested: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            nested = dict(action.choices)
        elif action.help != argparse.SUPPRESS:
            names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`"
            told = (action.help or "") % {**vars(action), "prog": parser.prog}
            yield f"| {names}{_value(action)} | {_cell(told)} |"
    yield ""
    if parser.epilog:
        yield from ("```sh", parser.epilog.replace("examples:", "# examples").strip(), "```", "")
    seen: set[int] = set()
    for name, below in nested.items():
        if id(below) not in seen:
            seen.add(id(below))
            yield from _verb(f"{title} {name}", below, level + 1)


def _value(action: argparse.Action) -> str:
    if not action.option_strings or action.nargs == 0:
        return ""
    choices = ", ".join(map(str, action.choices)) if action.choices else ""
    shown = action.metavar if isinstance(action.metavar, str) else choices or action.dest.upper()
    return f" `{_cell(shown)}`"


# The spec


def schema_pages() -> dict[str, str]:
    """Return one page with a table for each record."""
    lines = [
        "# Fields of an experiment",
        "",
        "The JSON Schema of `symph schema` as tables. To use it in an editor: `symph schema --install-hint`.",
        "",
        *_records(json_schema(), "Experiment", "##"),
    ]
    return {"schema.md": "\n".join(lines)}


def with_settings(text: str) -> str:
    """Return docs/settings.md with a reference of every key of `.symph.yaml` in its last part."""
    heading = "## Every key\n"
    return "\n".join([text.partition(heading)[0] + heading, *_records(settings_schema(), "Keys", "###")])


def _records(schema: dict[str, Any], first: str, level: str) -> Iterator[str]:
    records = {name: part for name, part in schema["$defs"].items() if part.get("properties")}
    for name in sorted(records, key=lambda name: (name != first, name)):
        part = records[name]
        yield from (
            f"{level} {name}",
            "",
            part.get("description", ""),
            "",
            "| field | type | default | meaning |",
            "|---|---|---|---|",
        )
        for field, form in part["properties"].items():
            default = (
                f"`{form['default']}`"
                if form.get("default", "") != "" and not isinstance(form["default"], dict)
                else "required"
                if field in part.get("required", ())
                else ""
            )
            yield f"| `{field}` | {_form(form)} | {default} | {_cell(form['description'])} |"
        yield ""


def _form(form: dict[str, Any]) -> str:
    """Return a schema in words: `a text`, `list of Mount`..."""
    if "$ref" in form:
        name = form["$ref"].rpartition("/")[2]
        return name if name == "AnyVolume" else f"[{name}](#{name.lower()})"
    if "anyOf" in form:
        return " or ".join(dict.fromkeys(_form(part) for part in form["anyOf"] if part != {"type": "null"}))
    if "enum" in form:
        return ", ".join(f"`{value}`" for value in form["enum"] if value != "")
    if "const" in form:
        return f"`{str(form['const']).lower()}`"
    kind = form.get("type", "anything")
    if kind == "array":
        items = form.get("items")
        return f"list of {_form(items)}" if isinstance(items, dict) else "list"
    if kind == "object":
        each = form.get("additionalProperties")
        return f"map to {_form(each)}" if isinstance(each, dict) else "map"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# The rest


def python_pages() -> dict[str, str]:
    """Return the pages of the Python interface, which the generator fills from docstrings."""
    lines = ["# Python", "", "Names for your scripts. [The spec](spec.md) has examples of the builders.", ""]
    for title, modules in PYTHON.items():
        lines += [f"## {title}", ""]
        for module in modules:
            lines += [f"::: {module}", "    options: {heading_level: 3, show_root_toc_entry: false}", ""]
    return {"python.md": "\n".join(lines)}


def decisions_page() -> str:
    paths = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    titles = [(path.name, path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")) for path in paths]
    return "\n".join(["# Decisions", "", *(f"- [{title}]({name})" for name, title in titles)]) + "\n"


def _text(text: str) -> str:
    """Return help text with angle brackets and stars escaped."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def _cell(text: str) -> str:
    return _text(" ".join(text.split())).replace("|", "\\|")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - HTMLParser's
        for name, value in attrs:
            if name in ("href", "src", "srcset") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> Iterator[str]:
    """Yield links within the site, to a page, a file or an anchor, that lead nowhere."""
    pages = {}
    for path in site.rglob("*.html"):
        pages[path] = _Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        for link in page.links if path.name != "404.html" else ():
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                yield f"{path.relative_to(site)}: {link}"


if __name__ == "__main__":
    main()
