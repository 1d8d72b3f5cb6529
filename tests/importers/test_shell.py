"""A script in a command becomes `cmds` and its shell, with the same effect."""

from __future__ import annotations

import subprocess

import pytest

from symphony_charts.integrations.common.scripts import Script, script_of
from symphony_charts.spec.data import from_data
from symphony_charts.spec.environment import entry_point


def script(text: str, *shell: str) -> Script:
    found = script_of([*shell], [text])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ([], ["bash", "-c", "x"]),
        (["bash"], ["x.sh"]),
        (["bash", "run.sh", "-c"], ["x"]),
        (["bash", "-c", "x"], ["name", "argument"]),
        (["python", "-c"], ["x"]),
        (["sh"], []),
    ],
)
def test_other_commands_are_no_scripts(command: list[str], args: list[str]) -> None:
    assert script_of(command, args) is None


@pytest.mark.parametrize(
    ("shell", "field"),
    [
        (("/bin/sh", "-e", "-c"), "sh"),
        (("bash", "-eo", "pipefail", "-c"), "bash"),
        (("/bin/bash", "-c"), ["/bin/bash", "-c"]),
        (("bash", "--norc", "-lc"), ["bash", "--norc", "-lc"]),
        (("/usr/local/bin/zsh", "-x", "-o", "errexit", "-c"), ["/usr/local/bin/zsh", "-x", "-o", "errexit", "-c"]),
    ],
)
def test_the_shell_stays_with_its_flags(shell: tuple[str, ...], field: object) -> None:
    assert script("a", *shell).shell_field == field


def test_blank_lines_and_comments_go_and_continued_lines_stay_together() -> None:
    assert script("# it's a word\n\nrun \\\n  --x\n", "sh", "-c").lines == ["run \\\n  --x"]


SCRIPTS = [
    "echo a; false; echo b",
    "false\necho $?",
    "x=1\nif [ $x = 1 ]; then\n  echo yes\nfi\nfalse",
    "for i in 1 2; do echo $i; done; exit 3",
    "echo 'two\nlines'",
    "echo a \\\n  b",
    "# words\necho a | tr a b",
    "cat <<EOF\n\n# kept\nEOF",
    "arr=(one two)\nfor x in ${arr[@]}; do echo $x | cat; done\n[[ -f /nowhere ]]",
    "echo {1..3}; source /nowhere; echo on",
    "trap 'echo bye' EXIT\nf() { echo hi; }\nf",
    "ls /nowhere",
    "E='false; echo x'; eval \"$E\"",
    "[ a == b ] && echo yes || echo no\necho 'a\\tb'",
    "set -- a b c; echo ${@:2} $OSTYPE; printf %q 'x y'",
]


@pytest.mark.parametrize("text", SCRIPTS)
@pytest.mark.parametrize("flag", ["-c", "-ec"])
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_script_says_and_ends_as_before(text: str, shell: str, flag: str) -> None:
    found = script(text, shell, flag)
    fields = {"cmds": found.lines, "shell": found.shell_field}
    command, _ = entry_point(from_data({"name": "x", "processes": {"a": fields}}).processes["a"])
    assert command is not None
    runs = [
        subprocess.run(argv, capture_output=True, timeout=20, check=False) for argv in ([shell, flag, text], command)
    ]
    assert (runs[0].stdout, runs[0].returncode) == (runs[1].stdout, runs[1].returncode)
