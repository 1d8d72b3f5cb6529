"""The script that ends a run, run by /bin/sh with a stand-in for kubectl that replays the states of Jobs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from symphony_charts.chart.build.conductor import SCRIPT

# Each wait of two seconds is a change to the next state; without a next one the script is stopped.
_PROGRAMS = {
    "sleep": """\
echo "wait $1" >>log
[ "$1" = 2 ] || exit 0
next=`ls states | head -n 1`
[ -n "$next" ] && mv "states/$next" now || kill "$PPID"
""",
    "kubectl": """\
if [ "$1" = get ]; then
  shift 2
  for word; do
    case $word in -*) exit 0 ;; *) grep "^$word " now ;; esac
  done
  exit 0
fi
grep -q "^$3 " now || exit 1
[ -e "refused-$3" ] && rm "refused-$3" && exit 1
shift 2
echo "$*" >>log
""",
}
_PATCH = {"metadata": {"annotations": {"symph.dev/ended": "true"}}, "spec": {"suspend": True}}


def _conduct(folder: Path, states: Sequence[str], *args: str) -> list[str]:
    """Return the waits and the suspended Jobs in order. A state is ``a=Complete b``: Jobs with their conditions."""
    for name, text in _PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)
    (folder / "states").mkdir()
    files = [folder / "now", *(folder / "states" / str(number) for number in range(1, len(states)))]
    for file, state in zip(files, states, strict=True):
        file.write_text(
            "".join(f"{job.replace('=', ' ') if '=' in job else f'{job} <none>'}\n" for job in state.split())
        )
    (folder / "log").touch()
    linger, on_failure, *jobs = args
    command = ["/bin/sh", "-c", SCRIPT, "conductor", linger, on_failure, "jobs", ".status", *jobs]
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    subprocess.run(command, cwd=folder, env=env, timeout=60, check=False, capture_output=True)
    lines = (folder / "log").read_text().splitlines()
    for line in lines:
        assert line.startswith("wait ") or json.loads(line.partition("-p ")[2]) == _PATCH
    return [line if line.startswith("wait ") else line.split()[0] for line in lines]


@pytest.mark.parametrize(
    ("states", "on_failure", "jobs", "wanted"),
    [
        pytest.param(["a b s"], "stop", "a -- b -- s", ["wait 2"], id="nothing happens before the end"),
        pytest.param(
            ["a b s", "a=Complete b s"], "stop", "a -- b -- s", ["wait 2", "b", "wait 30", "s"], id="done_when is met"
        ),
        pytest.param(["a=Complete b c s"], "stop", "a b -- c -- s", ["wait 2"], id="a part of done_when is met"),
        pytest.param(["a=Complete b=Complete s t"], "stop", "a b -- -- s t", ["wait 30", "s", "t"], id="all are done"),
        pytest.param(["a=Complete b"], "stop", "a -- b --", ["b", "wait 30"], id="no services"),
        pytest.param(
            ["a b=FailureTarget,Failed s"], "stop", "a -- b -- s", ["a", "wait 30", "s"], id="a failure stops"
        ),
        pytest.param(["a b=FailureTarget s"], "stop", "a -- b -- s", ["wait 2"], id="a failure is not yet final"),
        pytest.param(["a b=Failed s"], "continue", "a -- b -- s", ["wait 2"], id="a failure does not stop"),
        pytest.param(
            ["a=Failed b=Complete s"], "continue", "a -- b -- s", ["wait 30", "s"], id="after a failure all have ended"
        ),
        pytest.param(["b s", "a=Complete b s"], "stop", "a -- b -- s", ["wait 2", "b", "wait 30", "s"], id="a is late"),
        pytest.param(
            ["a=Complete s t"], "stop", "a -- -- gone s t", ["wait 30", "wait 2", "s", "t"], id="a deleted Job"
        ),
    ],
)
def test_a_run_ends_as_the_spec_says(
    states: list[str], on_failure: str, jobs: str, wanted: list[str], tmp_path: Path
) -> None:
    # The state after a wait for a deleted Job is the same.
    states = [*states, states[-1]] if "gone" in jobs else states
    assert _conduct(tmp_path, states, "30", on_failure, *jobs.split()) == wanted


def test_a_refused_patch_is_repeated_and_a_second_conductor_ends_the_same_jobs(tmp_path: Path) -> None:
    (tmp_path / "refused-b").touch()
    (tmp_path / "refused-s").touch()
    ended = "a=Complete b s"
    log = _conduct(tmp_path, [ended, ended, ended], "0", "stop", "a", "--", "b", "--", "s")
    assert log == ["wait 2", "b", "wait 0", "wait 2", "s"]
