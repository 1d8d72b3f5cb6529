"""Text in a repository cannot send control sequences to the reader's terminal."""

from __future__ import annotations

import re

import pytest

from tests.cli.git_project import POINTER, SPEC, Project
from tests.gitops.servers import commit

TITLE, CONCEAL, C1, BACKWARDS = r"\e]0;pwn\a", r"\e[8m", r"\u009b2J", r"\u202e"
EVIL = f'"{TITLE}{CONCEAL}{C1}{BACKWARDS}evil"'
VERBS = {
    "publish": "publish rl.yaml --env dev",
    "publish-dry-run": "publish rl.yaml --env dev --dry-run",
    "publish-markdown": "publish rl.yaml --env dev --dry-run -o markdown",
    "diff": "diff rl.yaml --env dev",
    "diff-markdown": "diff rl.yaml --env dev -o markdown",
    "diff-json": "diff rl.yaml --env dev -o json",
    "promote": "promote rl --from dev --to prod --dry-run",
    "rollback": "rollback rl --env dev --dry-run",
    "retire": "retire rl --env dev --dry-run",
    "status": "status rl --env dev",
    "status-json": "status rl --env dev -o json",
    "history": "history rl --env dev",
    "lint": "gitops lint",
    "render": "gitops render --env dev",
    "render-json": "gitops render --env dev -o json",
    "review": "gitops review",
}


def replace_in_pointer(project: Project, key: str) -> None:
    """Commit the pointer of dev with hostile text as the value of `key`."""
    text = re.sub(rf"(?m)^(\s*{key}:).*$", lambda match: f"{match[1]} {EVIL}", project.show(POINTER))
    commit(project.repo, {POINTER: text}, "hand \x1b]0;pwn\x07 edit")


@pytest.mark.parametrize("key", ["by", "namespace"])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_prints_control_characters_of_a_repository(verb: str, key: str, project: Project) -> None:
    project.publish(2)
    project.publish(3)
    project.write(SPEC.replace("replicas: 2", "replicas: 4"))
    replace_in_pointer(project, key)
    _, out, err = project.symph(*VERBS[verb].split())
    assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out + err) == []
