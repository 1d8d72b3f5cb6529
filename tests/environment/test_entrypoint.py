"""A process starts under its configured shell, with the flags that the shell's name implies."""

from __future__ import annotations

import subprocess

import pytest

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.data import from_data, to_data, to_yaml
from symphony_charts.spec.environment import entry_point
from symphony_charts.spec.model import Process
from tests.chart.harness import chart_of, experiment_of, native_objects


def process(**fields: object) -> Process:
    return from_data({"name": "x", "processes": {"a": fields}}).processes["a"]


def outcome(**fields: object) -> tuple[str, int]:
    """Return the output and the exit status of a process whose entry point is started here."""
    command, args = entry_point(process(**fields))
    done = subprocess.run([*(command or ()), *(args or ())], capture_output=True, text=True, timeout=20, check=False)
    return done.stdout, done.returncode


ARRAY = ["arr=(one two)", 'echo "${arr[1]}"']
FAILS_FIRST = ["mkdir /proc/no/such 2>/dev/null", "echo on"]


def test_the_usual_shell_is_sh_and_stops_at_the_first_failing_line() -> None:
    assert outcome(cmds=FAILS_FIRST) == ("", 1)


def test_bash_speaks_bash_and_stops_in_pipes_too() -> None:
    assert outcome(cmds=ARRAY, shell="bash") == ("two\n", 0)
    assert outcome(cmds=["false | true", "echo on"], shell="bash") == ("", 1)


def test_a_list_is_the_shell_with_its_own_flags() -> None:
    assert outcome(cmds=[*FAILS_FIRST, *ARRAY], shell=["/bin/bash", "-c"]) == ("on\ntwo\n", 0)


def test_the_preamble_is_part_of_the_script_of_the_same_shell() -> None:
    assert outcome(cmds=['echo "${arr[1]}"'], preamble=["arr=(one two)"], shell="bash") == ("two\n", 0)
    assert outcome(command="echo", args=["{a,b}"], preamble=["shopt -s nullglob"], shell="bash") == ("{a,b}\n", 0)


def test_a_chart_starts_the_same_words_as_this_machine() -> None:
    fields = {"cmds": ARRAY, "shell": ["/bin/bash", "-c"]}
    objects = native_objects(chart_of(experiment_of(processes={"p": fields})))
    jobs = [item for (kind, _), item in objects.items() if kind == "Job"]
    (container,) = maps(sub(jobs[0], "spec", "template", "spec"), "containers")
    assert container["command"] == entry_point(process(**fields)).command == ["/bin/bash", "-c", "\n".join(ARRAY)]


@pytest.mark.parametrize("shell", ["bash", ["/bin/bash", "-c"], ["busybox", "sh", "-c"]])
def test_a_shell_survives_the_text_forms(shell: object) -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"cmds": "x", "shell": shell}}})
    assert experiment.processes["a"].shell == shell
    assert from_data(to_data(experiment)) == experiment
    assert from_data(load(to_yaml(experiment))) == experiment
