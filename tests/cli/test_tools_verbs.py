"""`symph init`, `doctor`, `completion`, and the command as a whole."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.cli.verbs import VERBS, Verb
from symphony_charts.spec import files
from tests.symph import symph

# Modules whose import costs more than a whole `symph --help` may take.
HEAVY = ("cookiecutter", "jsonschema_rs", "kubernetes", "libtmux", "msgspec", "pyhelm3", "rich", "shtab", "yaml")
# Modules of this package that every command line imports, apart from the module of its verb.
LIGHT = {"errors", "formats.printable", "spec.variable_names", "system.entry_points", "system.launching", "version"} | {
    f"cli.{name}"
    for name in ("arguments", "defaults", "failures", "main", "options", "output", "parser", "plugins", "verbs")
}
ROOT = Path(__file__).parents[2]


def loaded_by(*words: str) -> tuple[set[str], str]:
    program = (
        "import sys\nfrom symphony_charts.cli.main import main\n"
        f"try: main({list(words)!r})\nexcept SystemExit as end: assert not end.code\n"
        "loaded = (name for name, module in sys.modules.items() if type(module).__name__ != '_LazyModule')\n"
        "sys.stderr.write('LOADED ' + ' '.join(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.rpartition("LOADED")[2].split()), done.stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["ls"], ["p"], ["up", "--help"], ["package", "--help"]])
def test_light_commands_import_nothing_heavy(words: list[str]) -> None:
    assert loaded_by(*words)[0] & set(HEAVY) == set()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help_with_an_example_which_loads_only_its_module(verb: Verb) -> None:
    loaded, page = loaded_by(verb.name, "--help")
    assert f"symph {verb.name}" in page.partition("examples:")[2]
    ours = {name for name in loaded if name.startswith("symphony_charts.")}
    # Modules called `verb` hold the options of formats that integrations add.
    modules = {name for name in ours if (ROOT / f"{name.replace('.', '/')}.py").is_file() and not name.endswith("verb")}
    assert modules - {f"symphony_charts.{name}" for name in LIGHT} == {f"symphony_charts.cli.{verb.module}"}


def test_no_verb_prints_the_help_and_fails() -> None:
    done = symph()
    assert done.returncode == 2
    assert "package" in done.stderr


@pytest.mark.parametrize("template", ["yaml", "python"])
def test_a_new_experiment_can_be_read(template: str, tmp_path: Path) -> None:
    assert main(["init", "My.Exp", "--template", template, "--dest", str(tmp_path)]) == 0
    [spec] = (tmp_path / "my-exp").glob("experiment.*")
    assert files.read(spec).experiment.name == "my-exp"


def test_bytecode_in_a_template_is_no_part_of_the_experiment(tmp_path: Path) -> None:
    template = tmp_path / "t"
    compiled = template / "{{ cookiecutter.name }}" / "__pycache__"
    compiled.mkdir(parents=True)
    (template / "cookiecutter.json").write_text('{"name": "x"}')
    (compiled.parent / "a.py").write_text("")
    for path in (compiled / "a.cpython-313.pyc", compiled.parent / "b.pyc"):
        path.write_bytes(b"")
    assert main(["init", "exp", "--template", str(template), "--dest", str(tmp_path)]) == 0
    assert [path.name for path in (tmp_path / "exp").rglob("*")] == ["a.py"]


@pytest.mark.parametrize("template", ["yaml", "python"])
def test_a_new_experiment_comes_with_pools_on_which_it_fits(template: str, tmp_path: Path) -> None:
    main(["init", "exp", "--template", template, "--dest", str(tmp_path)])
    [spec] = (tmp_path / "exp").glob("experiment.*")
    planned = symph("plan", str(spec), "--pools", str(tmp_path / "exp" / "pools.yaml"))
    assert (planned.returncode, "PROVEN" in planned.stdout) == (0, True)


def test_init_leaves_nothing_in_the_home(tmp_path: Path, private_places: Path) -> None:
    symph("init", "exp", "--dest", str(tmp_path))
    assert "/dist/" in (tmp_path / "exp" / ".gitignore").read_text()
    assert list((private_places / "home").iterdir()) == []


def test_init_never_touches_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "exp").mkdir()
    assert main(["init", "exp", "--dest", str(tmp_path)]) == 7
    assert list((tmp_path / "exp").iterdir()) == []


def test_a_dry_run_of_init_makes_nothing(tmp_path: Path) -> None:
    assert main(["init", "exp", "--dest", str(tmp_path), "--dry-run"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_init_runs_no_hook_of_a_users_template(tmp_path: Path) -> None:
    template = tmp_path / "t"
    (template / "{{ cookiecutter.name }}").mkdir(parents=True)
    (template / "cookiecutter.json").write_text('{"name": "x"}')
    (template / "{{ cookiecutter.name }}" / "a.txt").write_text("{{ cookiecutter.name }}")
    hook = template / "hooks" / "post_gen_project.sh"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    assert main(["init", "exp", "--template", str(template), "--dest", str(tmp_path)]) == 0
    assert (tmp_path / "exp" / "a.txt").read_text() == "exp"
    assert not (tmp_path / "hooked").exists()


def test_an_unknown_template_is_not_found(tmp_path: Path) -> None:
    assert main(["init", "exp", "--template", "nothing", "--dest", str(tmp_path)]) == 8


def test_the_doctor_fails_for_a_tool_that_is_missing(tmp_path: Path) -> None:
    done = symph("doctor", "--for", "tmux", "-o", "json", env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 1
    states = {item["name"]: item["status"] for item in json.loads(done.stdout)["items"]}
    assert states["tmux"] == "missing"


def test_the_doctor_is_content_without_tools_nobody_asked_for(tmp_path: Path) -> None:
    assert symph("doctor", env={**os.environ, "PATH": str(tmp_path)}).returncode == 0


@pytest.mark.parametrize("words", [("--cluster", "--for", "tmux"), ("-n", "team")])
def test_the_doctor_looks_at_a_machine_or_at_a_cluster(words: tuple[str, ...]) -> None:
    assert symph("doctor", *words).returncode == 2


def test_bash_accepts_the_completion_script() -> None:
    script = symph("completion", "bash").stdout
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "package" in script
