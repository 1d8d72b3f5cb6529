"""``torchx run -s symph`` and the commands around it, under both of TorchX's plugin mechanisms."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from symphony_charts.formats.yaml_read import load
from symphony_charts.importers.input_file import read
from symphony_charts.integrations.torchx.importer import import_torchx
from symphony_charts.spec.data import from_data
from tests.torchx_scheduler.conftest import Torchx

OWN = ["local_docker", "local_cwd", "slurm", "kubernetes"]
ONLY_RELEASE = ["kubernetes_mcad", "aws_batch", "aws_sagemaker", "gcp_batch", "ray", "lsf"]
FACTORIES = "from torchx.schedulers import get_scheduler_factories as f; print(*f())"


def schedulers(torchx: Torchx, source: str = "") -> list[str]:
    """Return the schedulers that TorchX finds, the default one first."""
    env = {**os.environ, "PYTHONPATH": torchx.path} | ({"TORCHX_PLUGINS_SOURCE": source} if source else {})
    argv = [sys.executable, "-c", FACTORIES]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert "symph" not in done.stderr
    return done.stdout.split()


def test_the_release_keeps_all_of_its_own_schedulers(release: Torchx) -> None:
    assert schedulers(release) == [*OWN, *ONLY_RELEASE, "symph"]


def test_the_package_itself_declares_no_schedulers() -> None:
    groups = {point.group for point in metadata.distribution("symphony-charts").entry_points}
    assert groups == {"console_scripts"}


def test_newer_releases_list_their_own_schedulers_first_and_then_ours(nightly: Torchx) -> None:
    assert schedulers(nightly, "1") == [*OWN, "kubernetes_mcad", "symph"]


def test_the_entry_points_for_the_release_are_removed_for_a_newer_one(
    release: Torchx, nightly: Torchx, tmp_path: Path
) -> None:
    code = (
        "import sys, pathlib\nfrom symphony_charts.torchx_scheduler.__main__ import main\n"
        "print(main(pathlib.Path(sys.argv[1])))"
    )
    for torchx, count in ((release, 1), (release, 1), (nightly, 0)):
        env = {**os.environ, "PYTHONPATH": torchx.path}
        argv = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
        assert "symph" in done.stdout
        found = list(metadata.distributions(name="symphony-charts-torchx", path=[str(tmp_path)]))
        assert [[point.name for point in item.entry_points] for item in found] == [
            [*OWN, *ONLY_RELEASE, "symph"]
        ] * count


@pytest.mark.parametrize(("source", "is_found"), [("0", False), ("1", True), ("2", True), ("3", True)])
def test_each_mechanism_finds_ours_and_both_together_do_not_warn(nightly: Torchx, source: str, is_found: bool) -> None:
    assert ("symph" in schedulers(nightly, source)) == is_found


def test_the_dry_run_is_an_experiment_that_reads_back(torchx: Torchx) -> None:
    echo = from_data(load(torchx.request("utils.echo", "--msg", "hello"))).processes["echo"]
    assert (echo.command, echo.args) == (["echo"], ["hello"])


def test_the_dry_run_is_the_same_each_time_and_asks_nobody(torchx: Torchx) -> None:
    torchx.env = {"KUBECONFIG": "/nonexistent", "DOCKER_HOST": "tcp://127.0.0.1:1"}
    words = ("-cfg", "on=kube,namespace=ml", "dist.ddp", "-j", "2x2", "--script", "main.py")
    assert torchx.request(*words) == torchx.request(*words) != ""


def test_the_nightly_gives_the_request_as_json(nightly: Torchx) -> None:
    done = nightly("run", "-s", "symph", "-cfg", "on=kube", "--dryrun", "--json", "utils.echo")
    answer = json.loads(done.stdout)
    assert answer["request"]["experiment"]["name"] == "echo"
    assert {item["kind"] for item in answer["request"]["objects"]} >= {"Job"}
    imported = import_torchx(read(done.stdout.encode(), "dryrun.json")).experiment
    assert imported.processes["echo"].command == ["echo"]


def test_runopts_lists_every_option_with_type_and_default(torchx: Torchx) -> None:
    listed = torchx("runopts", "symph").stdout
    wanted = ("on=ON (str, tmux)", "namespace=NAMESPACE (str, None)", "priority=PRIORITY (int, None)")
    assert [text for text in (*wanted, "reserve=RESERVE (bool, False)") if text not in listed] == []


def test_wrong_options_are_refused_in_words_and_all_at_once_before_anything_starts(torchx: Torchx) -> None:
    unknown = torchx("run", "-s", "symph", "-cfg", "onn=kube", "utils.echo", status=1).stderr
    assert re.search(r"[Uu]nknown run option.*onn", unknown, re.DOTALL)
    done = torchx("run", "-s", "symph", "-cfg", "on=moon,compat=slurm", "utils.echo", status=1)
    assert re.search(
        r'"moon" is not a value of `on`\n +at: +cfg\.on\n +next: use one of tmux, kube, chart', done.stderr
    )
    assert '"slurm" is not a value of `compat`' in done.stderr
    assert "Traceback" not in done.stderr


def test_mcad_is_reached_by_the_version_of_its_app_wrappers(torchx: Torchx) -> None:
    request = torchx.request("-cfg", "on=kube,appwrapper_version=v1beta1,priority=5", "utils.echo")
    (wrapper,) = [item for item in yaml.safe_load_all(request) if item["kind"] == "AppWrapper"]
    assert (wrapper["apiVersion"], wrapper["spec"]["priority"]) == ("workload.codeflare.dev/v1beta1", 5)


@pytest.mark.parametrize("source", ["1", "2", "3"])
def test_the_scheduler_that_newer_releases_dropped_is_ours_there(nightly: Torchx, source: str) -> None:
    nightly.env = {"TORCHX_PLUGINS_SOURCE": source}
    words = ("run", "-s", "kubernetes_mcad", "-cfg", "namespace=ml,priority=5", "--dryrun", "utils.echo")
    request = nightly(*words).stdout.partition("=== SCHEDULER REQUEST ===\n")[2]
    (wrapper,) = [item for item in yaml.safe_load_all(request) if item["kind"] == "AppWrapper"]
    assert (wrapper["apiVersion"], wrapper["spec"]["priority"]) == ("workload.codeflare.dev/v1beta1", 5)
    assert wrapper["metadata"]["namespace"] == "ml"


def test_the_release_keeps_its_own_scheduler_of_that_name(release: Torchx) -> None:
    done = release("run", "-s", "kubernetes_mcad", "-cfg", "namespace=ml", "--workspace", "", "--dryrun", "utils.echo")
    assert "torchx.pytorch.org/replica-id" in done.stdout


@pytest.mark.usefixtures("here")
def test_an_application_runs_here_to_its_end_and_prints_its_log(torchx: Torchx) -> None:
    done = torchx("run", "-s", "symph", "--wait", "--log", "utils.sh", "sh", "-c", "echo it is $((40 + 2))")
    assert done.stdout.strip() == "symph://torchx/sh"
    assert "sh/0 it is 42" in done.stderr
    assert "State: SUCCEEDED" in torchx("status", "symph://torchx/sh").stdout
    assert "it is 42" in torchx("log", "symph://torchx/sh").stdout


@pytest.mark.usefixtures("here")
def test_a_second_run_is_another_application_and_can_be_cancelled_alone(nightly: Torchx) -> None:
    handles = [nightly("run", "-s", "symph", "utils.sh", "sleep", "60").stdout.strip() for _ in range(2)]
    assert handles == ["symph://torchx/sh", "symph://torchx/sh-2"]
    nightly("cancel", handles[1])
    listed = nightly("list", "-s", "symph").stdout
    assert re.search(r"symph://torchx/sh +sh +RUNNING", listed)
    assert re.search(r"symph://torchx/sh-2 +sh-2 +CANCELLED", listed)
    nightly("delete", handles[1])
    assert handles[1] not in nightly("list", "-s", "symph").stdout
    assert handles[1].rpartition("/")[2] in nightly("status", handles[1], status=1).stderr


@pytest.mark.usefixtures("here")
def test_an_app_id_that_is_taken_is_refused(release: Torchx) -> None:
    words = ("run", "-s", "symph", "-cfg", "app_id=mine", "utils.sh", "sleep", "60")
    assert release(*words).stdout.strip() == "symph://torchx/mine"
    refused = release(*words, status=1).stderr
    assert 'experiment "mine" is already running' in refused
    assert "Traceback" not in refused


def test_a_chart_is_written_with_the_experiment_beside_it(release: Torchx) -> None:
    done = release("run", "-s", "symph", "-cfg", "on=chart,dest=charts", "utils.echo")
    assert done.stdout.strip() == "symph://torchx/chart::echo"
    written = {path.name for path in (release.folder / "charts").iterdir()}
    assert written == {"echo", "echo-0.1.0.tgz", "echo.yaml", "echo.lock.yaml"}
    release("run", "-s", "symph", "-cfg", "on=chart,dest=charts", "utils.echo")
    assert {path.name for path in (release.folder / "charts").iterdir()} == written


def test_settings_of_a_project_are_taken_from_its_torchxconfig(torchx: Torchx) -> None:
    (torchx.folder / ".torchxconfig").write_text("[symph]\non = kube\nnamespace = ml\nqueue = gold\ngang = kueue\n")
    request = torchx.request("utils.echo")
    assert "namespace: ml" in request
    assert "kueue.x-k8s.io/queue-name: gold" in request
