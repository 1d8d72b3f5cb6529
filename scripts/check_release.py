"""``make release-check``: whether this checkout can be released, with everything that is missing at once.

It says so with status 1. `--notes FILE` writes what the changelog says of the version.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ROOT = Path(__file__).resolve().parents[1]
_FACTS = "pyproject.toml, [tool.hatch.metadata.hooks.custom.project]"
_ADDRESS = r"https://[\w.-]+\.[a-z]{2,}(?:/[\w.~%/-]+)?"
# The form of each fact, in words and as a pattern.
_FORMS = {
    "repository": ("https://github.com/OWNER/NAME", r"https://github\.com/[\w.-]+/[\w.-]+(?<!\.git)"),
    "documentation": ("the https address of the site", _ADDRESS),
    "contact": ("an e-mail address, or the https address of a form", rf"[\w.+-]+@[\w.-]+\.[a-z]{{2,}}|{_ADDRESS}"),
}
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>.+))?$", re.MULTILINE)
# Reserved names. Source: RFC 2606.
_NOBODY = re.compile(r"\bexample\.(?:com|net|org)|\.(?:example|invalid|test)\b")


def faults_of(root: Path, tag: str | None, repository: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield each fault, its place, and a fix."""
    facts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]["custom"][
        "project"
    ]
    yield from _facts_faults(facts, repository)
    version = version_of(root)
    if tag is not None and tag != f"v{version}":
        yield (
            f"the tag {tag} is not the version {version}",
            "symphony_charts/version.py",
            f"tag v{version}, or change it",
        )
    yield from _changelog_faults((root / "CHANGELOG.md").read_text(), version)
    known = facts.get("repository", "")
    is_known = re.fullmatch(_FORMS["repository"][1], known) is not None
    yield from _citation_faults((root / "CITATION.cff").read_text(), version, known if is_known else "")


def version_of(root: Path) -> str:
    match = re.search(r'^__version__ = "(.+)"$', (root / "symphony_charts/version.py").read_text(), re.MULTILINE)
    return match[1] if match else ""


def notes_of(changelog: str, version: str) -> str:
    """Return the changelog's section about `version`, without its heading; empty if there is none."""
    for heading, after in pairwise((*_HEADING.finditer(changelog), None)):
        if heading is not None and heading["version"] == version:
            return changelog[heading.end() : after.start() if after else None].strip()
    return ""


def _facts_faults(facts: Mapping[str, str], repository: str | None) -> Iterator[tuple[str, str, str]]:
    for name, (words, pattern) in _FORMS.items():
        value = facts.get(name, "")
        if not value:
            yield f"nobody has said the project's {name}", _FACTS, f"set `{name}` to {words}"
        elif not re.fullmatch(pattern, value) or _NOBODY.search(value):
            yield f"the project's {name} cannot be {value!r}", _FACTS, f"set it to {words}"
    known = facts.get("repository", "")
    if repository is not None and known and repository.lower() != known.lower():
        yield f"this is {repository}, not the project's {known}", _FACTS, "release there, or say the new address"


def _changelog_faults(changelog: str, version: str) -> Iterator[tuple[str, str, str]]:
    dates = {heading["version"]: heading["date"] for heading in _HEADING.finditer(changelog)}
    if version not in dates:
        yield f"the changelog has no section of {version}", "CHANGELOG.md", f"add `## [{version}] - YYYY-MM-DD`"
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", dates[version] or ""):
        yield f"the section of {version} has no date", "CHANGELOG.md", f"write `## [{version}] - YYYY-MM-DD`"
    elif not notes_of(changelog, version):
        yield f"the section of {version} says nothing", "CHANGELOG.md", "say what users notice"
    if notes_of(changelog, "Unreleased"):
        yield "changes stand under Unreleased", "CHANGELOG.md", f"move them below the heading of {version}"


def _citation_faults(citation: str, version: str, repository: str) -> Iterator[tuple[str, str, str]]:
    if "authors # to be named" in citation:
        step = "give `family-names` and `given-names`, or the `name` of an organisation"
        yield "nobody has named the authors", "CITATION.cff, authors", step
    for key, value in (("version", version), ("repository-code", repository)):
        if value and not re.search(rf"^{key}: {re.escape(value)}$", citation, re.MULTILINE):
            yield f"the citation has another {key} than {value}", "CITATION.cff", f"write `{key}: {value}`"


def main(argv: list[str] | None = None) -> int:
    """Print every fault; return 0 if there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="the tag that is released")
    parser.add_argument("--repository", metavar="URL", help="where it is released")
    parser.add_argument(
        "--notes", type=Path, metavar="FILE", help="write the changelog's section there, if all is well"
    )
    parser.add_argument("--root", type=Path, default=_ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    faults = list(faults_of(options.root, options.tag, options.repository))
    for what, where, step in faults:
        print(f"error: {what}\n  at:   {where}\n  next: {step}", file=sys.stderr)
    if faults:
        return 1
    version = version_of(options.root)
    if options.notes is not None:
        options.notes.write_text(notes_of((options.root / "CHANGELOG.md").read_text(), version) + "\n")
    print(f"{version} can be released")
    return 0


if __name__ == "__main__":
    sys.exit(main())
