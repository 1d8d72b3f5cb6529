"""`symph gitops review`: the text for a pull request."""

from __future__ import annotations

import json

import pytest
import yaml

from symphony_charts.cli.gitops import MARK, Part, review_text
from tests.cli.git_project import SPEC, Project


def test_no_text_ends_its_block_or_becomes_markup() -> None:
    text = review_text([Part(command=("validate", "a`<b>.yaml"), status=0, text="````\n</details>")])
    assert "`````text\n````\n</details>\n`````" in text
    assert "symph validate a??b?.yaml" in text


def test_a_change_is_reviewed_against_what_runs(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    status, out, _ = project.symph("gitops", "review", "rl.yaml", "--env", "dev")
    assert status == 0
    assert out.startswith(MARK)
    assert "ok `symph validate rl.yaml`" in out
    assert "ok `symph diff rl.yaml --env dev -o markdown`" in out
    assert "**0.1.0 in dev -> rl.yaml**" in out


def test_a_spec_that_is_wrong_says_no_and_nothing_else_is_asked(project: Project) -> None:
    project.write(SPEC.replace("replicas: 2", "relicas: 2"))
    status, out, _ = project.symph("gitops", "review", "rl.yaml", "-o", "json")
    said = json.loads(out)
    assert (status, said["kind"], said["passed"]) == (1, "Review", False)
    assert [(part["command"], part["status"]) for part in said["parts"]] == [(["validate", "rl.yaml"], 3)]
    assert "replicas" in said["parts"][0]["text"]


def test_a_review_passes_without_a_published_chart(project: Project) -> None:
    status, out, _ = project.symph("gitops", "review", "rl.yaml", "--env", "dev", "-o", "json")
    parts = json.loads(out)["parts"]
    assert (status, [part["status"] for part in parts]) == (0, [0, 8])


def test_a_spec_in_python_does_not_see_the_token(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "key")
    lines = ["import os", "assert 'GITHUB_TOKEN' not in os.environ", f"data = {yaml.safe_load(SPEC)!r}"]
    lines += ["from symphony_charts import ExperimentSpec", "experiment = ExperimentSpec.load_dict(data)", ""]
    (project.folder / "rl.py").write_text("\n".join(lines))
    status, out, _ = project.symph("gitops", "review", "rl.py", "--env", "dev")
    assert status == 0, out
