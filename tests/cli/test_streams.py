"""stdout and stderr as callers pass them: in any encoding, closed, cut off by a reader, on a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """\
name: rl
image: busybox:1.37.0
processes:
  a: {command: [echo, "h\u00e9llo \u2192 \U0001f600"], env: {X: "\u2026"}}
"""
LOCALES = [
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]
VERBS = [
    (["package", "rl.yaml"], 0),
    (["validate", "rl.yaml"], 0),
    (["up", "rl.yaml", "--dry-run"], 0),
]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment with its own home, in a folder that holds a spec."""
    (tmp_path / "rl.yaml").write_text(SPEC, encoding="utf-8")
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SYMPH_STATE_DIR": str(tmp_path / "state")}


def symph(env: dict[str, str], words: list[str], end: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run the command through a shell, with `end` appended to the command line."""
    argv = ["sh", "-c", f'"$@" {end}', "sh", sys.executable, "-m", "symphony_charts", *words]
    return subprocess.run(argv, cwd=env["HOME"], env=env, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize(("words", "status"), VERBS)
@pytest.mark.parametrize("locale", LOCALES, ids=str)
def test_no_locale_makes_a_verb_fail(
    env: dict[str, str], locale: dict[str, str], words: list[str], status: int
) -> None:
    ended = symph({**env, **locale}, words)
    assert ended.returncode == status, ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("locale", LOCALES, ids=str)
def test_data_is_the_same_utf_8_in_every_locale(env: dict[str, str], locale: dict[str, str]) -> None:
    usual = symph(env, ["render", "rl.yaml"])
    assert symph({**env, **locale}, ["render", "rl.yaml"]).stdout == usual.stdout
    assert "h\u00e9llo \u2192 \U0001f600" in usual.stdout.decode()


def test_a_name_that_is_no_utf_8_is_escaped(env: dict[str, str]) -> None:
    ended = symph(env, ["render", os.fsdecode(b"b\xe9d.yaml"), "-o", "json"])
    assert ended.returncode == 2
    assert b"'b\\udce9d.yaml' is not UTF-8" in ended.stderr


def test_an_ascii_terminal_shows_dots_for_an_ellipsis(env: dict[str, str]) -> None:
    inner = f"{sys.executable} -m symphony_charts package rl.yaml"
    argv = ["script", "-qec", inner, "/dev/null"]
    ascii_only = {**env, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(argv, cwd=env["HOME"], env=ascii_only, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.isascii()) == (0, True)
    assert b"...\r\n" in ended.stdout


@pytest.mark.parametrize(
    ("end", "status"),
    [(">&-", 0), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 6)],
)
def test_closed_streams_end_quietly(env: dict[str, str], end: str, status: int) -> None:
    ended = symph(env, ["package", "rl.yaml"], end)
    assert ended.returncode == status
    assert b"Traceback" not in ended.stderr
    assert (Path(env["HOME"]) / "dist/rl-0.1.0.tgz").is_file()


def test_a_fault_keeps_its_status_where_nobody_can_read_of_it(env: dict[str, str]) -> None:
    assert symph(env, ["render", "rl.yaml", "--set", "workload.kind=jobz"], "2>&-").returncode == 3
    assert symph(env, ["render", "rl.yaml", "--set", "workload.kind=jobz"], ">&- 2>&-").returncode == 3


def test_programs_that_are_started_write_into_no_file_of_ours(env: dict[str, str]) -> None:
    assert symph(env, ["doctor"], ">&- 2>&-").returncode in (0, 1)
    assert symph(env, ["package", "rl.yaml", "-o", "json"], "2>&-").returncode == 0
    assert json.loads(symph(env, ["package", "rl.yaml", "-o", "json"], "2>&-").stdout)["kind"]


@pytest.mark.parametrize("words", [["schema"], ["render", "rl.yaml"], ["schema", "-v"]], ids=" ".join)
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(env: dict[str, str], words: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "symphony_charts", *words],
        cwd=env["HOME"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(60), said) == (141, b"")


def test_a_reader_of_messages_that_has_gone_is_no_fault(env: dict[str, str]) -> None:
    ended = symph(env, ["render", "nowhere.yaml"], "2>&1 >/dev/null | true")
    assert b"Traceback" not in ended.stderr
