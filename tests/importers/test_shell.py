"""Scripts become `cmds` only where one `sh -e` script means what they meant."""

from __future__ import annotations

import subprocess

import pytest

from symphony_charts.importers.common.shell import command_lines, script_of


def lines(text: str, shell: str = "bash", flag: str = "-c") -> list[str]:
    script = script_of([shell, flag], [text])
    assert script is not None
    return command_lines(script)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ([], ["bash", "-c", "x"]),
        (["bash"], ["x.sh"]),
        (["bash", "-lc"], ["x"]),
        (["python", "-c"], ["x"]),
        (["sh"], []),
    ],
)
def test_other_commands_are_no_scripts(command: list[str], args: list[str]) -> None:
    assert script_of(command, args) is None


@pytest.mark.parametrize(
    "text",
    [
        "[[ -f x ]]",
        "source env",
        "a=(1 2)",
        "echo ${x//a/b}",
        "set -o pipefail",
        "cat <<<x",
        "x &> y",
        "echo {1..3}",
        "diff <(a) <(b)",
    ],
)
def test_scripts_that_speak_bash_are_seen_as_such(text: str) -> None:
    script = script_of(["/bin/bash", "-c"], [text])
    assert script is not None
    assert script.is_bash


@pytest.mark.parametrize(
    "text", ["[ -f x ]", ". env", "x > y 2>&1", "echo $((1 + 2))" if False else "expr 1 + 2", "a=${x:-1}"]
)
def test_plain_scripts_under_bash_are_not(text: str) -> None:
    script = script_of(["/bin/bash", "-c"], [text])
    assert script is not None
    assert not script.is_bash


def test_one_command_takes_the_place_of_its_shell() -> None:
    assert lines("python train.py --lr=1") == ["exec python train.py --lr=1"]


def test_several_commands_go_on_after_a_failure_as_they_did() -> None:
    assert lines("pip install x\npython train.py") == ["set +e", "pip install x", "exec python train.py"]


def test_with_e_nothing_is_added() -> None:
    assert lines("a\nb", flag="-ec") == ["a", "exec b"]


def test_blank_lines_and_comments_go_and_continued_lines_stay_together() -> None:
    assert lines("# it's a word\n\nrun \\\n  --x\n") == ["exec run \\\n  --x"]


@pytest.mark.parametrize("text", ["f() { echo hi; }\nf", "trap 'echo bye' EXIT\nrun", "alias r=run\nr"])
def test_functions_traps_and_aliases_keep_their_shell(text: str) -> None:
    assert not any(line.startswith("exec") for line in lines(text))


def test_what_was_made_of_cmds_comes_back_as_it_was() -> None:
    script = script_of(["/bin/sh", "-e", "-c", "a\nb"], [])
    assert script is not None
    assert command_lines(script) == ["a", "b"]


SCRIPTS = [
    "echo a; false; echo b",
    "false\necho $?",
    "x=1\nif [ $x = 1 ]; then\n  echo yes\nfi\nfalse",
    "for i in 1 2; do echo $i; done; exit 3",
    "echo 'two\nlines'",
    "echo a \\\n  b",
    "# words\necho a | tr a b",
    "cat <<EOF\n\n# kept\nEOF",
    "true && false || echo c",
    "ls /nowhere",
]


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_script_says_and_ends_as_before(text: str) -> None:
    before = subprocess.run(["bash", "-c", text], capture_output=True, timeout=20, check=False)
    script = "\n".join(lines(text))
    after = subprocess.run(["sh", "-e", "-c", script], capture_output=True, timeout=20, check=False)
    assert (after.stdout, after.returncode) == (before.stdout, before.returncode)
