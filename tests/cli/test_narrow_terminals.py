"""On a terminal of 80 columns, tables have no longer lines, whatever their names and texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli import output
from symphony_charts.cli.main import main
from tests.cli.grammar import all_commands
from tests.gitops.servers import make_bare

ROOT = Path(__file__).resolve().parents[2]
NAME = "an-experiment-with-a-name-that-is-as-long-as-one"
PROCESS = "a-process-of-forty-characters-or-so-it-i"
SPEC = f"""\
name: {NAME}
image: registry.example.org/a-team-with-a-long-name/an-image-with-a-long-name:and-a-long-tag
processes:
  {PROCESS}:
    cmds: ["echo {"a long last line " * 8}; sleep 300"]
    env: {{A_SETTING_WITH_A_LONG_NAME: "0"}}
    mounts: [{{claim: a-volume-with-a-long-name-of-its-own, at: /data}}]
    requests: {{cpu: 100m, memory: 64Mi}}
"""
POOLS = "pools: [{name: a-node-pool-with-a-long-name-of-its-own, machine_type: e2-standard-8, max_nodes: 4}]\n"
# The command line for each verb that prints a table, in this order.
TYPED = {
    "ls": ["ls"],
    "ps": ["ps", NAME],
    "status": ["status"],
    "top": ["top", NAME, "--once"],
    "events": ["events", NAME],
    "collect": ["collect", NAME, "--to", "here"],
    "restart": ["restart", NAME],
    "local history": ["local", "history"],
    "local gc": ["local", "gc", "--dry-run", "--keep", "0"],
    "plan": ["plan", "x.yaml", "--pools", "pools.yaml"],
    "plan --explain": ["plan", "x.yaml", "--pools", "pools.yaml", "--explain", PROCESS],
    "sweep": ["sweep", "x.yaml", "--grid", "a_setting_with_a_long_name=1..3", "--dry-run"],
    "config": ["config"],
    "history": ["history", NAME, "--env", "an-environment-with-a-long-name"],
    "import runopts": ["import", "runopts"],
    "catalog import": ["catalog", "import", "pools.yaml"],
    "catalog show": ["catalog", "show", "n1-standard-8"],
    "catalog search": ["catalog", "search", "n1-standard"],
    "describe": ["describe", NAME],
    "rm": ["rm", NAME, "--dry-run"],
    "push": ["push", f"dist/{NAME}-0.1.0.tgz", "a-folder-with-a-long-name/" * 4],
    "down": ["down", NAME],
    "local volumes": ["local", "volumes"],
}
# Tables of `catalog show` and `restart`; doctor wraps its texts.
ALIKE = {"catalog refresh", "doctor", "stop", "start", "scale"}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the tables that are printed while stdout is a terminal of 80 columns."""
    made: list[str] = []
    plain = output.format_table

    def kept(*args: Any, **options: Any) -> str:
        text = plain(*args, **options)
        made.append(text)
        return text

    monkeypatch.setattr(output, "format_table", kept)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    yield made
    main(["down", NAME])


def test_the_verbs_that_print_tables_are_those_that_leave_out_headers() -> None:
    verbs = {" ".join(command.words) for command in all_commands() if "--no-headers" in command.flags}
    assert verbs == (TYPED.keys() | ALIKE) - {"describe", "events", "plan --explain"}


def test_no_table_is_wider_than_the_terminal(
    tables: list[str],
    tmp_path: Path,
    private_places: Path,
    need_tool: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need_tool("tmux")
    monkeypatch.chdir(tmp_path)
    repository = make_bare(tmp_path / "charts.git")
    env = "an-environment-with-a-long-name"
    settings = {"team": "a-team-with-a-long-name", "environments": {env: {"namespace": "a-namespace-with-a-long-name"}}}
    author = "Ann <ann@example.org>"
    Path(".symph.yaml").write_text(json.dumps({**settings, "repository": {"url": str(repository), "author": author}}))
    Path("x.yaml").write_text(SPEC)
    Path("pools.yaml").write_text(POOLS)
    for words in (
        ["package", "x.yaml"],
        ["publish", "x.yaml", "--env", env],
        ["up", "x.yaml"],
        ["down"],
        ["up", "x.yaml"],
    ):
        assert main(words) == 0
    wide = {}
    for title, words in TYPED.items():
        tables.clear()
        assert main(words) == 0, title
        assert tables, title
        wide[title] = [line for table in tables for line in table.splitlines() if output._width(line) > 80]
    assert {title: lines for title, lines in wide.items() if lines} == {}


def test_doctor_wraps_its_advice_instead_of_cutting_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], private_places: Path
) -> None:
    assert private_places
    monkeypatch.setattr(output, "room_of", lambda _form: 60)
    assert main(["doctor"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 60
    assert "\u2026" not in page
