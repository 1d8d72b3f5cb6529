"""GPUs of runs in real tmux: exclusive across runs, released whenever a run ends. The GPUs are simulated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.errors import Conflict, NotFound, PlacementError
from symphony_charts.local import up as local_run
from symphony_charts.local.machine.gpus import look_at_gpus
from symphony_charts.local.machine.health import examine
from symphony_charts.local.runs import Run, find_run, live_runs
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.nvidia import gpu, install
from tests.local.runs import log_of, python, start, supervisor_pid, until

pytestmark = pytest.mark.usefixtures("here", "gpus")

SHOW = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'unset'), flush=True); input()"
TRAIN = python(SHOW, gpus=1)


@pytest.fixture
def gpus(private_places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(private_places, monkeypatch)


def seen_by(run: Run, name: str) -> str:
    until(lambda: "\n" in log_of(run, name))
    return log_of(run, name).strip()


def test_each_process_has_gpus_of_its_own_and_others_see_none(tmp_path: Path) -> None:
    processes = {"a": python(SHOW, gpus=2), "b": TRAIN, "c": python(SHOW)}
    run = start(tmp_path, processes=processes)
    assert [seen_by(run, name) for name in "abc"] == [f"{gpu(0)},{gpu(1)}", gpu(2), ""]


def test_top_says_how_busy_the_gpus_of_each_process_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = start(tmp_path, processes={"a": python(SHOW, gpus=3), "odd": TRAIN, "none": python(SHOW)})
    for name in ("a", "odd", "none"):
        seen_by(run, name)
    assert main(["top", "exp", "--once", "-o", "json"]) == 0
    used = {item["name"]: (item["gpu"], item["gpuMemory"]) for item in json.loads(capsys.readouterr().out)["items"]}
    assert used == {"a": (0.5, 3072 << 20), "odd": (None, 12 << 20), "none": (None, None)}
    assert main(["top", "exp", "--once"]) == 0
    assert "50% 3.0 GiB" in capsys.readouterr().out


def test_a_second_run_gets_what_the_first_left(tmp_path: Path) -> None:
    start(tmp_path, "one", processes={"a": python(SHOW, gpus=3)})
    assert seen_by(start(tmp_path, "two", processes={"a": TRAIN}), "a") == gpu(3)


def test_too_few_free_gpus_are_refused_by_the_names_of_their_holders_before_anything_starts(tmp_path: Path) -> None:
    start(tmp_path, "one", processes={"learner": python(SHOW, gpus=3)})
    with pytest.raises(Conflict) as caught:
        start(tmp_path, "two", processes={"a": python(SHOW, gpus=2)})
    assert 'experiment "two" requests 2 GPUs (a 2); 1 is free of 4 GPUs here' in str(caught.value)
    assert 'GPU 0 is in use by experiment "one" (learner/learner)' in str(caught.value)
    assert "--share-gpus" in caught.value.next
    with pytest.raises(NotFound):
        find_run("two")


def test_more_gpus_than_the_machine_has_are_refused_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match=r"requests 5 GPUs \(a 5\); this machine has 4"):
        start(tmp_path, processes={"a": python(SHOW, gpus=5)})


def test_only_what_the_caller_may_see_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    run = start(tmp_path, processes={"a": TRAIN, "b": TRAIN})
    assert [seen_by(run, name) for name in "ab"] == [gpu(3), gpu(1)]
    with pytest.raises(PlacementError, match="CUDA_VISIBLE_DEVICES allows 2 GPUs"):
        start(tmp_path, "two", processes={"a": python(SHOW, gpus=3)})


def test_gpus_are_free_again_when_the_run_has_ended(tmp_path: Path) -> None:
    local_run.down(start(tmp_path, "one", processes={"a": python(SHOW, gpus=4)}))
    assert seen_by(start(tmp_path, "two", processes={"a": TRAIN}), "a") == gpu(0)


def test_a_run_that_could_not_start_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="local runs use no images"):
        start(tmp_path, "one", image="i", processes={"a": {"gpus": 4}})
    assert seen_by(start(tmp_path, "two", processes={"a": TRAIN}), "a") == gpu(0)


def test_after_the_death_of_a_supervisor_its_run_keeps_its_gpus(tmp_path: Path) -> None:
    run = start(tmp_path, "one", processes={"a": python(SHOW, gpus=4)})
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    with pytest.raises(Conflict, match='in use by experiment "one"'):
        start(tmp_path, "two", processes={"a": TRAIN})


@pytest.mark.parametrize("name", ["state.json", "plan.json"])
def test_a_damaged_file_frees_no_gpus(name: str, tmp_path: Path) -> None:
    run = start(tmp_path, "one", processes={"a": python(SHOW, gpus=4)})
    (run.folder / name).write_text("{")
    with pytest.raises(Conflict, match='in use by experiment "one"'):
        start(tmp_path, "two", processes={"a": TRAIN})


def test_sharing_deals_the_gpus_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    first, second = share(tmp_path, "one", 3), share(tmp_path, "two", 1)
    assert [seen_by(first, f"a-{number}") for number in range(3)] == [gpu(0), gpu(1), gpu(0)]
    assert seen_by(second, "a") == gpu(0)
    with pytest.raises(Conflict, match=r'in use by experiment "one" .* and experiment "two"'):
        start(tmp_path, "three", processes={"a": TRAIN})


def test_sharing_with_a_run_that_did_not_ask_for_it_is_told(tmp_path: Path) -> None:
    start(tmp_path, "one", processes={"a": python(SHOW, gpus=4)})
    run = share(tmp_path, "two", 1)
    assert "shares GPUs with runs that did not agree to share" in run.plan().notes[-1]
    assert seen_by(run, "a") == gpu(0)


def share(folder: Path, name: str, replicas: int) -> Run:
    experiment = from_data({"name": name, "processes": {"a": {**TRAIN, "replicas": replicas}}})
    run = local_run.up(experiment, allocate(experiment), folder=folder, share_gpus=True)
    assert run is not None
    return run


def test_up_again_keeps_the_gpus_and_another_number_of_them_needs_a_new_run(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python(SHOW, gpus=2)})
    again = start(tmp_path, processes={"a": python(SHOW, gpus=2, env={"X": "1"})})
    assert again.plan().processes[0].gpus == (gpu(0), gpu(1)) == run.plan().processes[0].gpus
    with pytest.raises(Conflict, match="another number of GPUs"):
        start(tmp_path, processes={"a": python(SHOW, gpus=3)})


def test_looking_takes_nothing(tmp_path: Path) -> None:
    experiment = from_data({"name": "x", "processes": {"a": python(SHOW, gpus=4)}})
    assert look_at_gpus(experiment).ids == look_at_gpus(experiment).ids != {}
    start(tmp_path, "one", processes={"a": python(SHOW, gpus=4)})
    assert look_at_gpus(experiment).ids == {}
    assert 'in use by experiment "one"' in look_at_gpus(experiment).notes[0]


def test_the_gpus_of_a_process_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(tmp_path, processes={"a": python(SHOW, gpus=2), "b": python(SHOW)})
    assert main(["describe", "exp"]) == 0
    assert f"{gpu(0)[:12]},{gpu(1)[:12]}" in capsys.readouterr().out
    assert main(["p", "exp", "-o", "wide"]) == 0
    assert f"{gpu(0)[:12]},{gpu(1)[:12]}" in capsys.readouterr().out
    assert main(["p", "exp", "-o", "json"]) == 0
    assert [item["gpus"] for item in json.loads(capsys.readouterr().out)["items"]] == [[gpu(0), gpu(1)], []]


def test_a_dry_run_tells_the_gpus_or_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"name": "two", "processes": {"a": python(SHOW, gpus=2)}}))
    assert main(["up", str(spec), "--dry-run"]) == 0
    assert f"(GPUs {gpu(0)}, {gpu(1)})" in capsys.readouterr().out
    start(tmp_path, "one", processes={"a": python(SHOW, gpus=3)})
    assert main(["up", str(spec), "--dry-run"]) == 7
    assert 'in use by experiment "one"' in capsys.readouterr().err
    assert main(["up", str(spec), "--share-gpus"]) == 0


def test_the_doctor_counts_gpus_and_those_that_are_held(tmp_path: Path) -> None:
    start(tmp_path, processes={"a": python(SHOW, gpus=3)})
    found = {finding.name: finding for finding in examine()}
    assert found["gpus"].detail == "4 visible, 3 used by runs"


def test_a_replay_shares_where_the_run_did(tmp_path: Path) -> None:
    run = share(tmp_path, "two", 1)
    local_run.down(run)
    assert main(["local", "replay", "two"]) == 0
    assert find_run("two").plan().is_sharing_gpus is True


def test_runs_that_start_at_the_same_moment_never_get_the_same_gpu(tmp_path: Path) -> None:
    main_words = [sys.executable, "-c", "import sys; from symphony_charts.cli.main import main; sys.exit(main())"]
    started = []
    for number in range(7):
        spec = tmp_path / f"{number}.json"
        spec.write_text(json.dumps({"name": f"e{number}", "processes": {"a": TRAIN}}))
        started.append(subprocess.Popen([*main_words, "up", str(spec)], stderr=subprocess.DEVNULL))
    statuses = sorted(one.wait(timeout=60) for one in started)
    assert statuses == [0] * 4 + [7] * 3
    given = [run.plan().processes[0].gpus for run in live_runs()]
    assert sorted(given) == [(gpu(number),) for number in range(4)]
