"""The same experiment gives the same bytes everywhere; helm, chart-testing and cookiecutter accept them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yamale
from yamllint import linter
from yamllint.config import YamlLintConfig

from scripts.chart_template import cookiecutter_json
from symphony_charts.chart import archive
from symphony_charts.chart.files import Chart, context_of
from symphony_charts.chart.release import open_chart
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.errors import SpecError
from symphony_charts.system import package_data
from tests.chart.harness import (
    EXAMPLE_NAMES,
    chart_of,
    example_chart,
    experiment_of,
    helm_objects,
    native_objects,
    run_helm,
    write_chart,
)
from tests.chart.release_secret import release_kb
from tests.chart.strategies import HOSTILE
from tests.tools import HELM_VERSIONS

ROOT = Path(__file__).resolve().parents[2]
PYENV = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
PYTHONS = sorted(PYENV.glob("3.1[0-3].*/bin/python"))


@pytest.fixture(params=[*EXAMPLE_NAMES, "hostile"])
def chart(request: pytest.FixtureRequest) -> Chart:
    """Return the chart of every example, and one of strings that break careless charts."""
    if request.param != "hostile":
        return example_chart(request.param)
    env = {f"E{index}": text for index, text in enumerate(HOSTILE)}
    return chart_of(experiment_of(processes={"p": {"args": list(HOSTILE), "env": env}}))


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_lints_and_packages_every_chart(version: str, chart: Chart, tmp_path: Path) -> None:
    where = write_chart(chart, tmp_path)
    assert "0 chart(s) failed" in run_helm(version, "lint", "--strict", where).stdout
    for values in (where / "ci").iterdir():
        run_helm(version, "lint", "--strict", where, "-f", values)
    run_helm(version, "package", where, "-d", tmp_path)
    assert (tmp_path / f"{chart.name}-0.1.0.tgz").is_file()


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_installs_from_our_archive_what_stands_in_the_folder(version: str, chart: Chart, tmp_path: Path) -> None:
    where = write_chart(chart, tmp_path)
    packed = tmp_path / "packed.tgz"
    packed.write_bytes(chart.archive)
    from_archive = run_helm(version, "template", "r1", packed).stdout
    assert from_archive == run_helm(version, "template", "r1", where).stdout


def test_our_archive_holds_what_helm_would_pack(chart: Chart, tmp_path: Path) -> None:
    where = write_chart(chart, tmp_path)
    run_helm("4.3", "package", where, "-d", tmp_path)
    theirs = (tmp_path / f"{chart.name}-0.1.0.tgz").read_bytes()
    assert _members(chart.archive) == _members(theirs)


def _members(packed: bytes) -> dict[str, bytes]:
    """Return contents by path, without Chart.yaml, which helm rewrites."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        found = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in found.items() if file and not name.endswith("/Chart.yaml")}


def test_the_tar_is_what_the_standard_library_would_read_and_holds_no_time_or_owner() -> None:
    packed = example_chart("rl").archive
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        members = tar.getmembers()
    assert {(m.mtime, m.uid, m.gid, m.mode, m.uname, m.isfile()) for m in members} == {(0, 0, 0, 0o644, "", True)}
    assert members[0].name == "rl/Chart.yaml"
    assert packed[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def test_long_paths_are_split_as_ustar_does() -> None:
    path = "templates/" + "d" * 80 + "/" + "f" * 90 + ".yaml"
    with tarfile.open(fileobj=io.BytesIO(archive.tar_of("x", {path: b"1", "Chart.yaml": b""}))) as tar:
        assert f"x/{path}" in tar.getnames()


def test_the_digest_is_that_of_the_checksums_without_the_version() -> None:
    chart = example_chart("rl")
    later = chart.with_version("3.2.1")
    assert later.digest == chart.digest
    assert later.archive != chart.archive
    unversioned = {**chart.packed, "Chart.yaml": chart.packed["Chart.yaml"].replace(b'"0.1.0"', b"0.0.0")}
    lines = "".join(f"{hashlib.sha256(unversioned[path]).hexdigest()}  {path}\n" for path in sorted(unversioned))
    assert chart.digest == f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def test_one_changed_value_changes_the_digest() -> None:
    first = chart_of(experiment_of(processes={"p": {"args": ["a"]}}))
    second = chart_of(experiment_of(processes={"p": {"args": ["b"]}}))
    assert first.digest != second.digest


_SCRIPT = """
import sys, os
os.umask(int(sys.argv[2], 8))
from symphony_charts.system import package_data
from symphony_charts.spec import files as specfile
from symphony_charts.chart.files import ChartTemplate
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.pods import allocate
exp = specfile.read(sys.argv[1]).experiment
chart = prepare_experiment(exp).chart(ChartTemplate(package_data.folder("chart-template")))
import hashlib
print(hashlib.sha256(chart.archive).hexdigest())
"""


def test_place_umask_time_zone_and_hash_seed_change_no_byte(tmp_path: Path) -> None:
    wanted = hashlib.sha256(example_chart("rl").archive).hexdigest()
    for umask, zone, seed in (("077", "Asia/Tokyo", "1"), ("000", "UTC", "42")):
        env = {**os.environ, "TZ": zone, "PYTHONHASHSEED": seed, "LC_ALL": "C"}
        argv = [sys.executable, "-c", _SCRIPT, str(ROOT / "examples/rl/experiment.yaml"), umask]
        made = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
        assert made.stdout.strip() == wanted


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
def test_every_python_gives_the_same_tar(python: Path) -> None:
    """The archive's module runs without the packages that a bare interpreter lacks."""
    script = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]); import symphony_charts.chart.archive as a;"
        "files = {'Chart.yaml': b'name: x', 'values.yaml': b'v' * 3000, 'templates/a.yaml': b'a' * 700};"
        "print(hashlib.sha256(a.pack('x', files)).hexdigest())"
    )
    made = subprocess.run([python, "-c", script, ROOT], capture_output=True, text=True, timeout=60, check=True)
    files = {"Chart.yaml": b"name: x", "values.yaml": b"v" * 3000, "templates/a.yaml": b"a" * 700}
    assert made.stdout.strip() == hashlib.sha256(archive.pack("x", files)).hexdigest()


def cookiecutter(folder: Path, monkeypatch: pytest.MonkeyPatch, context: dict[str, str]) -> dict[str, bytes]:
    """Return the files that cookiecutter makes of the template with these answers."""
    from cookiecutter.main import cookiecutter as make

    monkeypatch.setenv("HOME", str(folder / "home"))
    config = folder / "config.yaml"
    config.write_text(f"cookiecutters_dir: {folder / 'c'}\nreplay_dir: {folder / 'r'}\n")
    made = make(
        str(ROOT / "chart-template"),
        no_input=True,
        extra_context=context,
        output_dir=str(folder / "out"),
        config_file=str(config),
    )
    return {
        path.relative_to(made).as_posix(): path.read_bytes() for path in Path(str(made)).rglob("*") if path.is_file()
    }


def test_cookiecutter_fills_the_template_as_the_packager_does(
    chart: Chart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = open_chart(chart.files, chart.name)
    found = cookiecutter(tmp_path, monkeypatch, context_of(built, built.texts(), ValuesSchema(built), chart.version))
    assert "templates/_helpers.tpl" in found
    assert found == {path: chart.files[path] for path in found}


@pytest.mark.parametrize("name", ["hello", "my-experiment"])
def test_a_chart_that_cookiecutter_makes_alone_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookiecutter(tmp_path, monkeypatch, {"name": name, "version": "0.2.0"})
    where = tmp_path / "out" / name
    assert "0 chart(s) failed" in run_helm("4.3", "lint", "--strict", where).stdout
    objects = helm_objects("4.3", where)
    assert {kind for kind, _ in objects} >= {"Job", "Service"}
    assert all(title.startswith(f"r1-{name}-") for _, title in objects)


def test_the_answers_of_the_template_are_current() -> None:
    assert package_data.folder("chart-template")["cookiecutter.json"] == cookiecutter_json(), (
        "run python -m scripts.chart_template"
    )


def test_the_release_of_a_tiny_experiment_takes_at_most_22_kb() -> None:
    chart = chart_of(experiment_of(processes={"main": {"command": ["run"], "binds": "web", "connects": "web"}}))
    assert release_kb(chart, json.dumps([*native_objects(chart).values()])) <= 22


def test_a_comment_for_helm_docs_stands_right_above_its_key(chart: Chart) -> None:
    lines = chart.files["values.yaml"].decode().splitlines()
    below = [lines[number + 1] for number, line in enumerate(lines) if line.lstrip().startswith("# -- ")]
    assert len(below) > 30
    assert not [line for line in below if not re.match(r" *[\w-]+:", line)]


def test_chart_testings_yaml_rules_hold(chart: Chart) -> None:
    config = YamlLintConfig(file=str(ROOT / "gitops" / "lintconf.yaml"))
    problems = [
        f"{path}: {problem}"
        for path, content in chart.files.items()
        if path in ("Chart.yaml", "values.yaml") or path.startswith("ci/")
        for problem in linter.run(content.decode(), config)
    ]
    assert not problems


def test_chart_testings_schema_of_chart_yaml_holds(chart: Chart, tmp_path: Path) -> None:
    file = tmp_path / "Chart.yaml"
    file.write_bytes(chart.files["Chart.yaml"])
    schema = yamale.make_schema(str(ROOT / "gitops" / "chart_schema.yaml"))
    yamale.validate(schema, yamale.make_data(str(file)))


def test_a_file_larger_than_helm_reads_is_refused() -> None:
    with pytest.raises(SpecError, match="5 MiB"):
        chart_of(experiment_of(processes={"p": {}}, configs={"big": {"text": "x" * (6 * 1024 * 1024)}}))


def test_no_secret_byte_is_in_a_chart(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2-very-secret")
    experiment = experiment_of(processes={"p": {}}, secrets=[{"file": str(tmp_path / "token")}])
    assert not [path for path, content in chart_of(experiment).files.items() if b"hunter2" in content]
