"""Surreal 0.2.1, unchanged: every verb that its three launchers define runs under Symphony's names of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.e2e.programs import Programs
from tests.e2e.surreal_original import VERSION, surreal_folder
from tests.waiting import eventually

POOLS = Path(__file__).parents[2] / "examples" / "pools" / "cloudwise.tf.json"
KUBE, TMUX, SUBPROC = (f"surreal.{name}.surreal_{name}" for name in ("kube", "tmux", "subproc"))
# The keys of Surreal's own sample of that file.
SETTINGS = {
    "username": "foobar",
    "tmux_preamble_cmds": ["echo before"],
    "tmux_results_folder": "~/tmux",
    "subproc_results_folder": "~/subproc",
    "kube_metadata_folder": "~/kube",
    "cluster_definition": str(POOLS),
    "kube_results_folder": "/fs/experiments/foobar",
    "creation_settings": {
        "cpu-gym": {
            "mode": "basic",
            "num_agents": 2,
            "num_evals": 1,
            "agent": {"image": "surreal/nvidia", "scheduling": {"assign_to": "resource", "cpu": 1.5}},
            "nonagent": {"image": "surreal/nvidia", "scheduling": {"assign_to": "resource", "cpu": 7}},
        }
    },
}
NFS = {"servername": "files", "fs_location": "/data", "mount_path": "/fs", "results_folder": "/data/experiments"}
ROLES = ["learner", "replay", "ps", "tensorboard", "tensorplex", "loggerplex", "agent-0", "eval-0"]
PROGRAM = """\
#!/bin/sh
echo "$0 $*" >> %s
case "$*" in *'ls -1'*) echo video_eps_7.mp4 ;; esac
"""

Surreal = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the PYTHONPATH folder of Surreal; module scope, since tests get a home of their own later."""
    folder = surreal_folder(tmp_path_factory.mktemp("surreal") / "lib")
    if folder is None:
        pytest.skip(f"surreal {VERSION} could not be installed from the registry")
    return folder


@pytest.fixture
def home(private_places: Path) -> Path:
    (private_places / "home" / ".surreal.yml").write_text(yaml.safe_dump(SETTINGS))
    return private_places / "home"


@pytest.fixture
def surreal(library: Path, home: Path, tmp_path: Path) -> Surreal:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("docker", "gcloud"):
        # No daemon and no cloud are here; the fakes record their calls.
        (programs / name).write_text(PROGRAM % (tmp_path / "called"))
        (programs / name).chmod(0o755)

    def run(module: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "PYTHONPATH": str(library),
            "KUBECONFIG": str(tmp_path / "none"),
            "PATH": f"{programs}:{os.environ['PATH']}",
            **more,
        }
        argv = [sys.executable, "-m", "symphony_charts.compat", "-m", module, *words]
        return subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, timeout=120, check=False)

    return run


def test_create_makes_the_objects_of_a_cluster(surreal: Surreal) -> None:
    done = surreal(KUBE, "create", "cpu-gym", "First_one", "--dry-run", "--", "--unroll", "5")
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout.partition("---\n")[2]))
    assert {item["metadata"]["labels"]["symph.dev/experiment"] for item in objects} == {"foobar-first-one"}
    pods = [item["spec"]["template"]["spec"]["containers"] for item in objects if item["kind"] == "Job"]
    assert sorted(len(containers) for containers in pods) == [1, 1, 1, 6]
    assert "--unroll 5" in pods[0][0]["args"][0]


@pytest.mark.parametrize(
    "verb", [("get-videos",), ("get-config", "x"), ("get-tensorboard", "x"), ("create", "no", "x")]
)
def test_what_a_verb_itself_raises_is_shown_as_its_own(surreal: Surreal, verb: tuple[str, ...]) -> None:
    done = surreal(KUBE, *verb)
    said = "KeyError: 'Cannot find setting no'" if verb[0] == "create" else "ValueError: nfs field not found"
    assert done.returncode == 3, done.stderr
    assert ("the script itself raised this" in done.stderr, said in done.stderr) == (True, True)


@pytest.mark.parametrize(
    ("verb", "called"),
    [
        (
            ("get-videos", "x"),
            "gcloud compute scp --recurse files:/data/experiments/x/videos/video_eps_7.mp4 x/video_eps_7.mp4",
        ),
        (("get-config", "x", "-o", "c.yml"), "gcloud compute scp --recurse files:/data/experiments/x/config.yml c.yml"),
        (("get-tensorboard", "x"), "gcloud compute scp --recurse files:/data/experiments/x/tensorboard x"),
    ],
)
def test_what_lies_on_the_file_server_is_fetched(
    surreal: Surreal, home: Path, tmp_path: Path, verb: tuple[str, ...], called: str
) -> None:
    (home / ".surreal.yml").write_text(yaml.safe_dump({**SETTINGS, "nfs": NFS}))
    done = surreal(KUBE, *verb)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "called").read_text().splitlines()[-1].endswith(f"/{called}")


@pytest.mark.parametrize("verb", [("tensorboard", "x", "-u"), ("list-experiments",), ("delete", "x")])
def test_verbs_that_ask_the_cluster_say_that_there_is_none(surreal: Surreal, verb: tuple[str, ...]) -> None:
    done = surreal(KUBE, *verb)
    assert (done.returncode, "no cluster is configured" in done.stderr) == (6, True)


def test_the_dashboard_of_an_experiment_is_found_by_tensorboard(
    surreal: Surreal, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    own = tmp_path / "kubeconfig"
    own.write_bytes(programs.kubeconfig.read_bytes())
    programs.kubectl("--kubeconfig", str(own), "config", "set-context", "--current", f"--namespace={namespace}")
    there = {"KUBECONFIG": str(own)}
    done = surreal(KUBE, "create", "cpu-gym", "first", **there)
    assert done.returncode == 0, done.stderr
    assert "foobar-first" in surreal(KUBE, "list-experiments", **there).stdout
    found = surreal(KUBE, "tensorboard", "first", "-u", **there)
    assert (found.returncode, ":6006" in found.stdout) == (0, True), found.stdout + found.stderr
    listed = surreal(KUBE, "list-processes", "first", **there).stdout
    assert all(role in listed for role in ("learner", "tensorboard", "agent-1", "eval-0"))
    assert surreal(KUBE, "delete", "first", "--yes", **there).returncode == 0


def test_docker_clean_asks_before_it_removes_anything(surreal: Surreal, tmp_path: Path) -> None:
    done = surreal(KUBE, "docker-clean")
    assert (done.returncode, "This question needs a terminal" in done.stderr) == (2, True)
    assert not (tmp_path / "called").exists()


def test_an_experiment_runs_in_tmux_from_create_to_delete(surreal: Surreal) -> None:
    create = ("create", "My_first", "--algorithm", "echo", "--num_agents", "1", "--num_evals", "1", "--", "--x", "1")
    done = surreal(TMUX, *create)
    assert done.returncode == 0, done.stderr
    listed = surreal(TMUX, "list-processes", "my-first").stdout.splitlines()[1:]
    assert [line.split()[1] for line in listed] == ROLES

    def logged() -> list[str] | None:
        lines: list[str] = surreal(TMUX, "logs", "agent-0", "foobar-my-first").stdout.splitlines()
        return lines if len(lines) > 1 else None

    logs = eventually(logged)
    assert (logs[0], logs[1].startswith("agent-0 -- --x 1 --num-agents 1 ")) == ("before", True)
    assert surreal(TMUX, "delete", "my-first", "--yes").returncode == 0
    assert surreal(TMUX, "list-processes", "my-first").returncode != 0


def test_an_experiment_runs_in_the_foreground(surreal: Surreal) -> None:
    done = surreal(SUBPROC, "first", "--algorithm", "echo", "-na", "1", "-ne", "1", "--gpu", "0,1")
    assert done.returncode == 0, done.stderr
    said = [line.split(" | ") for line in done.stdout.splitlines() if " | " in line]
    assert sorted(role for role, _ in said) == sorted(ROLES)
    assert "Putting learner on GPU 0" in done.stdout


def test_the_default_settings_are_generated(surreal: Surreal, home: Path) -> None:
    done = surreal("surreal.main.generate_default_config")
    assert done.returncode == 0, done.stderr
    assert "<your_username>" in (home / ".surreal.yml").read_text()
    # The placeholder is no user name; Symphony made experiments of it.
    refused = surreal(TMUX, "create", "first")
    assert (refused.returncode, "<your-username>" in refused.stderr) == (3, True), refused.stderr
