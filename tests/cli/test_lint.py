"""`symph validate` reports findings with their places in every format, and fails on errors or by request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import symph as command
from tests.cli.conftest import SPEC, Symph

pytestmark = pytest.mark.usefixtures("spec")


GPU = ("--spec-set", "processes.server.gpus=1", "--spec-set", "processes.server.until=uninstall")


def test_warnings_are_printed_and_fail_only_when_strict(symph: Symph) -> None:
    said = symph("validate", "exp.yaml", *GPU).stdout
    assert "[runs-on]" in said
    assert "at:   exp.yaml, processes.server" in said
    symph("validate", "exp.yaml", *GPU, "--strict", status=1)


def test_json_and_sarif_hold_the_findings(symph: Symph) -> None:
    items = json.loads(symph("validate", "exp.yaml", *GPU, "-o", "json").stdout)["items"]
    assert [item["rule"] for item in items] == ["runs-on", "pod-security-restricted"]
    result, info = json.loads(symph("validate", "exp.yaml", *GPU, "-o", "sarif").stdout)["runs"][0]["results"]
    assert (result["ruleId"], info["level"]) == ("runs-on", "note")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 4


def test_findings_of_a_spec_from_stdin_have_no_line(tmp_path: Path, spec: Path) -> None:
    ended = command.symph("validate", "-", *GPU, "-o", "sarif", cwd=tmp_path, stdin=spec.read_text())
    result, _ = json.loads(ended.stdout)["runs"][0]["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]


def test_an_unknown_kubernetes_is_refused(symph: Symph) -> None:
    assert "1.37" in symph("validate", "exp.yaml", "--kube-version", "1.11", status=3).stderr


@pytest.mark.parametrize("place", ["configs: {a.txt: {text: T}}", "annotations: {note: T}"])
def test_a_token_anywhere_in_the_spec_is_one_error(symph: Symph, spec: Path, place: str) -> None:
    token = "ghp_" + "k3Jd8sLq0ZmPw7RtYvXc2BnA9fGhUe5TiOsD"
    spec.write_text(SPEC + place.replace("T}", f"{token}}}") + "\n")
    assert symph("validate", "exp.yaml", status=1).stdout.count("[leak]") == 1
