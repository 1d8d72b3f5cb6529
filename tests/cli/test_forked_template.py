"""`chart-template/` can be forked: its chart takes cookiecutter's answers; `package --template` uses a fork."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from symphony_charts.system.package_data import path as data_path
from tests.chart.harness import helm_objects, run_helm
from tests.cli.conftest import SPEC
from tests.symph import symph
from tests.tools import HELM_VERSIONS, helm

CHART = "[[ cookiecutter.name ]]"


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """Return a copy of the template beside a spec, with a hook whose execution would be noticed."""
    (tmp_path / "exp.yaml").write_text(SPEC)
    made = tmp_path / "ours"
    shutil.copytree(data_path("chart-template"), made)
    (made / "hooks/post_gen_project.py").write_text(f"open({str(tmp_path / 'hook-ran')!r}, 'w')\n")
    return made


def package(folder: Path, *words: str, status: int = 0, helm_bin: str = "") -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SYMPH_STATE_DIR": str(folder / "state"), "HELM_BIN": helm_bin}
    ended = symph("package", "exp.yaml", *words, cwd=folder, env=env)
    assert ended.returncode == status, ended.stderr
    assert not (folder / "hook-ran").exists()
    return ended


def change(fork: Path, name: str, before: str, after: str) -> None:
    file = fork / CHART / name
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def cookiecutter(folder: Path, **answers: str) -> subprocess.CompletedProcess[str]:
    config = folder / "config.yaml"
    config.write_text(f"cookiecutters_dir: {folder / 'c'}\nreplay_dir: {folder / 'r'}\n")
    argv = [sys.executable, "-m", "cookiecutter", "--no-input", "--config-file", str(config), "-o", str(folder / "out")]
    argv += [str(data_path("chart-template")), *(f"{key}={value}" for key, value in answers.items())]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_a_chart_of_plain_cookiecutter_bears_its_answers_and_renders(tmp_path: Path) -> None:
    made = cookiecutter(tmp_path, name="mine", version="1.2.3")
    assert made.returncode == 0, made.stderr
    chart = tmp_path / "out/mine"
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert (about["name"], about["version"], about["description"]) == ("mine", "1.2.3", "Experiment mine")
    readme = (chart / "README.md").read_text()
    assert readme.startswith("# mine\n")
    assert "helm install mine ." in readme
    assert "hello" not in readme
    for version in HELM_VERSIONS:
        run_helm(version, "lint", "--strict", chart)
        objects = helm_objects(version, chart)
        assert {item["metadata"]["labels"]["symph.dev/experiment"] for item in objects.values()} == {"mine"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("answer", "said"), [({"name": "No Good"}, "cannot name a chart"), ({"version": "v1"}, "no version")]
)
def test_answers_that_no_chart_can_bear_are_refused(answer: dict[str, str], said: str, tmp_path: Path) -> None:
    made = cookiecutter(tmp_path, **answer)
    assert made.returncode != 0
    assert said in made.stdout + made.stderr
    assert not list((tmp_path / "out").glob("*"))


def test_a_fork_with_the_same_objects_needs_no_helm(fork: Path, tmp_path: Path) -> None:
    change(
        fork, "README.md", "[[ cookiecutter._readme ]]", "[[ cookiecutter._readme ]]\n\nOf [[ cookiecutter.house ]]."
    )
    answers = json.loads((fork / "cookiecutter.json").read_text())
    (fork / "cookiecutter.json").write_text(json.dumps({**answers, "house": "us"}))
    ended = package(tmp_path, "--template", "ours", helm_bin="/nowhere")
    assert (tmp_path / "dist/exp/README.md").read_text().endswith("Of us.\n")
    assert "objects" not in ended.stderr


def test_the_objects_of_a_fork_are_rendered_and_linted_by_helm(fork: Path, tmp_path: Path) -> None:
    change(fork, "templates/_helpers.tpl", "[[ cookiecutter._helpers ]]", "{{/* ours */}}\n[[ cookiecutter._helpers ]]")
    program = helm(HELM_VERSIONS[0])
    package(tmp_path, "--template", "ours", helm_bin="/nowhere", status=5)
    assert not (tmp_path / "dist").exists()
    ended = package(tmp_path, "--template", "ours", helm_bin=str(program))
    assert "all 10 objects are those of symph's own template" in ended.stderr
    (fork / CHART / "templates/more.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n"
    )
    ended = package(tmp_path, "--template", "ours", "--dest", "again", helm_bin=str(program))
    assert "1 of " in ended.stderr
    assert "(ConfigMap/more)" in ended.stderr
    assert (tmp_path / "again/exp/templates/more.yaml").is_file()


def test_a_fork_that_helm_cannot_render_leaves_nothing(fork: Path, tmp_path: Path) -> None:
    (fork / CHART / "templates/broken.yaml").write_text("{{ .Values.a.b.c.d }}\n")
    ended = package(tmp_path, "--template", "ours", helm_bin=str(helm(HELM_VERSIONS[0])), status=1)
    assert "helm lint refuses" in ended.stderr
    assert not (tmp_path / "dist").exists()


def test_a_fork_in_a_repository_is_read_at_its_revision(fork: Path, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=u", "-c", "user.email=u@example.org"]
        subprocess.run(["git", *who, *words], cwd=fork, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    change(fork, "README.md", "[[ cookiecutter._readme ]]", "[[ cookiecutter._readme ]]\nfirst")
    git("add", ".")
    git("commit", "-qm", "one")
    git("tag", "v1")
    change(fork, "README.md", "first", "second")
    git("commit", "-qam", "two")
    package(tmp_path, "--template", f"file://{fork}@v1")
    assert (tmp_path / "dist/exp/README.md").read_text().endswith("first\n")
    ended = package(tmp_path, "--template", f"file://{fork}@v9", status=6)
    assert 'no revision "v9"' in ended.stderr


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("https://example.org/x.git", "a Git repository with its tag or commit"),
        ("git@example.org:x.git", "a Git repository with its tag or commit"),
        ("--upload-pack=x/y@v1", "template"),
        ("nowhere", "no template"),
        (".", "no cookiecutter.json"),
    ],
)
def test_a_folder_that_is_not_a_template_is_refused(named: str, said: str, fork: Path, tmp_path: Path) -> None:
    ended = package(tmp_path, f"--template={named}", status=3)
    assert said in ended.stderr
    assert fork.is_dir()


def test_a_link_out_of_a_fork_is_refused(fork: Path, tmp_path: Path) -> None:
    (fork / CHART / "passwd").symlink_to("/etc/passwd")
    assert "holds a link" in package(tmp_path, "--template", "ours", status=3).stderr


def test_a_fork_that_leaves_the_experiment_out_is_refused(fork: Path, tmp_path: Path) -> None:
    (fork / CHART / "values.yaml").write_text("groups: {}\n")
    assert "the template has no values.yaml with" in package(tmp_path, "--template", "ours", status=3).stderr


def test_a_project_names_its_template_once(fork: Path, tmp_path: Path) -> None:
    change(fork, "README.md", "[[ cookiecutter._readme ]]", "[[ cookiecutter._readme ]]\n\nOf us.")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".symph.yaml").write_text("template: ../ours\nenvironments: [dev]\n")
    (tmp_path / "exp.yaml").rename(project / "exp.yaml")
    package(project)
    assert (project / "dist/exp/README.md").read_text().endswith("Of us.\n")
    package(project, "--template", "")
    assert "Of us." not in (project / "dist/exp/README.md").read_text()
    assert "always uses the built-in chart template" in package(project, "--push", "--template", "", status=2).stderr
    publish = [sys.executable, "-m", "symphony_charts", "publish", "exp.yaml", "--repo", f"file://{tmp_path}"]
    ended = subprocess.run(publish, cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "names a template, and what is published is made by that of this installation" in ended.stderr
