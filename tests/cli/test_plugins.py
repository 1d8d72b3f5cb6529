"""Extensions: programs on PATH and packages with entry points, as in the example and the docs page."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chart.harness import run_helm
from tests.tools import HELM_VERSIONS

EXAMPLE = Path(__file__).parents[2] / "examples/plugin"
PAGE = Path(__file__).parents[2] / "docs/plugins.md"
SPEC = "name: rl\nprocesses: {a: {cmds: [date]}, b: {cmds: [date]}}\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder of packages that contains the example, as an installer leaves it."""
    tomllib = importlib.import_module("tomllib") if sys.version_info >= (3, 11) else pytest.skip("tomllib: Python 3.11")
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    packages = tmp_path / "packages"
    info = packages / "symph_example-0.1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "symph_example").symlink_to(EXAMPLE / "symph_example")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in items.items())
        for group, items in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "rl.yaml").write_text(SPEC)
    return packages


def symph(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "symphony_charts", *words]
    env = {**os.environ, "PYTHONPATH": str(folder / "packages"), **env}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=90, check=False)


def program(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / "bin").mkdir(exist_ok=True)
    file = tmp_path / "bin" / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return f"{tmp_path / 'bin'}:{os.environ['PATH']}"


def test_a_program_gets_the_words_as_they_are_and_its_status_is_ours(tmp_path: Path) -> None:
    path = program(tmp_path, "symph-foo", 'printf "<%s>" "$@"; exit 7')
    done = symph(tmp_path, "foo", "a b", "-v", "--", "--help", PATH=path)
    assert (done.stdout, done.returncode) == ("<a b><-v><--><--help>", 7)


def test_help_lists_programs_and_none_takes_the_place_of_a_verb(tmp_path: Path) -> None:
    path = program(tmp_path, "symph-foo", "echo page")
    program(tmp_path, "symph-version", "echo other")
    page = symph(tmp_path, "--help", PATH=path).stdout.partition("Plugins:")[2]
    assert ("foo" in page, str(tmp_path / "bin/symph-foo") in page, "version " in page.partition("Options:")[0]) == (
        True,
        True,
        False,
    )
    assert symph(tmp_path, "help", "foo", PATH=path).stdout == "page\n"
    assert "other" not in symph(tmp_path, "version", PATH=path).stdout


def test_a_file_that_cannot_be_run_and_a_path_are_no_verbs(tmp_path: Path) -> None:
    path = program(tmp_path, "symph-foo", "")
    (tmp_path / "bin/symph-foo").chmod(0o644)
    assert symph(tmp_path, "foo", PATH=path).returncode == 2
    assert symph(tmp_path, "../foo", PATH=path).returncode == 2


def test_a_package_adds_a_verb_with_its_page(installed: Path) -> None:
    folder = installed.parent
    done = symph(folder, "hello", "rl")
    assert (done.stdout, done.returncode) == ("hello rl\n", 0)
    assert "Say hello" in symph(folder, "hello", "--help").stdout
    assert "symph_example.hello" in symph(folder, "--help").stdout.partition("Plugins:")[2]
    assert "unrecognized arguments: --nme" in symph(folder, "hello", "rl", "--nme").stderr


def test_a_package_adds_a_format_to_import(installed: Path) -> None:
    folder = installed.parent
    (folder / "Procfile").write_text("web: python3 -m http.server\nworker: sleep 1\n")
    done = symph(folder, "import", "procfile", "Procfile", "--name", "site", "-o", "json")
    assert done.returncode == 0, done.stderr
    experiment = json.loads(done.stdout)["experiment"]
    assert (experiment["name"], list(experiment["processes"])) == ("site", ["web", "worker"])
    assert "procfile" in symph(folder, "import", "--help").stdout


def test_a_package_adds_a_backend(installed: Path) -> None:
    folder = installed.parent
    done = symph(folder, "run", "rl.yaml", "--on", "paper")
    assert (done.returncode, (folder / "rl.txt").read_text()) == (0, "a\nb\n"), done.stderr
    refused = symph(folder, "run", "rl.yaml", "--on", "papr")
    assert refused.returncode == 2


CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly"},
    "spec": {
        "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}}}}
    },
}


def test_a_package_adds_a_kind_whose_pods_are_counted(installed: Path) -> None:
    code = "import sys, json\nfrom symphony_charts.placement.fit.demand import demands_of\n"
    code += "print([each.shape.amount('cpu') for each in demands_of([json.loads(sys.argv[1])])])"
    argv = [sys.executable, "-c", code, json.dumps(CRON_JOB)]
    without = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    env = {**os.environ, "PYTHONPATH": str(installed)}
    counted = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert (without.stdout, counted.stdout) == ("[]\n", "[2000]\n")


def test_a_package_adds_a_kind_that_writes_charts(installed: Path) -> None:
    folder, chart = installed.parent, installed.parent / "out/rl"
    (folder / "rl.yaml").write_text(f"{SPEC}image: busybox:1.37.0\nworkload: {{kind: cronjob}}\n")
    rendered = symph(folder, "render", "rl.yaml", "--set", "workload.schedule=0 3 * * *", "-o", "json")
    assert rendered.returncode == 0, rendered.stderr
    schedules = {item["spec"]["schedule"] for item in json.loads(rendered.stdout)["items"] if item["kind"] == "CronJob"}
    assert schedules == {"0 3 * * *"}
    assert symph(folder, "validate", "rl.yaml").returncode == 0
    assert symph(folder, "package", "rl.yaml", "-d", "out").returncode == 0
    assert "| CronJob |" in (chart / "README.md").read_text()
    for version in HELM_VERSIONS:
        printed = run_helm(version, "template", "rl", chart).stdout
        assert printed.count('schedule: "@daily"') == 2


def test_a_kind_of_a_package_has_settings_of_its_own(installed: Path) -> None:
    folder = installed.parent
    text = f"{SPEC}image: busybox:1.37.0\nworkload: {{kind: cronjob, cronjob: {{%s}}}}\n"
    (folder / "rl.yaml").write_text(text % 'schedule: "0 3 * * *"')
    rendered = symph(folder, "render", "rl.yaml", "-o", "json")
    schedules = {item["spec"].get("schedule") for item in json.loads(rendered.stdout)["items"] if "spec" in item}
    assert "0 3 * * *" in schedules
    (folder / "rl.yaml").write_text(text % "schedule: often, pause: 1")
    refused = symph(folder, "render", "rl.yaml")
    assert refused.returncode == 3
    assert 'unknown key "pause"\n  at:   rl.yaml:4, workload.cronjob.pause\n' in refused.stderr
    (folder / "rl.yaml").write_text(text % "schedule: often")
    assert (
        '"often" is no schedule\n  at:   rl.yaml:4, workload.cronjob.schedule\n'
        in symph(folder, "render", "rl.yaml").stderr
    )
    schema = json.loads(symph(folder, "schema").stdout)["$defs"]
    assert schema["Workload"]["properties"]["cronjob"]["$ref"] == "#/$defs/CronJobSettings"
    assert schema["CronJobSettings"]["properties"]["schedule"]["description"] == "When a run starts, as a line of cron"


def test_a_kind_of_a_package_that_is_not_installed_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "rl.yaml").write_text(f"{SPEC}image: busybox:1.37.0\nworkload: {{kind: cronjob}}\n")
    refused = symph(tmp_path, "render", "rl.yaml")
    assert (refused.returncode, '"cronjob" is none of: ' in refused.stderr) == (3, True)


def test_a_plugin_that_cannot_be_loaded_is_named_with_its_package(installed: Path) -> None:
    (installed / "symph_example-0.1.0.dist-info/entry_points.txt").write_text("[symph.verbs]\nhello = nowhere.hello\n")
    done = symph(installed.parent, "hello")
    assert done.returncode == 6
    assert "fix or uninstall symph_example" in done.stderr
    assert symph(installed.parent, "--help").returncode == 0


@pytest.mark.parametrize("file", ["pyproject.toml", "symph_example/hello.py"])
def test_the_page_shows_the_example(file: str) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```")[1::2]
    shown = [block.partition("\n")[2].strip() for block in blocks]
    text = (EXAMPLE / file).read_text(encoding="utf-8")
    assert any(block in text for block in shown if block)
    assert f"examples/plugin/{file}" in PAGE.read_text(encoding="utf-8")
