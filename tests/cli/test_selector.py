"""`-l` selects by labels in kubectl's syntax, here as on a cluster."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.cli.options import selector

LABELS = {"team": "rl", "example.org/stage": "new"}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("team=rl", True),
        ("team==rl", True),
        ("team=ml", False),
        ("team!=ml", True),
        ("team", True),
        ("!team", False),
        ("gpu", False),
        ("!gpu, team=rl", True),
        ("example.org/stage=new,team!=rl", False),
        ("gpu!=yes", True),
    ],
)
def test_a_selector_is_as_kubectl_reads_it(text: str, fits: bool) -> None:
    assert selector(text)(LABELS) is fits


@pytest.mark.parametrize("text", ["", "a=b,", "!a=b", "a in (b)", "=b"])
def test_an_invalid_selector_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        selector(text)
    assert main(["ls", "-l", text]) == 2


def test_ls_and_rm_choose_runs_by_labels(
    tmp_path: Path, need_tool: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    need_tool("tmux")
    spec = tmp_path / "rl.yaml"
    spec.write_text("name: rl\nlabels: {team: rl}\nprocesses: {a: {cmds: [sleep 300]}}\n")
    assert main(["up", str(spec)]) == 0
    try:
        capsys.readouterr()
        assert main(["ls", "-l", "team=rl", "-o", "json"]) == 0
        (item,) = json.loads(capsys.readouterr().out)["items"]
        assert (item["name"], item["labels"]) == ("rl", {"team": "rl"})
        assert main(["ls", "-l", "team!=rl", "-o", "name"]) == 0
        assert capsys.readouterr().out == ""
        assert main(["status", "-l", "team=rl", "-o", "name"]) == 0
        assert main(["status", "-l", "team!=rl", "-o", "name"]) == 0
        assert capsys.readouterr().out == "rl\n"
        assert main(["rm", "-l", "team!=rl", "--yes"]) == 8
        assert main(["rm", "rl", "-l", "team=rl", "--yes"]) == 2
        assert main(["rm", "-l", "team=rl", "--yes"]) == 0
        capsys.readouterr()
        assert main(["ls", "-a", "-o", "name"]) == 0
        assert capsys.readouterr().out == ""
    finally:
        main(["down", "rl"])
