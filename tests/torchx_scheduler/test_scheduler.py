"""Every method of the scheduler, by TorchX's own interface, on real tmux."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("torchx")

from torchx.schedulers.api import Stream
from torchx.specs import AppDef, AppState, BindMount, Resource, RetryPolicy, Role

from symphony_charts.integrations.torchx.request import AppId, SymphRequest, parse
from symphony_charts.integrations.torchx.scheduler import Refused, SymphScheduler, create_scheduler
from tests.waiting import eventually

END_S = 30.0


@pytest.fixture
def scheduler(here: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SymphScheduler]:
    """Yield a scheduler whose working directory is empty."""
    monkeypatch.chdir(tmp_path)
    made = create_scheduler("test", unknown="x")
    yield made
    made.close()
    made.close()


def app(script: str = "echo hello", *, replicas: int = 1, name: str = "train", role: str = "worker") -> AppDef:
    """Return an application of one role that runs a script."""
    worker = Role(name=role, image="busybox:1", entrypoint="sh", args=["-c", script], num_replicas=replicas)
    return AppDef(name=name, roles=[worker])


def submitted(scheduler: SymphScheduler, made: AppDef, **cfg: object) -> str:
    return str(scheduler.schedule(scheduler.submit_dryrun(made, cfg)))


def ended(scheduler: SymphScheduler, app_id: str) -> AppState:
    """Wait for the end of the application; return its state."""

    def final_state() -> AppState | None:
        answer = scheduler.describe(app_id)
        assert answer is not None
        return answer.state if answer.state in (AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED) else None

    return eventually(final_state, END_S, f"{app_id} has not ended")


def test_the_dry_run_starts_nothing_and_carries_app_and_options(scheduler: SymphScheduler) -> None:
    made = app()
    info = scheduler.submit_dryrun(made, {"app_id": "mine"})
    assert isinstance(info.request, SymphRequest)
    assert info._app is made
    assert info._cfg["on"] == "tmux"
    assert "name: mine" in str(info)
    assert scheduler.list() == []


def test_describe_names_every_replica_of_every_role(scheduler: SymphScheduler) -> None:
    made = app("exit 3", replicas=2)
    made.roles.append(Role(name="Reader_1", image="busybox:1", entrypoint="sleep", args=["60"]))
    app_id = submitted(scheduler, made)
    assert ended(scheduler, app_id) is AppState.FAILED
    found = scheduler.describe(app_id)
    assert found is not None
    assert [(role.name, role.num_replicas) for role in found.roles] == [("worker", 2), ("Reader_1", 1)]
    states = {one.role: {each.id: each.state for each in one.replicas} for one in found.roles_statuses}
    assert {role: list(replicas) for role, replicas in states.items()} == {"worker": [0, 1], "Reader_1": [0]}
    assert "failed 3" in found.msg
    # The error as TorchX reads it.
    failed = next(one for one in found.roles_statuses[0].replicas if one.state is AppState.FAILED)
    message = json.loads(failed.structured_error_msg)["message"]
    assert (message["errorCode"], message["message"][:8]) == ("3", "failed 3")
    assert int(message["extraInfo"]["timestamp"]) > 0


def test_describe_tells_roles_as_their_appdef_does(scheduler: SymphScheduler) -> None:
    made = app("echo $0 ${replica_id} of ${app_id}", replicas=2, role="Work_1")
    role = made.roles[0]
    role.env, role.port_map, role.resource = {"A": "b"}, {"c10d": 29500}, Resource(cpu=2, gpu=0, memMB=1024)
    role.mounts = [BindMount(src_path="/usr", dst_path="/mnt/usr", read_only=True)]
    found = scheduler.describe(submitted(scheduler, made))
    assert found is not None
    (told,) = found.roles
    assert (told.name, told.image, told.entrypoint) == ("Work_1", "busybox:1", "sh")
    assert (told.args, told.env) == (["-c", "echo $0 ${replica_id} of ${app_id}"], {"A": "b"})
    assert (told.port_map, told.resource, told.mounts) == (role.port_map, role.resource, role.mounts)


def test_every_submission_has_an_app_id_of_its_own_that_all_roles_share(scheduler: SymphScheduler) -> None:
    made = app("echo ${app_id}", replicas=2)
    said = []
    for _ in range(2):
        app_id = submitted(scheduler, made)
        ended(scheduler, app_id)
        said.append({line for k in (0, 1) for line in scheduler.log_iter(app_id, "worker", k)})
        scheduler._delete_existing(app_id)
    assert [len(ids) for ids in said] == [1, 1]
    assert said[0] != said[1]


def test_what_is_not_there_is_no_application(scheduler: SymphScheduler) -> None:
    assert scheduler.describe("nobody") is None
    assert not scheduler.exists("nobody")
    scheduler.cancel("nobody")


def test_cancel_ends_it_and_keeps_its_log_and_can_be_said_twice(scheduler: SymphScheduler) -> None:
    app_id = submitted(scheduler, app("echo here; exec sleep 60"))
    _wait_for_line(scheduler, app_id)
    scheduler.cancel(app_id)
    assert ended(scheduler, app_id) is AppState.CANCELLED
    scheduler.cancel(app_id)
    assert list(scheduler.log_iter(app_id, "worker")) == ["here\n"]


def test_delete_leaves_nothing(scheduler: SymphScheduler) -> None:
    app_id = submitted(scheduler, app("exec sleep 60"))
    scheduler._delete_existing(app_id)
    assert not scheduler.exists(app_id)
    assert scheduler.list() == []


def test_list_has_what_runs_and_what_has_ended(scheduler: SymphScheduler) -> None:
    first = submitted(scheduler, app("exit 0"))
    ended(scheduler, first)
    second = submitted(scheduler, app("exec sleep 60"))
    listed = {one.app_id: one.state for one in scheduler.list()}
    assert listed[first] is AppState.SUCCEEDED
    assert listed[second] in (AppState.PENDING, AppState.RUNNING)


def test_log_lines_of_one_replica_come_as_they_were_written(scheduler: SymphScheduler) -> None:
    made = app("printf 'a  b\\n'; echo replica $SYMPH_INDEX; echo end", replicas=2, role="My_Role")
    app_id = submitted(scheduler, made)
    ended(scheduler, app_id)
    assert list(scheduler.log_iter(app_id, "My_Role", 1)) == ["a  b\n", "replica 1\n", "end\n"]
    assert list(scheduler.log_iter(app_id, "My_Role", 0, regex="repl")) == ["replica 0\n"]
    assert list(scheduler.log_iter(app_id, "My_Role", streams=Stream.COMBINED))[-1] == "end\n"
    with pytest.raises(ValueError, match="only the combined stream"):
        scheduler.log_iter(app_id, "My_Role", streams=Stream.STDERR)


def test_following_a_log_ends_with_the_application(scheduler: SymphScheduler) -> None:
    app_id = submitted(scheduler, app("for i in 1 2 3; do echo $i; sleep 0.1; done"))
    assert list(scheduler.log_iter(app_id, "worker", should_tail=True)) == ["1\n", "2\n", "3\n"]


def test_times_bound_a_log(scheduler: SymphScheduler) -> None:
    app_id = submitted(scheduler, app("echo early; sleep 0.6; echo late"))
    ended(scheduler, app_id)
    lines = list(scheduler.log_iter(app_id, "worker"))
    assert lines == ["early\n", "late\n"]
    tomorrow = datetime.now().astimezone() + timedelta(days=1)
    assert list(scheduler.log_iter(app_id, "worker", since=tomorrow)) == []
    assert list(scheduler.log_iter(app_id, "worker", until=tomorrow - timedelta(days=2))) == []


def test_macros_are_filled_in_for_every_replica_and_rank_0_is_found_by_all(scheduler: SymphScheduler) -> None:
    script = "echo ${app_id} ${replica_id} $$${rank0_env}"
    made = app(script, replicas=2)
    made.roles.append(Role(name="other", image="busybox:1", entrypoint="sh", args=["-c", script]))
    app_id = submitted(scheduler, made)
    ended(scheduler, app_id)
    said = [
        next(iter(scheduler.log_iter(app_id, *place))).split() for place in (("worker", 0), ("worker", 1), ("other", 0))
    ]
    assert [words[1] for words in said] == ["0", "1", "0"]
    assert len({words[0] for words in said}) == 1
    assert said[0][0].startswith("train-")
    rank0, *others = [words[2] for words in said]
    assert rank0 == "localhost"
    assert len(set(others)) == 1
    assert others[0].startswith("127.")


@pytest.mark.parametrize("ports", [{"c10d": 29500}, {}], ids=["promised", "none"])
def test_a_first_role_that_waits_for_the_next_before_it_listens_meets_it(
    scheduler: SymphScheduler, ports: dict[str, int]
) -> None:
    made = app("until [ -e came ]; do sleep 0.05; done", role="learner")
    made.roles[0].port_map = ports
    said = ["-c", "echo $$${rank0_env}; touch came"]
    made.roles.append(Role(name="actor", image="busybox:1", entrypoint="sh", args=said))
    assert ended(scheduler, submitted(scheduler, made)) is AppState.SUCCEEDED


def test_faults_of_the_application_are_refused_with_their_places(scheduler: SymphScheduler) -> None:
    made = app(replicas=2)
    made.roles[0].min_replicas = 5
    made.roles[0].entrypoint = ""
    with pytest.raises(Refused, match=r"roles\[0\].min_replicas") as refusal:
        scheduler.submit_dryrun(made, {})
    assert "roles[0].entrypoint" in str(refusal.value)


def test_what_does_not_come_over_is_said(scheduler: SymphScheduler, caplog: pytest.LogCaptureFixture) -> None:
    made = app()
    made.roles[0].max_retries = 1
    made.roles[0].retry_policy = RetryPolicy.APPLICATION
    scheduler.submit_dryrun(made, {})
    assert "restarts more than the failed replica" in caplog.text


def test_a_foreign_request_is_not_scheduled(scheduler: SymphScheduler) -> None:
    info = scheduler.submit_dryrun(app(), {})
    info.request = {"kind": "Job"}
    with pytest.raises(TypeError, match="dict"):
        scheduler.schedule(info)


@pytest.mark.parametrize(
    "meant",
    [
        AppId(name="a"),
        AppId(name="a-2", namespace="ml"),
        AppId(name="a", namespace="ml", context="arn:aws:eks:eu:1:cluster/x y"),
        AppId(name="a", is_chart=True),
    ],
)
def test_an_app_id_reads_back_and_stands_in_a_handle(meant: AppId) -> None:
    assert parse(str(meant)) == meant
    assert "/" not in str(meant)


def _wait_for_line(scheduler: SymphScheduler, app_id: str) -> None:
    eventually(lambda: list(scheduler.log_iter(app_id, "worker")), END_S)
