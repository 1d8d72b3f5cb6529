"""`symph status` with few sources: no helm, no cluster, no repository, unresponsive hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symphony_charts.backend.diagnosis import Diagnosis
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli.main import main
from symphony_charts.cli.status_sources import Live, Place, Row, ask_cluster
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.gitops.store.environments import Placed
from symphony_charts.local import up as local_run
from symphony_charts.local.runs import live_runs
from tests.gitops.servers import make_bare
from tests.symph import symph

pytestmark = pytest.mark.usefixtures("private_places")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter an empty folder, on a machine without a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def live(phase: str = "running", *, chart: str = "", **fields: Any) -> ExperimentStatus:
    one = InstanceStatus(name="a", process="a", phase=phase, state=phase, ready=phase == "running")  # type: ignore[arg-type]
    given = {"backend": "kube", "started": 0.0, "instances": (one,), **fields}
    return ExperimentStatus(name="rl", experiment="rl", phase=phase, chart=chart, **given)  # type: ignore[arg-type]


def test_every_row_has_the_same_keys() -> None:
    rows = [
        Row(where="here", name="rl"),
        Row(where="here", name="rl", live=live(), why=Diagnosis(cause="pool", text="full")),
    ]
    assert rows[0].item().keys() == rows[1].item().keys()
    assert rows[1].item()["why"] == {"cause": "pool", "text": "full", "next": "", "processes": []}
    assert json.dumps([row.item() for row in rows])


def test_every_row_has_a_phase_that_is_a_word() -> None:
    pointer: Any = SimpleNamespace(version="0.1.0")
    rows = {
        "published": {"placed": Placed(env="dev", team="ml", name="rl", pointer=pointer, has_chart=True)},
        "damaged": {"placed": Placed(env="dev", team="ml", name="rl", pointer=None, fault="no YAML")},
        "queued": {"live": live("queued")},
    }
    for phase, fields in rows.items():
        row = Row(where="dev", name="rl", **fields)  # type: ignore[arg-type]  # by name
        assert row.phase == phase
    chartless = Placed(env="dev", team="ml", name="rl", pointer=pointer)
    assert Row(where="dev", name="rl", placed=chartless).phase == "damaged"


@pytest.mark.parametrize(
    ("label", "version"), [("rl-0.1.4", "0.1.4"), ("a-b-1.0.0-rc.1", "1.0.0-rc.1"), ("", None), ("cut-ab12", None)]
)
def test_the_version_that_runs_is_read_from_its_chart(label: str, version: str | None) -> None:
    assert Row(where="dev", name="rl", live=live(chart=label)).running == version


@pytest.mark.parametrize(
    ("phase", "why", "is_bad"),
    [
        ("running", None, False),
        ("pending", Diagnosis(cause="queue", text="second"), False),
        ("pending", Diagnosis(cause="image", text="denied"), True),
        ("failed", None, True),
        ("lost", None, True),
        ("succeeded", None, False),
        ("running", Diagnosis(cause="drift", text="another version"), True),
    ],
)
def test_a_passing_state_is_not_a_fault(phase: str, why: Diagnosis | None, is_bad: bool) -> None:
    assert Row(where="dev", name="rl", live=live(phase), why=why).is_bad is is_bad


def test_with_nothing_to_ask_it_says_so_and_is_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split(":")[:2] for line in said.err.splitlines()] == [
        ["nothing is known"],
        ["not asked", " cluster"],
        ["not asked", " git"],
    ]
    assert main(["status", "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["items"]) == ("StatusList", [])
    assert [each["name"] for each in answer["notAsked"]] == ["cluster", "git"]


def test_an_environment_of_a_variable_is_the_only_one_asked_and_need_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / ".symph.yaml").write_text("environments: {dev: {context: near}, prod: {context: far}}\n")
    asked = {}
    for env in ("", "dev"):
        monkeypatch.setenv("SYMPH_ENV", env)
        assert main(["status", "-o", "json"]) == 0
        asked[env] = {each["name"]: each["why"] for each in json.loads(capsys.readouterr().out)["notAsked"]}
    assert set(asked[""]) == set(asked["dev"]) == {"dev", "prod", "git"}
    # Without --env, the message explains that the default environment limits the query, and how to query another.
    assert asked["dev"]["prod"] == "$SYMPH_ENV says dev; --env NAME asks another" != asked[""]["prod"]
    assert asked["dev"]["dev"] == asked[""]["dev"]
    assert main(["status"]) == 0
    assert "not asked: prod: $SYMPH_ENV says dev; --env NAME asks another\n" in capsys.readouterr().err
    # A source that was left out is not a source that failed to answer.
    assert main(["status", "rl"]) == 8
    monkeypatch.setenv("SYMPH_ENV", "dve")
    assert main(["status"]) == 2


def test_a_name_that_nobody_knows_while_a_cluster_is_silent_is_no_proof(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = {"server": "http://127.0.0.1:9"}
    config = {
        "contexts": [{"name": "far", "context": {"cluster": "far"}}],
        "clusters": [{"name": "far", "cluster": cluster}],
        "current-context": "far",
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    assert main(["status", "rl"]) == 6
    assert "the cluster of context far does not answer" in capsys.readouterr().err
    assert main(["status"]) == 0
    assert main(["status", "-n", "ml"]) == 6


def test_a_repository_that_is_named_answers_where_there_is_no_cluster(
    folder: Path, need_tool: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    need_tool("git")
    bare = make_bare(folder / "charts.git")
    assert main(["status", "--repo", str(bare)]) == 0
    assert [line.split(":")[:2] for line in capsys.readouterr().err.splitlines()] == [
        ["nothing is known"],
        ["not asked", " cluster"],
    ]
    assert main(["status", "--repo", str(folder / "none.git")]) == 6
    assert "none.git" in capsys.readouterr().err


def test_local_runs_are_listed_with_their_waits(folder: Path, need_tool: Callable[[str], str]) -> None:
    need_tool("tmux")
    processes = {"a": {"command": ["sleep", "300"], "binds": ["x"]}, "b": {"command": ["true"], "connects": ["x"]}}
    (folder / "exp.json").write_text(json.dumps({"name": "exp", "processes": processes}))
    try:
        assert symph("up", "exp.json").returncode == 0
        text = symph("status", "exp")
        assert text.returncode == 0, text.stderr
        assert text.stdout.splitlines()[0].split() == ["WHERE", "VERSION", "STATE", "READY"]
        assert "here: b: waits for x:7000 of a, which is not ready" in text.stdout
        assert "  next: symph logs a exp --tail 50" in text.stdout
        (item,) = json.loads(symph("status", "-o", "json").stdout)["items"]
        assert (item["name"], item["where"], item["why"]["cause"]) == ("exp", "here", "port")
        table = symph("status").stdout.splitlines()
        assert table[1].startswith("exp ")
        assert max(map(len, table)) <= 80
    finally:
        for run in live_runs():
            local_run.down(run)
    ended = symph("status", "exp")
    assert (ended.returncode, "stopped" in ended.stdout) == (0, True)


THERE = [
    ExperimentStatus(name="rl", experiment="rl", backend="stand-in", phase="running", started=0.0, namespace=space)
    for space in ("a", "b")
]


class Watcher:
    """A cluster with an experiment `rl` in two namespaces; the first one ends when it is described."""

    backend = "stand-in"
    api = SimpleNamespace(context="here")

    def __init__(self, namespace: str | None, **_: object) -> None:
        self.namespace = namespace

    def experiments(self) -> list[ExperimentStatus]:
        return THERE

    def describe(self, name: str) -> ExperimentStatus:
        if self.namespace is None:
            raise UsageError(f'"{name}" is in several namespaces')
        if self.namespace == "a":
            raise NotFound(f'no experiment is called "{name}"')
        return THERE[1]


def test_one_that_ends_between_two_looks_hides_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symphony_charts.kubernetes.backend.KubeWatcher", Watcher)
    assert [status.namespace for status, _ in ask_cluster(Place(), "rl").found] == ["b"]


def application(name: str, url: str) -> dict[str, object]:
    labels = dict(zip(("symph.dev/env", "symph.dev/team", "symph.dev/experiment"), name.split("-"), strict=True))
    return {"metadata": {"name": f"x-{name}", "labels": labels}, "spec": {"source": {"repoURL": url}}}


BY_SSH = application("dev-ml-rl", "git@git.example.org:ours/charts")
OURS, THEIRS = (application("dev-ml-rl", f"https://git.example.org/{team}/charts") for team in ("ours", "theirs"))


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ([], None),
        ([application("dev-ml-other", "https://git.example.org/ours/charts")], None),
        ([BY_SSH], BY_SSH),
        ([THEIRS, OURS], OURS),
        ([OURS, THEIRS], OURS),
        ([THEIRS, application("dev-ml-rl", "https://git.example.org/others/charts")], None),
    ],
)
def test_of_several_applications_of_a_name_that_of_our_repository_is_read(
    known: list[dict[str, object]], found: dict[str, object] | None
) -> None:
    live = Live(found=(), applications=known)
    assert (
        live.application(Placed(env="dev", team="ml", name="rl", pointer=None), "https://git.example.org/ours/charts")
        == found
    )
