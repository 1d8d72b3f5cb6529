"""`symph package`, as users run it: the files that it writes and keeps, and its output."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.chart.strategies import HOSTILE
from tests.cli.conftest import SPEC, Symph


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("spec")
def test_a_chart_an_archive_and_a_lock_file_are_written(symph: Symph, tmp_path: Path) -> None:
    said = symph("package", "exp.yaml").stdout
    assert said.startswith("exp 0.1.0   2 processes in 2 pods, 1 service   new\n")
    assert "runs on after the end" not in said
    assert (tmp_path / "dist/exp/values.yaml").is_file()
    assert (tmp_path / "dist/exp-0.1.0.tgz").is_file()
    assert "data: 7000" in (tmp_path / "exp.lock.yaml").read_text()


@pytest.mark.usefixtures("spec")
def test_a_second_run_touches_no_file(symph: Symph, tmp_path: Path) -> None:
    symph("package", "exp.yaml")
    before = times(tmp_path / "dist") | times(tmp_path / "exp.lock.yaml")
    assert "unchanged" in symph("package", "exp.yaml").stdout
    assert times(tmp_path / "dist") | times(tmp_path / "exp.lock.yaml") == before


def test_the_version_follows_the_change(symph: Symph, spec: Path) -> None:
    symph("package", "exp.yaml")
    spec.write_text(SPEC.replace("replicas: 2", "replicas: 3"))
    assert "exp 0.1.1" in symph("package", "exp.yaml").stdout
    spec.write_text(SPEC.replace("replicas: 2", "replicas: 3, env: {A: '1'}"))
    assert "was 0.1.1: 1 value added" in symph("package", "exp.yaml").stdout
    spec.write_text(SPEC.replace(", replicas: 2", ""))
    assert "exp 1.0.0" in symph("package", "exp.yaml").stdout


@pytest.mark.usefixtures("spec")
def test_a_given_version_is_taken(symph: Symph, tmp_path: Path) -> None:
    symph("package", "exp.yaml", "--version", "3.2.1", "-d", "charts")
    assert (tmp_path / "charts/exp-3.2.1.tgz").is_file()
    assert 'version: "3.2.1"' in (tmp_path / "charts/exp/Chart.yaml").read_text()


@pytest.mark.usefixtures("spec")
def test_set_changes_the_charts_own_values(symph: Symph, tmp_path: Path) -> None:
    symph("package", "exp.yaml", "--set", "groups.client.replicas=7")
    assert "replicas: 7" in (tmp_path / "dist/exp/values.yaml").read_text()


@pytest.mark.usefixtures("spec")
def test_a_dry_run_writes_nothing(symph: Symph, tmp_path: Path) -> None:
    assert "would be written" in symph("package", "exp.yaml", "--dry-run").stdout
    assert not (tmp_path / "dist").exists()
    assert not (tmp_path / "exp.lock.yaml").exists()


@pytest.mark.usefixtures("spec")
def test_an_edited_file_is_a_conflict_with_a_diff(symph: Symph, tmp_path: Path) -> None:
    symph("package", "exp.yaml")
    edited = tmp_path / "dist/exp/templates/client.yaml"
    edited.write_text(edited.read_text() + "# mine\n")
    refused = symph("package", "exp.yaml", status=7)
    assert "+# mine" in refused.stderr
    assert "# mine" in edited.read_text()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: [1\n"])
def test_edited_values_that_nothing_can_read_are_a_conflict(
    content: bytes, spec: Path, symph: Symph, tmp_path: Path
) -> None:
    symph("package", "exp.yaml")
    (tmp_path / "dist/exp/values.yaml").write_bytes(content)
    spec.write_text(f"{SPEC}labels: {{team: x}}\n")
    assert "values.yaml" in symph("package", "exp.yaml", status=7).stderr


@pytest.mark.usefixtures("spec")
def test_the_users_templates_are_kept_and_packed(symph: Symph, tmp_path: Path) -> None:
    symph("package", "exp.yaml")
    (tmp_path / "dist/exp/templates/extra-note.yaml").write_text("# mine\n")
    (tmp_path / "dist/exp/values-prod.yaml").write_text("hold: false\n")
    said = symph("package", "exp.yaml").stdout
    assert "exp 0.1.1" in said
    assert (tmp_path / "dist/exp/values-prod.yaml").is_file()
    listed = subprocess.run(
        ["tar", "tzf", tmp_path / "dist/exp-0.1.1.tgz"], capture_output=True, text=True, check=True, timeout=10
    )
    assert "exp/templates/extra-note.yaml" in listed.stdout
    assert "values-prod" not in listed.stdout


def test_many_specs_are_packaged_and_found_unchanged(symph: Symph, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"e{number}.yaml").write_text(SPEC.replace("name: exp", f"name: e{number}"))
    symph("package", *[f"e{number}.yaml" for number in range(5)], "-d", "charts")
    before = times(tmp_path / "charts")
    args = [path.name for path in sorted(tmp_path.glob("e*.yaml"))]
    items = json.loads(symph("package", *args, "-d", "charts", "-o", "json").stdout)["items"]
    assert [(item["name"], item["written"]) for item in items] == [(f"e{number}", 0) for number in range(5)]
    assert times(tmp_path / "charts") == before


def test_a_chart_deleted_meanwhile_is_made_again(symph: Symph, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"e{number}.yaml").write_text(SPEC.replace("name: exp", f"name: e{number}"))
    symph("package", "e0.yaml", "e1.yaml")
    (tmp_path / "dist/e1/values.yaml").unlink()
    symph("package", "e0.yaml", "e1.yaml")
    assert (tmp_path / "dist/e1/values.yaml").is_file()


@pytest.mark.usefixtures("spec")
def test_one_bad_spec_among_many_writes_nothing(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(SPEC.replace("connects: data", "connects: dota"))
    refused = symph("package", "exp.yaml", "bad.yaml", status=3)
    assert "processes.client.connects[0]" in refused.stderr
    assert "bad.yaml" in refused.stderr
    assert not (tmp_path / "dist").exists()


def test_hostile_strings_survive_a_second_run(symph: Symph, tmp_path: Path) -> None:
    data = {"name": "exp", "image": "x:1", "processes": {"p": {"args": list(HOSTILE)}}}
    (tmp_path / "exp.json").write_text(json.dumps(data))
    symph("package", "exp.json")
    assert "unchanged" in symph("package", "exp.json").stdout


def test_secret_files_that_are_not_here_are_told_with_the_next_step(spec: Path, symph: Symph, tmp_path: Path) -> None:
    spec.write_text(f"{SPEC}secrets: [key.txt, other.txt]\n")
    (tmp_path / "key.txt").write_text("x")
    said = symph("package", "exp.yaml").stderr
    assert f"not here, and not needed for the chart: secret files {tmp_path / 'other.txt'}\n" in said
    assert "next: symph secrets push exp.yaml" in said
    (tmp_path / "other.txt").write_text("x")
    assert "secret files" not in symph("package", "exp.yaml").stderr
