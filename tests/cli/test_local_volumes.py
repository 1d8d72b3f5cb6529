"""Claims and NFS mounts outlive runs on one machine: they are reported, listed, and removed on request only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.local.plan.mounts import DATA
from symphony_charts.local.runs import live_runs
from symphony_charts.system import remover
from symphony_charts.system.user_folders import state_dir

SPEC = """
name: exp
volumes: {{ckpt: {{type: claim, claim: c}}, set: {{type: nfs, server: s, path: /x}}, scratch: {{type: empty_dir}}}}
processes:
  a:
    cmds: ["ls {at}/ckpt {at}/scratch", "echo more >>{at}/ckpt/model", "echo 1 >{at}/set/x", "echo >{at}/scratch/gone"]
    local: {{tty: false}}
    mounts:
      - {{volume: ckpt, at: {at}/ckpt}}
      - {{volume: set, at: {at}/set}}
      - {{volume: scratch, at: {at}/scratch}}
"""
FOREVER = """
name: exp
volumes: {{ckpt: {{type: claim, claim: c}}}}
processes: {{a: {{command: [sleep, "300"], grace_period: 1, mounts: [{{volume: ckpt, at: {at}/ckpt}}]}}}}
"""


@pytest.fixture
def said(private_places: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line; return status, stdout and stderr."""

    def symph(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = SymphonyParser().main(words)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return symph


def made(experiment: str, name: str, content: str = "weights") -> Path:
    """Create a volume as a run leaves it."""
    folder = remover.make(state_dir() / "claims", experiment, name) / DATA
    folder.mkdir()
    (folder / "model").write_text(content)
    return folder


def spec(folder: Path, text: str) -> str:
    path = folder / "experiment.yaml"
    path.write_text(text.format(at=folder))
    return str(path)


@pytest.mark.usefixtures("here")
def test_files_in_a_claim_remain_for_the_next_run(said: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = spec(tmp_path, SPEC)
    claims = state_dir() / "claims" / "exp"
    status, _, errors = said("up", path, "--wait")
    assert (status, "kept: ckpt (5 B) in" in errors, str(claims / "set" / DATA) in errors) == (0, True, True)
    assert "scratch" not in errors
    assert said("up", path, "--wait")[0] == 0
    assert (claims / "ckpt" / DATA / "model").read_text() == "more\nmore\n"
    log = said("logs", "a", "exp")[1]
    assert ("model" in log, "gone" in log) == (True, False)
    # The folders that the volumes were mounted at are unchanged.
    assert [entry.name for entry in tmp_path.iterdir()] == ["experiment.yaml"]
    items = json.loads(said("local", "volumes", "-o", "json")[1])["items"]
    assert [(item["name"], item["bytes"], item["usedBy"]) for item in items] == [
        ("exp/ckpt", 10, []),
        ("exp/set", 2, []),
    ]
    status, _, errors = said("delete", "exp", "--yes")
    assert (status, "kept: volumes exp/ckpt, exp/set" in errors) == (0, True)
    assert (claims / "ckpt" / DATA / "model").exists()


@pytest.mark.usefixtures("here")
def test_a_volume_in_use_is_not_removed_and_says_by_whom(
    said: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    assert said("up", spec(tmp_path, FOREVER))[0] == 0
    assert "by exp" in said("local", "volumes")[1]
    status, _, errors = said("local", "volumes", "--remove", "ckpt", "--yes")
    assert (status, "exp/ckpt (by exp)" in errors, "next: symph down exp" in errors) == (7, True, True)
    assert (state_dir() / "claims" / "exp" / "ckpt" / DATA).is_dir()
    status, _, errors = said("delete", "exp", "--volumes", "--yes")
    assert (status, (state_dir() / "claims" / "exp").exists()) == (0, False)


@pytest.mark.usefixtures("here")
def test_a_damaged_plan_keeps_its_volumes_and_other_experiments_end(
    said: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    for name in ("bad", "good"):
        assert said("up", spec(tmp_path, FOREVER.replace("exp", name)))[0] == 0
    [plan] = (state_dir() / "local" / "bad").glob("*/plan.json")
    plan.write_text("[")
    used = json.loads(said("local", "volumes", "-o", "json")[1])["items"]
    assert {item["volume"]: item["usedBy"] for item in used if item["experiment"] == "bad"} == {"ckpt": ["bad"]}
    assert said("local", "volumes", "--remove", "bad/ckpt", "--yes")[0] == 7
    for name in ("good", "bad"):
        status, _, errors = said("down", name)
        assert (status, "kept: ckpt" in errors) == (0, True), errors
    assert live_runs() == []


def test_volumes_are_removed_by_name_after_asking(said: Callable[..., tuple[int, str, str]]) -> None:
    one, two, three = made("rl", "ckpt"), made("rl", "set"), made("other", "ckpt")
    assert said("local", "volumes", "-o", "name")[1].split() == ["other/ckpt", "rl/ckpt", "rl/set"]
    assert said("local", "volumes", "--remove", "set")[0] == 2
    status, output, errors = said("local", "volumes", "--remove", "set", "--dry-run")
    assert (status, "rl" in output, "nothing was changed" in errors, two.is_dir()) == (0, True, True, True)
    assert said("local", "volumes", "--remove", "set", "rl/ckpt", "--yes")[0] == 0
    assert [folder.exists() for folder in (one, two, three)] == [False, False, True]
    assert not (state_dir() / "claims" / "rl").exists()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["nope", "rl/no"], "unknown volumes: nope, rl/no"),
        (["ckpt"], "several experiments have a volume ckpt"),
        (["../rl"], "unknown volumes: ../rl"),
    ],
)
def test_names_that_fit_none_or_several_remove_nothing(
    said: Callable[..., tuple[int, str, str]], names: list[str], words: str
) -> None:
    folders = [made("rl", "ckpt"), made("other", "ckpt")]
    status, _, errors = said("local", "volumes", "--yes", "--remove", *names)
    assert (status, words in errors, ": other/ckpt, rl/ckpt" in errors) == (8, True, True)
    assert all(folder.is_dir() for folder in folders)


def test_a_folder_that_is_no_volume_is_neither_listed_nor_removed(
    said: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    made("rl", "ckpt")
    foreign = state_dir() / "claims" / "rl" / "mine"
    foreign.mkdir()
    (state_dir() / "claims" / "rl" / "link").symlink_to(tmp_path)
    assert said("local", "volumes", "-o", "name")[1].split() == ["rl/ckpt"]
    assert said("local", "volumes", "--remove", "mine", "--yes")[0] == 8
    assert foreign.is_dir()


def test_volumes_of_a_cluster_are_not_meant(said: Callable[..., tuple[int, str, str]]) -> None:
    from symphony_charts.cli.rm import delete_all

    class Cluster:
        backend = "kube"

    args: Any = type("Args", (), {"volumes": True})()
    watcher: Any = Cluster()
    with pytest.raises(Exception, match="this machine"):
        delete_all(args, watcher, ["rl"])
