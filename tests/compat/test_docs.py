"""The examples in docs/from-symphony.md and docs/own-project.md run."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.compat.conftest import Script

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def python(script: Script) -> Script:
    """Run a script without Symphony's names, with its own home and state folder."""
    return partial(script, module=())


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    (sample,) = blocks("from-symphony.md", "python")
    path = tmp_path / "launcher.py"
    path.write_text(sample)
    return path


@pytest.mark.parametrize("backend", ["tmux", "kube", "subproc", "kubernetes"])
def test_the_launcher_of_from_symphony_runs_on_every_backend(backend: str, script: Script, launcher: Path) -> None:
    done = script(launcher, backend, "--dry-run")
    assert (done.returncode, "sarah-rl" in done.stdout) == (0, True), done.stderr


def test_the_launcher_of_from_symphony_really_runs(script: Script, launcher: Path) -> None:
    done = script(launcher, "subproc")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["agent | agent of sarah-rl", "learner | learner on 7000"]


def test_the_launcher_works_with_the_imports_changed_as_the_page_says(python: Script, launcher: Path) -> None:
    launcher.write_text(re.sub(r"from symphony\b", "from symphony_charts", launcher.read_text()))
    done = python(launcher, "kubernetes", "--dry-run")
    assert (done.returncode, "kind: Job" in done.stdout) == (0, True), done.stderr


def test_the_settings_of_the_page_are_the_builders() -> None:
    from symphony_charts.formats.yaml_read import load
    from symphony_charts.integrations.symphony.addons import DockerBuilder

    data: Any = load(blocks("from-symphony.md", "yaml")[0])
    builder = DockerBuilder.from_dict(data["docker_build_settings"])
    assert builder.temp_directory == Path("~/temp/symphony_docker_build").expanduser()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "myproject.py"
    path.write_text(blocks("own-project.md", "python")[0])
    return path


def test_the_project_of_the_page_starts_and_watches_experiments(python: Script, project: Path) -> None:
    dry = python(project, "c", "rl", "--dry-run")
    assert (dry.returncode, "agent-1" in dry.stdout) == (0, True), dry.stderr
    assert python(project, "create", "rl", "--agents", "3").returncode == 0
    shown = python(project, "process", "sarah-rl", "-o", "json")
    assert (shown.returncode, '"agent-2"' in shown.stdout) == (0, True), shown.stderr
    assert python(project, "delete", "sarah-rl", "--yes").returncode == 0
    page = python(project, "--help").stdout
    assert ("create, c" in page, "Start an experiment." in page) == (True, True)


@pytest.mark.parametrize("number", [1, 2])
def test_the_other_samples_run_as_they_are(number: int, python: Script, tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(blocks("own-project.md", "python")[number])
    done = python(tmp_path / "sample.py")
    assert done.returncode == 0, done.stderr
    assert ("sarah ~/results" in done.stdout) is (number == 1)


def test_a_real_distribution_called_symphony_is_not_hidden_outside_a_run(
    python: Script, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "symphony").mkdir()
    (tmp_path / "symphony" / "__init__.py").write_text("Cluster = 'theirs'\n")
    (tmp_path / "s.py").write_text("import symphony_charts.compat, symphony; print(symphony.Cluster)\n")
    assert python(tmp_path / "s.py").stdout == "theirs\n"
    assert "Cluster'" in script(tmp_path / "s.py").stdout


def test_names_are_gone_after_the_run_and_the_others_are_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symphony_charts.clusters.base import Cluster
    from symphony_charts.clusters.kubernetes import KubeCluster
    from symphony_charts.clusters.tmux import TmuxCluster
    from symphony_charts.compat import names

    # Our classes register when first imported, independently of compat.
    assert {KubeCluster, TmuxCluster} <= set(Cluster._registry.values())
    before = dict(Cluster._registry)
    (tmp_path / "symphony").mkdir()
    (tmp_path / "symphony" / "__init__.py").write_text("WHOSE = 'theirs'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import symphony

    with names():
        import symphony as ours

        assert hasattr(ours, "Cluster")
        with pytest.raises(ModuleNotFoundError):
            import symphony.nonsense
    assert sys.modules["symphony"] is symphony
    assert symphony.WHOSE == "theirs"
    assert Cluster._registry == before
    del sys.modules["symphony"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "which script?"),
        (["none.py"], 3, "the script none.py does not exist"),
        (["--help"], 0, "examples:"),
        (["exits.py"], 5, ""),
        (["raises.py"], 3, "ZeroDivisionError"),
        (["-m", "exits", "word"], 5, "word"),
        (["-m", "none.there"], 3, "install the package of none.there"),
    ],
)
def test_the_status_of_a_run_is_the_scripts(
    words: list[str], status: int, said: str, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "exits.py").write_text("import sys; print(sys.argv[1:], file=sys.stderr); raise SystemExit(5)\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    done = script(*words)
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done.stderr
