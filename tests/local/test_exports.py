"""The target runner loads each export and starts its processes with values unchanged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.cli.main import main
from symphony_charts.errors import SpecError
from symphony_charts.local.export import Export, to_process_compose, to_tmuxp
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.generated import NASTY
from tests.local.runs import python, until

# Writes its arguments and variables into a file beside the experiment.
LOOK = "import json, os, sys; json.dump([sys.argv[2:], dict(os.environ)], open(sys.argv[1], 'w'))"
WORDS = st.text(
    st.characters(exclude_characters=[chr(code) for code in (0, *range(0x7F, 0xA0))], exclude_categories=["Cs"]),
    max_size=20,
)


def plan_of(folder: Path, **data: Any) -> LocalPlan:
    experiment = from_data({"name": "exp", **data})
    return plan_here(experiment, allocate(experiment), folder, "render", run_dir=folder / "out")


def write(export: Export, folder: Path) -> Path:
    for name, (content, mode) in export.files.items():
        path = folder / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    return folder / "out" / export.main


def looking(folder: Path, *words: str, **more: Any) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", LOOK, str(folder / "seen"), *words], **more}


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=4), st.dictionaries(st.sampled_from(["A", "B", "on"]), WORDS))
def test_hostile_words_survive_the_start_scripts(private_places: Path, words: list[str], env: dict[str, str]) -> None:
    data = {"processes": {"a": looking(private_places, *words, env=env)}}
    plan = plan_of(private_places, **data)
    write(to_tmuxp(plan, str(private_places / "out")), private_places)
    subprocess.run(["/usr/bin/env", "-i", "/bin/sh", str(private_places / "out/p/0/run")], check=False, timeout=30)
    seen_words, seen_env = json.loads((private_places / "seen").read_text())
    assert seen_words == list(plan.processes[0].argv[4:])
    assert {name: seen_env[name] for name in env} == {name: plan.processes[0].env[name] for name in env}


@pytest.mark.parametrize("make", [to_tmuxp, to_process_compose])
def test_a_folder_that_a_runner_would_interpret_is_refused(make: Any, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="interpret"):
        make(plan_of(tmp_path, processes={"a": {"command": ["c"]}}), "/tmp/a $HOME")


def test_no_value_of_a_user_stands_in_the_file_of_a_runner(tmp_path: Path) -> None:
    data = {"processes": {"a": {"command": ["user-command", "$HOME"], "env": {"V": "user-value"}}}}
    for make in (to_tmuxp, to_process_compose):
        assert "user-" not in make(plan_of(tmp_path, **data), "/tmp/out").text


def test_tmuxp_starts_the_windows_in_order(private_places: Path, need_tool: Any) -> None:
    need_tool("tmux")
    data = {
        "prepare": {"make": {"cmds": ["sleep .3; echo made > made"]}},
        "processes": {"a": looking(private_places, *NASTY, env={"V": "$HOME #{pid}"})},
        "groups": {"g": {"processes": {name: python("input()") for name in ("x", "y", "z")}}},
    }
    file = write(to_tmuxp(plan_of(private_places, **data), str(private_places / "out")), private_places)
    socket = private_places / "t.sock"
    own = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    try:
        tmuxp = str(Path(sys.executable).parent / "tmuxp")
        argv = [tmuxp, "load", "-d", "-y", "-S", str(socket), "-f", "/dev/null", str(file)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        asked = [*own, "list-panes", "-a", "-F", "#{window_name}"]
        panes = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
        assert sorted(panes) == ["a", "a", "g", "g", "g", "g"]
        until(lambda: (private_places / "seen").exists() and (private_places / "seen").stat().st_size > 0)
        until(lambda: (private_places / "seen").read_text().endswith("]"))
        assert (private_places / "made").read_text().startswith("made\n")
        words, env = json.loads((private_places / "seen").read_text())
        [planned] = [one for one in plan_of(private_places, **data).processes if one.process == "a"]
        assert words == list(planned.argv[4:])
        assert env["V"] == "$HOME #{pid}"
        assert "TMUX" not in env
    finally:
        subprocess.run([*own, "kill-server"], capture_output=True, check=False)


# The types of the exported fields in process-compose's own schema, which allows no other fields.
_FIELDS = {
    "command": str,
    "availability": dict,
    "shutdown": dict,
    "log_location": str,
    "is_tty": bool,
    "depends_on": dict,
    "readiness_probe": dict,
}
_CONDITIONS = {"process_healthy", "process_started", "process_completed_successfully"}


def test_the_file_for_process_compose_has_its_fields_and_types(tmp_path: Path) -> None:
    ready = {"exec": {"command": ["test", "-e", "it's"]}, "period": 3}
    data = {
        "prepare": {"make": {"cmds": ["true"]}},
        "processes": {
            "s": {"command": ["c"], "binds": "x", "lifecycle": "service"},
            "p": {"command": ["c"], "ready": ready, "lifecycle": "service"},
            "c": {"command": ["c"], "connects": "x", "after": "p", "retries": 2},
        },
    }
    document = yaml.safe_load(to_process_compose(plan_of(tmp_path, **data), "/tmp/out").text)
    assert document["disable_env_expansion"] is True
    for process in document["processes"].values():
        assert all(isinstance(value, _FIELDS[name]) for name, value in process.items())
        assert process["availability"]["restart"] in ("always", "on_failure", "no")
        for name, dependency in process.get("depends_on", {}).items():
            assert name in document["processes"]
            assert dependency["condition"] in _CONDITIONS
    conditions = {name: item["condition"] for name, item in document["processes"]["c"]["depends_on"].items()}
    assert conditions == {"c_make": "process_completed_successfully", "s": "process_healthy", "p": "process_healthy"}
    assert document["processes"]["c"]["availability"] == {
        "restart": "on_failure",
        "backoff_seconds": 1,
        "max_restarts": 2,
        "exit_on_end": True,
    }
    probe = document["processes"]["p"]["readiness_probe"]
    assert subprocess.run(["/bin/sh", "-c", probe["exec"]["command"]], check=False, cwd=tmp_path).returncode == 1
    (tmp_path / "it's").touch()
    assert subprocess.run(["/bin/sh", "-c", probe["exec"]["command"]], check=False, cwd=tmp_path).returncode == 0


def test_volumes_of_other_runners_are_folders_that_commands_name(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(repository), *author, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    spec = tmp_path / "experiment.yaml"
    spec.write_text(
        f"name: v\nvolumes: {{code: {{type: git, repository: {repository}}}}}\n"
        "processes: {a: {command: [ls, /code/x], mounts: [{volume: code, at: /code}]}}\n"
    )
    assert main(["local", "render", str(spec), "--as", "tmuxp", "--to", str(tmp_path / "out")]) == 0
    folder = tmp_path / "out" / "volumes" / "a" / "code"
    assert f"'{folder}/x'" in (tmp_path / "out" / "p" / "0" / "start").read_text()
    assert (folder / ".git").is_dir()
