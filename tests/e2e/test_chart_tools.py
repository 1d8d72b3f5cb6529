"""The tools with which users check charts, run on the examples' charts: ct, kubeconform, the API server."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from symphony_charts.formats.yaml_write import dump_all
from tests.e2e.charts import CHECKOUT, EXAMPLES, ExampleCharts
from tests.e2e.programs import Output, Programs
from tests.e2e.release import Releases
from tests.e2e.tools.build import find_tool
from tests.e2e.tools.catalog import KUBERNETES
from tests.tools import newest_helm

_SCHEMAS = CHECKOUT / "symphony_charts" / "chart" / "lint" / "schemas"


@pytest.fixture
def repository(programs: Programs, charts: ExampleCharts, tmp_path: Path) -> Path:
    """Return a repository with the settings of `symph gitops init` and all example charts; its origin has no charts."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("ct.yaml", "chart_schema.yaml", "lintconf.yaml"):
        shutil.copy(CHECKOUT / "gitops" / name, work / name)
    _git(programs, work, "init", "-q", "-b", "main")
    _git(programs, work, "add", ".")
    _git(programs, work, "commit", "-q", "-m", "settings")
    _git(programs, tmp_path, "clone", "-q", "--bare", "work", "origin.git")
    _git(programs, work, "remote", "add", "origin", str(tmp_path / "origin.git"))
    _git(programs, work, "fetch", "-q", "origin")
    for example in EXAMPLES:
        shutil.copytree(charts[example], work / "charts" / example)
    _git(programs, work, "add", ".")
    _git(programs, work, "commit", "-q", "-m", "charts")
    return work


def _git(programs: Programs, folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=e2e", "-c", "user.email=e2e@localhost", "-c", "commit.gpgsign=false"]
    programs.run(["git", *identity, *arguments], cwd=folder)


def _ct(programs: Programs, folder: Path, *arguments: str) -> Output:
    """Return the output of ct, which looks up helm and kubectl on PATH."""
    tools = folder.parent / "bin"
    tools.mkdir(exist_ok=True)
    for name, path in (("helm", newest_helm()), ("kubectl", programs.kubectl_path)):
        if path and not (tools / name).exists():
            (tools / name).symlink_to(path)
    path_variable = f"{tools}:{programs.environment()['PATH']}"
    argv = [str(find_tool("ct")), *arguments, "--config", "ct.yaml"]
    return programs.try_run(argv, cwd=folder, timeout_s=300, more_env={"PATH": path_variable})


def test_ct_lint_passes_all_examples_as_changed_charts(programs: Programs, repository: Path) -> None:
    done = _ct(programs, repository, "lint")
    assert done.code == 0, done.out + done.err
    assert all(f"charts/{example}" in done.out for example in EXAMPLES)


def test_ct_lint_refuses_an_unknown_field_and_a_changed_chart_with_an_old_version(
    programs: Programs, repository: Path
) -> None:
    ring = repository / "charts" / "ring"
    good = (ring / "Chart.yaml").read_text()
    (ring / "Chart.yaml").write_text(good + "maintaners: []\n")
    done = _ct(programs, repository, "lint", "--charts", "charts/ring")
    assert (done.code != 0, "maintaners" in done.out + done.err) == (True, True), done.out + done.err
    (ring / "Chart.yaml").write_text(good)
    _git(programs, repository, "push", "-q", "origin", "main")
    (ring / "values.yaml").write_text((ring / "values.yaml").read_text() + "# changed\n")
    _git(programs, repository, "commit", "-q", "-a", "-m", "change")
    done = _ct(programs, repository, "lint")
    assert (done.code != 0, "version not ok" in (done.out + done.err).lower()) == (True, True), done.out + done.err


def test_ct_install_passes(programs: Programs, repository: Path, namespace: str) -> None:
    example = "rl"
    # Only the values that keep finite processes running: ct dials services, which a finished experiment no longer has.
    (repository / "charts" / example / "ci" / "default-values.yaml").unlink()
    words = ("--charts", f"charts/{example}", "--namespace", namespace, "--helm-extra-args", "--timeout 120s")
    done = _ct(programs, repository, "install", *words)
    assert done.code == 0, done.out + done.err
    assert "All charts installed successfully" in done.out


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project's own Kubernetes schemas in the layout that kubeconform reads."""
    minor = KUBERNETES.rpartition(".")[0]
    folder = tmp_path_factory.mktemp("schemas")
    bundle = json.loads(gzip.decompress((_SCHEMAS / f"v{minor}.json.gz").read_bytes()))
    for kind, definition in bundle["kinds"].items():
        schema = {"$ref": f"#/definitions/{definition}", "definitions": bundle["definitions"]}
        (folder / f"{kind.rpartition('/')[2].lower()}.json").write_text(json.dumps(schema))
    return folder


def test_kubeconform_passes_every_rendered_object_and_refuses_a_misspelt_field(
    release: Releases, charts: ExampleCharts, programs: Programs, schemas: Path
) -> None:
    for example in EXAMPLES:
        objects = release("form").render(charts[example])
        # PyYAML would write the label 14e89654 bare, which others read as a number.
        done = _kubeconform(programs, schemas, dump_all(objects))
        assert (done.code, json.loads(done.out)["summary"]["skipped"]) == (0, 0), done.out + done.err
    job = next(o for o in objects if o["kind"] == "Job")
    job["spec"]["backofLimit"] = 1
    done = _kubeconform(programs, schemas, dump_all([job]))
    assert (done.code, "backofLimit" in done.out) == (1, True)


def _kubeconform(programs: Programs, schemas: Path, text: str) -> Output:
    location = f"{schemas}/{{{{ .ResourceKind }}}}.json"
    argv = [str(find_tool("kubeconform")), "-strict", "-summary", "-output", "json", "-schema-location", location, "-"]
    return programs.try_run(argv, stdin=text)
