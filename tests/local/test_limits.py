"""CPU and memory limits of runs: by scopes of a real systemd user manager, and by rlimits without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from symphony_charts.errors import Conflict
from symphony_charts.local import up as local_run
from symphony_charts.local.machine.machine import find_limiter, plan_here
from symphony_charts.local.plan.records import Limiter
from symphony_charts.local.plan.resources import limits_note, limits_of, scope_words
from symphony_charts.local.plan.scripts import verdict_script
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start, states_of

SCOPES = Limiter(by={"memory": "systemd", "cpu": "systemd"}, scope=("scope",))
RLIMITS = Limiter(by={"memory": "rlimit"}, why="no systemd-run on this machine")
HUNGRY = "x = bytearray(400_000_000); print(len(x), flush=True)"
MAIN = "import sys; from symphony_charts.cli.main import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True, kw_only=True)
class Systemd:
    """Runs programs where this user's manager is reachable."""

    env: dict[str, str]

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=40, check=False)


@pytest.fixture
def systemd(need_tool: Callable[[str], str]) -> Systemd:
    """Provide the manager of this user. Tests start none: it would take over all processes of its control group."""
    need_tool("systemd-run")
    own = Systemd(env={**os.environ, "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"})
    if own.run("systemd-run", "--user", "--scope", "--quiet", "true").returncode == 0:
        return own
    pytest.skip("no systemd manager of this user runs here, and a test must not start one")


def up(systemd: Systemd, folder: Path, **processes: object) -> subprocess.CompletedProcess[str]:
    spec = folder / "spec.json"
    local = {"limits": True, "tty": False}
    spec.write_text(json.dumps({"name": "exp", "processes": processes, "local": local, "on_failure": "continue"}))
    return systemd.run(sys.executable, "-c", MAIN, "up", str(spec), "--wait")


def states(private_places: Path) -> list[dict[str, Any]]:
    found = next((private_places / "state" / "local" / "exp").glob("*/state.json"))
    items: list[dict[str, Any]] = json.loads(found.read_text())["processes"]
    return items


@pytest.mark.usefixtures("here")
def test_a_process_above_its_memory_limit_is_killed_and_that_is_told(
    systemd: Systemd, tmp_path: Path, private_places: Path
) -> None:
    fits = python("print('fits')", limits={"memory": "100Mi"})
    done = up(systemd, tmp_path, a=python(HUNGRY, limits={"memory": "100Mi"}), b=fits)
    assert done.returncode == 137
    assert 'process "a" failed (SIGKILL (137)): out of memory, limit 100Mi' in done.stderr
    assert [(item["status"], item["limit"]) for item in states(private_places)] == [
        (137, "out of memory, limit 100Mi"),
        (0, ""),
    ]


@pytest.mark.usefixtures("here")
def test_the_limit_counts_all_that_a_process_starts(systemd: Systemd, tmp_path: Path, private_places: Path) -> None:
    parent = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {HUNGRY!r}]) and 5)"
    up(systemd, tmp_path, a=python(parent, limits={"memory": "100Mi"}))
    assert [(item["status"], item["limit"]) for item in states(private_places)] == [(5, "out of memory, limit 100Mi")]


@pytest.mark.usefixtures("here")
def test_a_process_gets_no_more_cpu_than_its_limit(systemd: Systemd, tmp_path: Path, private_places: Path) -> None:
    burn = """if 1:
        import time
        start = time.monotonic()
        while time.process_time() < 0.5: pass
        assert time.monotonic() - start > 1.5, time.monotonic() - start
    """
    assert up(systemd, tmp_path, a=python(burn, limits={"cpu": "250m"})).returncode == 0


@pytest.mark.usefixtures("here")
def test_a_process_in_a_scope_has_the_environment_of_any_other(systemd: Systemd, tmp_path: Path) -> None:
    look = "import os; assert 'XDG_RUNTIME_DIR' not in os.environ, os.environ"
    done = up(systemd, tmp_path, a=python(look, limits={"memory": "1Gi"}))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().endswith("limits by systemd")


@pytest.fixture
def no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    find_limiter.cache_clear()


@pytest.mark.usefixtures("here", "no_systemd")
def test_without_systemd_memory_is_limited_by_rlimits_and_that_is_told(tmp_path: Path) -> None:
    run = start(
        tmp_path,
        processes={"a": python(HUNGRY, limits={"memory": "100Mi", "cpu": "1"})},
        local={"limits": True, "tty": False},
    )
    assert local_run.wait(run) == 1
    assert "MemoryError" in log_of(run, "a")
    assert "memory limited to 100Mi by rlimit" in states_of(run)[0]
    (note,) = run.plan().notes
    assert note.startswith(
        "memory limits are rlimits, which apply to each process of a program separately; cpu limits have no"
    )
    assert note.endswith("effect: no systemd session (XDG_RUNTIME_DIR is not set) on this machine")


@pytest.mark.usefixtures("here", "no_systemd")
def test_limits_are_applied_only_when_asked_for(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python(HUNGRY, limits={"memory": "100Mi"})})
    assert local_run.wait(run) == 0


@pytest.mark.usefixtures("no_systemd")
def test_what_a_process_reserves_is_its_limit_here_too(tmp_path: Path) -> None:
    data = {"command": ["c"], "reserve": True, "requests": {"memory": "2Gi"}}
    experiment = from_data({"name": "x", "processes": {"a": data}, "local": {"limits": True}})
    plan = plan_here(experiment, allocate(experiment), tmp_path, "r")
    assert [(limit.resource, limit.amount, limit.by) for limit in plan.processes[0].limits] == [
        ("memory", 2 * 2**30, "rlimit")
    ]


def test_a_scope_has_the_limits_as_properties() -> None:
    process = from_data({"name": "x", "processes": {"a": {"command": ["c"], "limits": LIMITS}}}).processes["a"]
    words = scope_words(limits_of(process, SCOPES), SCOPES)
    assert [word for word in words if "=" in word] == [
        "MemoryMax=1610612736",
        "MemorySwapMax=0",
        "CPUQuota=150%",
    ]
    assert not any(char in word for word in words for char in "#;'\"")


def test_scopes_need_no_note() -> None:
    processes = {"a": {"command": ["c"], "limits": LIMITS}}
    experiment = from_data({"name": "x", "local": {"limits": True}, "processes": processes})
    assert limits_note(experiment, SCOPES) == ()
    assert len(limits_note(experiment, RLIMITS)) == 1


LIMITS = {"memory": "1.5Gi", "cpu": "1500m", "nvidia.com/gpu": "1"}


@pytest.mark.usefixtures("no_systemd")
def test_a_dry_run_tells_limits_and_by_what_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.json"
    process = {"command": ["c"], "limits": {"memory": "1Gi"}}
    spec.write_text(json.dumps({"name": "x", "processes": {"a": process}, "local": {"limits": True}}))
    assert main(["up", str(spec), "--dry-run"]) == 0
    assert "  a: c  (at most memory 1Gi by rlimit)\n" in capsys.readouterr().out


@pytest.mark.parametrize(("kills", "said"), [("oom_kill 0", ""), ("oom 0\noom_kill 2", "out of memory, limit 1.5Gi")])
def test_a_verdict_is_read_from_the_control_group(kills: str, said: str, tmp_path: Path) -> None:
    process = from_data({"name": "x", "processes": {"a": {"command": ["c"], "limits": LIMITS}}}).processes["a"]
    (tmp_path / "own").write_text("0::/a.scope\n")
    (tmp_path / "a.scope").mkdir()
    (tmp_path / "a.scope" / "memory.events").write_text(f"low 0\n{kills}\n")
    script = verdict_script(limits_of(process, SCOPES))
    script = script.replace("/proc/self/cgroup", f"{tmp_path}/own").replace("/sys/fs/cgroup", str(tmp_path))
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    assert ((tmp_path / "limit").read_text().strip() if (tmp_path / "limit").exists() else "") == said


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a program in place of systemd-run that records its arguments and executes the words after ``--``."""
    program = tmp_path / "systemd-run"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    )
    program.chmod(0o755)
    scope = ("/usr/bin/env", "XDG_RUNTIME_DIR=/run/user/7", str(program), "--user", "--scope")
    limiter = Limiter(by={"memory": "systemd", "cpu": "systemd"}, scope=scope)
    monkeypatch.setattr("symphony_charts.local.machine.machine.find_limiter", lambda: limiter)
    return tmp_path / "asked"


@pytest.mark.usefixtures("here")
def test_a_limited_process_starts_in_a_scope_and_others_do_not(tmp_path: Path, stand_in: Path) -> None:
    look = "import os; print('XDG_RUNTIME_DIR' in os.environ, os.environ['A'], flush=True); raise SystemExit(9)"
    limited = python(look, limits={"memory": "1Gi", "cpu": "500m"}, env={"A": "%H #{pid}"})
    run = start(
        tmp_path,
        processes={"a": limited, "b": python("pass")},
        local={"limits": True, "tty": False},
        on_failure="continue",
    )
    assert local_run.wait(run) == 9
    assert log_of(run, "a") == "False %H #{pid}\n"
    (asked,) = stand_in.read_text().splitlines()
    assert asked.startswith("--user --scope -p MemoryMax=1073741824 -p MemorySwapMax=0 -p CPUQuota=50% -- ")
    # The control group around the process may have run out of memory before.
    assert states_of(run)[0].startswith("failed 9 ")


@pytest.mark.usefixtures("here", "stand_in")
def test_another_limit_of_a_scope_needs_a_new_run(tmp_path: Path) -> None:
    def begin(memory: str) -> None:
        start(tmp_path, processes={"a": python("input()", limits={"memory": memory})}, local={"limits": True})

    begin("1Gi")
    with pytest.raises(Conflict, match="needs a new run"):
        begin("2Gi")
