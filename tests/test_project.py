"""The files around the package: files for forges, hooks and images, the changelog, the release check.

Nothing of it runs here; programs that know each format check it.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

import hatch_build
from tests.pages.blocks import blocks_of

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "gitops" / "[[ cookiecutter.name ]]"
SCHEMAS = {
    "vendor.github-workflows": sorted((ROOT / ".github" / "workflows").iterdir()),
    "vendor.github-actions": [ROOT / "action.yml"],
    "vendor.github-issue-forms": [ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug", "idea")],
    "vendor.github-issue-config": [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"],
}
# The ones that docs/automation.md shows.
SHOWN = {"vendor.github-workflows": ".github/workflows/review.yaml"}
FACTS = {
    "repository": "https://github.com/owner/name",
    "documentation": "https://owner.github.io/name",
    "contact": "security@owner.dev",
}


def said(*argv: str) -> str:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    ended = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": path, "HOME": str(ROOT / ".cache" / "home")},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def shown_file(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return a file that docs/automation.md shows, saved as a reader would, and its parsed content."""
    blocks = blocks_of(ROOT / "docs" / "automation.md")
    text = next(block.text for block in blocks if block.text.startswith(f"# {name}\n"))
    path = folder / Path(name).name
    path.write_text(text)
    return path, yaml.safe_load(text)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_forges_fit_their_schemas(schema: str, tmp_path: Path) -> None:
    shown = [shown_file(SHOWN[schema], tmp_path)[0]] if schema in SHOWN else []
    said("check-jsonschema", "--builtin-schema", schema, *map(str, [*SCHEMAS[schema], *shown]))


def test_what_a_page_shows_gives_hook_action_and_template_what_they_take(tmp_path: Path) -> None:
    _, config = shown_file(".pre-commit-config.yaml", tmp_path)
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {hook["id"] for hook in config["repos"][0]["hooks"]} <= {hook["id"] for hook in hooks}
    _, workflow = shown_file(".github/workflows/review.yaml", tmp_path)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert workflow["jobs"]["review"]["steps"][-1]["with"].keys() <= inputs.keys()
    _, pipeline = shown_file(".gitlab-ci.yml", tmp_path)
    head = (ROOT / "templates" / "review.yml").read_text().partition("\n---\n")[0]
    assert pipeline["include"][0]["inputs"].keys() <= yaml.safe_load(head)["spec"]["inputs"].keys()


def test_the_template_for_gitlab_fits_its_schema(tmp_path: Path) -> None:
    head, _, jobs = (ROOT / "templates" / "review.yml").read_text().partition("\n---\n")
    inputs = yaml.safe_load(head)["spec"]["inputs"]
    used = set(re.findall(r"\$\[\[ inputs\.([\w-]+) \]\]", jobs))
    assert used == set(inputs)
    filled = re.sub(r"\$\[\[ inputs\.[\w-]+ \]\]", "x", jobs)
    (tmp_path / "jobs.yml").write_text(filled)
    said(
        "check-jsonschema",
        "--builtin-schema",
        "vendor.gitlab-ci",
        "--data-transform",
        "gitlab-ci",
        str(tmp_path / "jobs.yml"),
        str(shown_file(".gitlab-ci.yml", tmp_path)[0]),
    )


def review_of(script: str, folder: Path, **env: str) -> tuple[int, list[list[str]]]:
    """Return the exit status of a step, run as the forge's shell does, and the calls of `symph`, `gh` and `curl`."""
    programs = folder / "symph" / "bin"
    programs.mkdir(parents=True)
    for name in ("symph", "gh", "curl", "pip"):
        # The review says no.
        lines = ["#!/bin/sh", f"printf '%s\\n' {name} \"$@\" '' >>'{folder}/calls'", f"exit {int(name == 'symph')}"]
        (programs / name).write_text("\n".join(lines))
        (programs / name).chmod(0o755)
    usual = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "RUNNER_TEMP": str(folder),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }
    argv = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, env=usual | env, cwd=folder)
    calls = (folder / "calls").read_text().split("\n\n")
    return ended.returncode, [call.split("\n") for call in calls if call and not call.startswith("pip")]


@pytest.mark.parametrize(
    ("specs", "env", "pools", "strict", "fork", "event", "words", "comments"),
    [
        (
            *("a b.yaml\n$(id).yaml\n", "dev", "", "true", "false", "pull_request"),
            *(["--env", "dev", "--strict", "a b.yaml", "$(id).yaml"], 1),
        ),
        ("a.yaml", "", "p", "false", "true", "pull_request", ["--pools", "p", "a.yaml"], 0),
        ("a.yaml", "", "p", "false", "", "push", ["--pools", "p", "a.yaml"], 0),
    ],
)
def test_the_action_hands_every_line_on_as_one_word_and_comments_where_it_may(
    tmp_path: Path,
    specs: str,
    env: str,
    pools: str,
    strict: str,
    fork: str,
    event: str,
    words: list[str],
    comments: int,
) -> None:
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][-1]
    given = {"SPECS": specs, "ENVIRONMENTS": env, "POOLS": pools, "STRICT": strict, "FORK": fork, "EVENT": event}
    status, (review, *rest) = review_of(step["run"], tmp_path, **given, COMMENT="true", NUMBER="7")
    assert (status, review) == (1, ["symph", "gitops", "review", *words])
    assert [call[:4] for call in rest] == [["gh", "pr", "comment", "7"]] * comments
    assert set(step["env"]) == {*given, "COMMENT", "NUMBER", "GH_REPO", "GH_TOKEN"}


@pytest.mark.parametrize(("token", "notes"), [("key", ["curl"]), ("", [])])
def test_the_template_for_gitlab_comments_with_a_token(tmp_path: Path, token: str, notes: list[str]) -> None:
    jobs = yaml.safe_load((ROOT / "templates" / "review.yml").read_text().partition("\n---\n")[2])
    given = {"SYMPH_REVIEW_SPECS": "a.yaml *", "SYMPH_REVIEW_ARGUMENTS": "--env dev", "SYMPH_REVIEW_FROM": "x"}
    script = "\n".join(jobs["symph-review"]["script"])
    status, (review, *rest) = review_of(script, tmp_path, **given, GITLAB_TOKEN=token)
    assert (status, review) == (1, ["symph", "gitops", "review", "--env", "dev", "a.yaml", "*"])
    assert [call[0] for call in rest] == notes
    assert all("key" not in word for call in rest for word in call)


def test_hooks_are_such_as_pre_commit_knows_and_name_a_verb_that_is_there(tmp_path: Path) -> None:
    said("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml")
    shown, _ = shown_file(".pre-commit-config.yaml", tmp_path)
    said("pre-commit", "validate-config", ".pre-commit-config.yaml", str(shown))
    said(*yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]["entry"].split(), "--help")


def test_no_workflow_gives_away_a_right_or_runs_what_others_wrote() -> None:
    assert said("zizmor", "--offline", "--quiet", "--strict-collection", ".github", "gitops", "action.yml")


def test_the_container_image_is_made_as_one_should_be() -> None:
    said("hadolint", "Containerfile")


def test_every_action_is_one_commit_for_ever_everywhere() -> None:
    files = [*SCHEMAS["vendor.github-workflows"], ROOT / "action.yml", TEMPLATE / ".github/workflows/check.yaml"]
    uses = [re.findall(r"uses: (?!\./)(.+)", path.read_text()) for path in files]
    assert all(uses)
    known = set(itertools.chain(*uses))
    assert [use for use in known if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    assert len({use.partition("@")[0] for use in known}) == len(known)


# The changelog


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    released = r"\[\d+\.\d+\.\d+\] - (?:\d{4}-\d\d-\d\d|unreleased)"
    assert [version for version in versions[1:] if not re.fullmatch(released, version)] == []


# The release check


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    text = (ROOT / "pyproject.toml").read_text()
    for name, value in FACTS.items():
        text = re.sub(rf'^{name} = "[^"]*"', f'{name} = "{value}"', text, flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "symphony_charts").mkdir()
    (tmp_path / "symphony_charts" / "version.py").write_text('__version__ = "0.1.0"\n')
    changelog = (
        "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n### Added\n- One.\n\n## [0.0.1] - 2026-11-01\n"
    )
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    citation = (ROOT / "CITATION.cff").read_text()
    citation = re.sub(r"- name: .*", "- name: The lab", citation).replace("0.1.0", "0.1.0\nrepository-code: FACT")
    (tmp_path / "CITATION.cff").write_text(citation.replace("FACT", FACTS["repository"]))
    return tmp_path


def released(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts" / "check_release.py"), "--root", str(root), *options]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_what_is_complete_can_be_released_with_the_changelogs_words(checkout: Path) -> None:
    options = ("--tag", "v0.1.0", "--repository", "https://github.com/Owner/name", "--notes", str(checkout / "notes"))
    ended = released(checkout, *options)
    assert (ended.returncode, ended.stdout) == (0, "0.1.0 can be released\n"), ended.stderr
    assert (checkout / "notes").read_text() == "### Added\n- One.\n"


def test_every_fact_that_nobody_has_said_is_asked_for_at_once(tmp_path: Path, checkout: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", checkout)
    for name in FACTS:
        text = (checkout / "pyproject.toml").read_text()
        (checkout / "pyproject.toml").write_text(
            re.sub(rf'^{name} = "[^"]*"', f'{name} = ""', text, flags=re.MULTILINE)
        )
    ended = released(checkout, "--notes", str(tmp_path / "notes"))
    assert ended.returncode == 1
    assert re.findall(r"nobody has said the project's (\w+)", ended.stderr) == list(FACTS)
    assert not (tmp_path / "notes").exists()


@pytest.mark.parametrize(
    ("file", "before", "after", "options", "what"),
    [
        (
            "pyproject.toml",
            "github.com/owner/name",
            "github.com/owner/name.git",
            (),
            "the project's repository cannot be",
        ),
        ("pyproject.toml", "owner.github.io", "docs.example.org", (), "the project's documentation cannot be"),
        ("pyproject.toml", "security@owner.dev", "security", (), "the project's contact cannot be"),
        ("CITATION.cff", "The lab", "The authors # to be named", (), "nobody has named the authors"),
        ("CITATION.cff", "version: 0.1.0", "version: 0.0.1", (), "the citation has another version than 0.1.0"),
        ("CITATION.cff", "owner/name", "owner/other", (), "the citation has another repository-code"),
        ("CHANGELOG.md", "2026-12-01", "unreleased", (), "the section of 0.1.0 has no date"),
        ("CHANGELOG.md", "[0.1.0]", "[0.2.0]", (), "the changelog has no section of 0.1.0"),
        ("CHANGELOG.md", "### Added\n- One.\n", "", (), "the section of 0.1.0 says nothing"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n- Two.\n", (), "changes stand under Unreleased"),
        ("CHANGELOG.md", "One", "Two", ("--tag", "v0.2.0"), "the tag v0.2.0 is not the version 0.1.0"),
        (
            "CHANGELOG.md",
            "One",
            "Two",
            ("--repository", "https://github.com/o/fork"),
            "this is https://github.com/o/fork",
        ),
    ],
)
def test_what_is_wrong_is_refused(
    checkout: Path, file: str, before: str, after: str, options: tuple[str, ...], what: str
) -> None:
    change(checkout / file, before, after)
    ended = released(checkout, *options)
    assert ended.returncode == 1
    assert f"error: {what}" in ended.stderr
    assert ended.stderr.count("error: ") == 1


# The licences


def test_the_notice_names_every_file_of_data_that_was_made_from_the_work_of_others() -> None:
    notice = (ROOT / "NOTICE").read_text()
    patterns = re.findall(r"[\w.-]+[*][\w.*]*", notice)
    schemas = [path.name for path in (ROOT / "symphony_charts/chart/lint/schemas").iterdir()]
    assert [name for name in schemas if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    data = [*ROOT.glob("symphony_charts/placement/data/*"), ROOT / "symphony_charts/secrets/rules.json"]
    assert [path.name for path in data if str(path.relative_to(ROOT)) not in notice] == []
    licence = json.loads((ROOT / "symphony_charts/secrets/rules.json").read_text())["licence"]
    assert [line for line in licence if line not in notice] == []


def test_the_citation_is_one() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


# The description


def test_links_of_the_description_are_found_from_anywhere() -> None:
    text = (
        "[a](docs/a.md#x) ![b](docs/b.svg) [![c](c.png)](docs/c.md) [d](https://d.dev) [e](#e)"
        ' <img src="f.svg"> <a href="g.md"> <source srcset="h.svg">'
    )
    assert hatch_build.with_full_links(text, "https://github.com/o/n", "v1") == (
        "[a](https://github.com/o/n/blob/v1/docs/a.md#x) ![b](https://github.com/o/n/raw/v1/docs/b.svg)"
        " [![c](https://github.com/o/n/raw/v1/c.png)](https://github.com/o/n/blob/v1/docs/c.md)"
        " [d](https://d.dev) [e](#e)"
        ' <img src="https://github.com/o/n/raw/v1/f.svg"> <a href="https://github.com/o/n/blob/v1/g.md">'
        ' <source srcset="https://github.com/o/n/raw/v1/h.svg">'
    )


def test_no_link_is_made_of_facts_that_nobody_has_said() -> None:
    links = hatch_build.links
    assert links(dict.fromkeys(FACTS, "")) == {}
    assert links(FACTS)["Documentation"] == FACTS["documentation"]
    assert all(link.startswith("https://") for link in links(FACTS).values())
