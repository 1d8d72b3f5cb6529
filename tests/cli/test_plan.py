"""`symph plan`, as users run it: tables, exit codes, explanations and the picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Symph

ROOT = Path(__file__).parents[2]
POOLS = str(ROOT / "examples/pools/pools.yaml")

FITS = """\
name: rl
image: busybox:1.37.0
processes:
  learner:
    binds: params
    assign_to: {assign_to: gpu, node_pool_name: v100}
  agent:
    connects: params
    replicas: 8
    requests: {cpu: 1500m, memory: 3Gi}
"""
TOO_LARGE = FITS.replace("cpu: 1500m", 'cpu: "7.95"').replace(
    "memory: 3Gi}", "memory: 3Gi}\n    node_selector: {kind: plain}"
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """Write a spec that fits and one that does not."""
    (tmp_path / "rl.yaml").write_text(FITS)
    std8 = "{name: std8, machine_type: n1-standard-8, max_nodes: 9, zones: [us-central1-a], labels: {kind: plain}}"
    v100 = "{name: v100, machine_type: n1-highmem-8, max_nodes: 1, gpu: {type: v100, count: 1}}"
    (tmp_path / "std.yaml").write_text(f"pools: [{std8}, {v100}]\n")
    (tmp_path / "big.yaml").write_text(TOO_LARGE)


def test_a_plan_shows_pools_then_verdicts_then_the_total(symph: Symph) -> None:
    lines = symph("plan", "rl.yaml", "--pools", "std.yaml").stdout.splitlines()
    assert lines[0] == "rl fits: all 10 pods are guaranteed to schedule on 3 nodes."
    assert lines[1].split() == ["POOL", "MACHINE", "NODES", "CPU", "MEMORY", "GPU", "$/H", "WHAT"]
    assert lines[2].split()[:5] == ["std8", "n1-standard-8", "2/9", "12.0/15.0", "24.0/50.3"]
    assert "agent x8" in lines[2]
    assert lines[4] == "agent        PROVEN  the scheduler places all 8 in any order"
    assert lines[7].startswith("total 3 nodes, 87% of CPU used, $0.76/h plus the parts without a price")


def test_a_no_exits_4_with_reason_and_fix(symph: Symph) -> None:
    ended = symph("plan", "big.yaml", "--pools", "std.yaml", status=4)
    assert "NO      needs 7.95 CPU; n1-standard-8 offers 7.51 after system pods" in ended.stdout
    assert "next: request 7.51 CPU" in ended.stdout
    assert "\nerror: 1 of 3 groups cannot be scheduled" in ended.stderr


def test_a_plan_prices_what_keeps_running_after_the_run(symph: Symph, tmp_path: Path) -> None:
    gpu = "{nvidia.com/gpu: 1}"
    service = f"lifecycle: service, requests: {gpu}, limits: {gpu}"
    board = f"  board: {{command: [serve], exposes: web, replicas: 2, {service}}}\n"
    trainer = "  trainer: {command: [train], connects: params}\n  params: {lifecycle: service, binds: params}\n"
    (tmp_path / "board.yaml").write_text(f"name: rl\nimage: busybox:1.37.0\nprocesses:\n{trainer}{board}")
    v100 = "{name: v100, machine_type: n1-highmem-8, max_nodes: 4, gpu: {type: nvidia-tesla-v100, count: 1}"
    std8 = "{name: std8, machine_type: n1-standard-8, max_nodes: 9, zones: [us-central1-a]}"
    (tmp_path / "priced.yaml").write_text(f"pools: [{std8}, {v100}, zones: [us-central1-a]}}]\n")
    shown = symph("plan", "board.yaml", "--pools", "priced.yaml").stdout
    assert "keeps running after the run, until it is uninstalled: board (2 GPUs) on 2 nodes for $5.91/h\n" in shown
    plan = json.loads(symph("plan", "board.yaml", "--pools", "priced.yaml", "-o", "json").stdout)
    (use,) = (pool for pool in plan["pools"] if pool["name"] == "v100")
    left = {"processes": ["board (2 GPUs)"], "nodes": 2, "pricePerHour": use["pricePerHour"]}
    assert plan["afterRun"] == left
    packaged = symph("package", "board.yaml", "--dry-run").stdout
    assert "note     keeps running after the run, until it is uninstalled: board (2 GPUs)\n" in packaged
    ends = board.replace("exposes: web", "until: run, exposes: web")
    (tmp_path / "board.yaml").write_text(f"name: rl\nimage: busybox:1.37.0\nprocesses:\n{trainer}{ends}")
    assert "keeps running" not in symph("plan", "board.yaml", "--pools", "priced.yaml").stdout


def test_json_holds_verdicts_pools_and_decisions(symph: Symph) -> None:
    plan = json.loads(symph("plan", "rl.yaml", "--pools", "std.yaml", "-o", "json").stdout)
    assert (plan["kind"], plan["verdict"]) == ("Plan", "PROVEN")
    assert [pool["name"] for pool in plan["pools"]] == ["std8", "v100"]
    assert plan["decisions"][0]["process"] == "learner"


def test_explain_says_why_not_each_other_pool(symph: Symph) -> None:
    text = symph("plan", "rl.yaml", "--pools", POOLS, "--explain", "learner").stdout
    assert text.startswith("learner   PROVEN   asks for 7.36 CPU")
    assert "no label cloud.google.com/gke-nodepool=v100" in text


def test_explaining_an_unknown_process_is_not_found(symph: Symph) -> None:
    assert 'unknown process "x"' in symph("plan", "rl.yaml", "--pools", "std.yaml", "--explain", "x", status=8).stderr


def test_a_process_of_a_group_is_explained_by_its_pod(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text("name: g\nimage: i\ngroups: {pair: {processes: {one: {}, two: {}}}}\n")
    assert symph("plan", "g.yaml", "--pools", "std.yaml", "--explain", "two").stdout.startswith("pair   PROVEN")


def test_the_specs_own_pools_are_found_beside_it(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "rl.yaml").write_text(FITS + "placement: {pools: std.yaml}\n")
    assert "PROVEN" in symph("plan", "rl.yaml").stdout


def test_the_picture_is_whole_and_loads_nothing(symph: Symph, tmp_path: Path) -> None:
    symph("plan", "rl.yaml", "--pools", "std.yaml", "--svg", "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own text
    assert "href" not in text
    assert [path.name for path in tmp_path.glob("*.svg")] == ["p.svg"]


def test_names_cannot_break_out_of_a_picture(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text('pools: [{name: "<script>&", allocatable: {cpu: 9, memory: 9Gi}, nodes: 9}]\n')
    (tmp_path / "y.yaml").write_text("name: rl\nimage: i\nprocesses: {p: {}}\n")
    symph("plan", "y.yaml", "--pools", "x.yaml", "--svg", "p.svg")
    assert "<script>" not in (tmp_path / "p.svg").read_text()


def test_several_cluster_files_are_one_cluster(symph: Symph) -> None:
    live = str(ROOT / "examples/pools/kubectl-nodes.json")
    plan = json.loads(symph("plan", "rl.yaml", "--pools", "std.yaml", "--pools", live, "-o", "json").stdout)
    assert plan["source"].count(" + ") == 1


def test_a_plan_names_the_command_that_shows_moves(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / ".symph.yaml").write_text("environments: {dev: {namespace: rl}}\n")
    said = symph("plan", "rl.yaml", "--pools", "std.yaml").stderr
    assert "to see which objects of rl move, restart or end: symph diff SPEC --env dev" in said
