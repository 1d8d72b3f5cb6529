"""When a run is over, its services end with it, and the rest stays; judged by the controllers of each kind.

Those of kind `dijob` are not published as a Go module. `SYMPH_SOAK` ends the conductor 50 times and draws 30 specs.
"""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.kinds.base import is_conductor
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import pods_of, pods_that_end
from tests.e2e.charts import package_data
from tests.e2e.operators import start_argo_workflows, start_volcano
from tests.e2e.programs import Programs, Symph
from tests.e2e.release import Release, Releases, describe
from tests.e2e.rig.cluster import Cluster
from tests.e2e.tools.build import FOLDER
from tests.waiting import eventually

_IS_SOAK = "SYMPH_SOAK" in os.environ  # read at import: inside a test, the user's variables are removed
_KILLS, _DRAWN = (50, 30) if _IS_SOAK else (2, 3)
_SEED = int(os.environ.get("SYMPH_SEED", "1"))

# Ends with the status in the file, when it is there; each start of a container has an empty /tmp.
_TOLD = ["trap 'exit 143' TERM", "until [ -s /tmp/end ]; do sleep 0.1; done", "exit $(cat /tmp/end)"]
_SERVICE = {"cmds": _TOLD, "lifecycle": "service", "grace_period": 1, "ready": {"exec": ["true"], "period": "1s"}}
_FINITE = {"cmds": _TOLD, "grace_period": 1}


def _experiment(kind: str, **more: object) -> dict[str, object]:
    processes = {
        "trainer": {**_FINITE, "retries": 0},
        "actor": {**_FINITE, "connects": ["frames"]},
        "replay": {**_SERVICE, "binds": "frames"},
        "board": {**_SERVICE, "exposes": "web"},
    }
    data = {"name": "rl", "image": "busybox:1.37.0", "done_when": ["trainer"], "processes": processes}
    return {**data, "workload": {"kind": kind}, **more}


class Run:
    """A release that runs, and what a test does to its pods."""

    def __init__(self, release: Release, chart: Path) -> None:
        self.release, self.chart = release, chart
        release.install(chart)
        release.wait_ready()
        if any(map(is_conductor, release.objects("jobs", with_conductor=True))):
            eventually(lambda: "conductor" in self.pods() and self.is_ready("conductor"), 60, self.state)

    def kubectl(self, *words: str) -> str:
        return self.release.programs.kubectl("-n", self.release.namespace, *words)

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods that are neither over nor being deleted, by group; the conductor's is called so."""
        return {
            labels.get("symph.dev/group") or labels["app.kubernetes.io/component"]: pod
            for pod in self.release.objects("pods", with_conductor=True)
            for labels in [pod["metadata"]["labels"]]
            if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]
        }

    def uids(self) -> dict[str, str]:
        return {group: pod["metadata"]["uid"] for group, pod in self.pods().items()}

    def name(self, group: str) -> str:
        return str(self.pods()[group]["metadata"]["name"])

    def end(self, process: str, status: int) -> None:
        """Let a process exit."""
        self.kubectl("exec", self.name(process), "-c", process, "--", "sh", "-c", f"echo {status} >/tmp/end")

    def versions(self) -> set[tuple[str, int]]:
        """Return the uid of each object, and how often its specification was changed."""
        kinds = "jobs,statefulsets,services,roles,rolebindings,serviceaccounts"
        found = [item["metadata"] for item in self.release.objects(kinds, with_conductor=True)]
        return {(item["uid"], item.get("generation", 0)) for item in found}

    def evict(self, group: str) -> None:
        """Evict a pod, and return when another is ready in its place."""
        gone, name = self.uids()[group], self.name(group)
        path = f"/api/v1/namespaces/{self.release.namespace}/pods/{name}/eviction"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self.release.api.create(path, body)
        eventually(lambda: self.uids().get(group, gone) != gone and self.is_ready(group), 60, self.state)

    def replace_conductor(self) -> None:
        """Delete the conductor's Job, and let helm make it again: each eviction of a Job's pod delays its next one."""
        name = self.conductor()
        self.kubectl("delete", "job", name, "--cascade=foreground", "--timeout=60s")
        self.release.upgrade(self.chart)
        phases = ("get", "pods", "-l", f"job-name={name}", "-o", "jsonpath={.items[*].status.phase}")
        eventually(lambda: self.kubectl(*phases) in ("Running", "Succeeded"), 60, self.state)

    def conductor(self) -> str:
        (job,) = [job for job in self.release.objects("jobs", with_conductor=True) if is_conductor(job)]
        return str(job["metadata"]["name"])

    def is_ready(self, group: str) -> bool:
        conditions = self.pods()[group]["status"].get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def wait_left(self, *groups: str) -> None:
        """Return when only these groups and finished pods are left."""
        eventually(lambda: self.pods().keys() == set(groups), 60, self.state)
        eventually(lambda: not self._going(), 60, self.state)

    def _going(self) -> list[dict[str, Any]]:
        pods = self.release.objects("pods", with_conductor=True)
        return [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]

    def state(self) -> str:
        return f"{list(self.pods())}\n{describe(self.release.programs, self.release.namespace)}"


def _states(symph: Symph, name: str) -> dict[str, str]:
    """Return the state of each process from ``symph ps``, without times."""
    said = symph("ps", name, "--on", "kube", "-o", "json")
    assert said.code == 0, said.err
    items = json.loads(said.out)["items"]
    return {one["process"]: re.sub(r" after .*|(?<=running): .*", "", one["state"]) for one in items}


@pytest.mark.parametrize("kind", ["jobs", "jobset"])
def test_a_run_that_succeeds_frees_what_it_took_and_nothing_before_that(
    kind: str, release: Releases, symph: Symph, tmp_path: Path
) -> None:
    run = Run(release("rl"), package_data(_experiment(kind), tmp_path))
    before = run.uids()
    run.end("replay", 0)
    restarts = lambda: run.pods()["replay"]["status"]["initContainerStatuses"][0]["restartCount"]  # noqa: E731
    eventually(restarts, 60, run.state)
    run.release.wait_ready()
    assert run.uids() == before
    run.evict("replay")
    if kind == "jobs":
        run.evict("conductor")
        for _ in range(_KILLS):
            run.replace_conductor()
    changed = {"replay", "conductor"} if kind == "jobs" else {"replay"}
    assert {group for group, uid in run.uids().items() if uid != before.get(group)} == changed

    run.end("trainer", 0)
    run.wait_left("board")
    waited = symph("wait", "rl", "--on", "kube", "--timeout", "60s")
    assert (waited.code, waited.out.strip()) == (0, "rl succeeded"), waited.err
    states = _states(symph, "rl")
    assert (states["trainer"], states["board"]) == ("succeeded", "running")
    ended = "it ended with the run" if kind == "jobs" else "its JobSet has succeeded"
    assert (states["actor"], states["replay"]) == (f"stopped: {ended}",) * 2
    shown = symph("status", "rl")
    assert "succeeded" in shown.out, shown.err

    kept, objects = run.uids(), run.versions()
    run.release.upgrade(run.chart)
    assert (run.uids(), run.versions()) == (kept, objects)
    if kind == "jobs":
        run.replace_conductor()
        run.wait_left("board")
        assert (run.uids(), _states(symph, "rl")) == (kept, states)
    run.release.uninstall()
    run.release.wait_gone()


def test_an_appwrapper_that_succeeds_frees_the_services_beside_it(
    release: Releases, symph: Symph, tmp_path: Path
) -> None:
    data = _experiment("appwrapper", done_when=[])
    processes: Any = data["processes"]
    del processes["actor"]
    run = Run(release("rl"), package_data(data, tmp_path))
    run.end("trainer", 0)
    run.wait_left("board")
    waited = symph("wait", "rl", "--on", "kube", "--timeout", "60s")
    assert (waited.code, waited.out.strip()) == (0, "rl succeeded"), waited.err
    assert _states(symph, "rl")["replay"] == "stopped: it ended with the run"


@pytest.fixture(scope="module")
def argo(cluster: Cluster, programs: Programs) -> None:
    if not (FOLDER / "workflow-controller").exists():
        pytest.skip("not built: python -m tests.e2e.tools build workflow-controller argoexec")
    start_argo_workflows(cluster.folder, programs)


@pytest.fixture(scope="module")
def volcano(cluster: Cluster, programs: Programs) -> None:
    if not (FOLDER / "vc-scheduler").exists():
        pytest.skip("not built: python -m tests.e2e.tools build vc-controller-manager vc-scheduler")
    start_volcano(cluster.folder, programs)


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("kind", ["argo", "volcano"])
def test_other_controllers_end_services_with_the_run(
    kind: str, status: int, request: pytest.FixtureRequest, release: Releases, symph: Symph, tmp_path: Path
) -> None:
    request.getfixturevalue(kind)
    queue = {"queue": "default"} if kind == "volcano" else {}  # which Volcano's webhook would set
    run = Run(release("rl"), package_data(_experiment(kind, workload={"kind": kind, **queue}), tmp_path))
    groups = ("trainer", "actor", "replay", "board")
    eventually(lambda: run.pods().keys() == {*groups} and all(map(run.is_ready, groups)), 60, run.state)
    before = run.uids()
    if kind == "argo":  # Volcano does not replace an evicted pod
        run.end("replay", 0)
        run.evict("replay")
    run.end("trainer", status)
    run.wait_left("board")
    assert run.uids()["board"] == before["board"]
    waited = symph("wait", "rl", "--on", "kube", "--timeout", "60s")
    assert waited.code == bool(status), waited.err


@pytest.mark.parametrize("kind", ["jobs", "jobset"])
def test_a_failure_ends_the_rest(kind: str, release: Releases, symph: Symph, tmp_path: Path) -> None:
    run = Run(release("rl"), package_data(_experiment(kind), tmp_path))
    run.end("trainer", 3)
    run.wait_left("board")
    waited = symph("wait", "rl", "--on", "kube", "--timeout", "60s")
    assert (waited.code, "trainer failed 3" in waited.err) == (1, True), waited.err


def test_with_continue_a_failure_ends_nothing_else(release: Releases, symph: Symph, tmp_path: Path) -> None:
    run = Run(release("rl"), package_data(_experiment("jobs", on_failure="continue"), tmp_path))
    before = run.uids()
    run.end("trainer", 3)
    eventually(lambda: "trainer" not in run.pods(), 60, run.state)
    for _ in range(_KILLS):
        run.replace_conductor()
    assert {group: run.uids().get(group) for group in ("actor", "replay", "board")} == {
        group: before[group] for group in ("actor", "replay", "board")
    }
    run.end("actor", 0)
    run.wait_left("board")
    states = _states(symph, "rl")
    assert {name: state.partition(":")[0] for name, state in states.items()} == {
        "trainer": "failed 3",
        "actor": "succeeded",
        "replay": "stopped",
        "board": "running",
    }


def _drawn(chance: random.Random) -> dict[str, Any]:
    """Return an experiment whose run ends by itself."""
    names = ["a", "b", "c", "d"][: chance.randint(2, 4)]
    finite = chance.sample(names, chance.randint(1, len(names) - 1))
    done = chance.sample(finite, chance.randint(1, len(finite)))
    fails = chance.choice(finite) if chance.random() < 0.3 else ""
    processes: dict[str, dict[str, Any]] = {}
    for name in names:
        if name in finite:
            ends = "exit 3" if name == fails else "exit 0" if name in done else "sleep 600 & wait"
            processes[name] = {"cmds": ["trap 'exit 143' TERM", "sleep 1", ends], "grace_period": 1, "retries": 0}
        else:
            processes[name] = {**_SERVICE, **chance.choice([{}, {"until": "run"}, {"until": "uninstall"}])}
            processes[name][chance.choice(["binds", "exposes"])] = f"of-{name}"
    bound = [name for name, process in processes.items() if "binds" in process]
    for name, process in processes.items():
        process["connects"] = [f"of-{other}" for other in bound if other != name and chance.random() < 0.4]
    kind = chance.choice(["jobs", "jobs", "jobset"])
    more = {"done_when": done} if len(done) < len(finite) or chance.random() < 0.5 else {}
    linger = {"linger": chance.randint(0, 2)} if kind == "jobs" else {}
    data = {"name": "rl", "image": "busybox:1.37.0", "processes": processes, "workload": {"kind": kind}}
    return {**data, **more, **linger}


@pytest.mark.parametrize("seed", range(_SEED, _SEED + _DRAWN))
def test_who_is_left_after_the_end_is_who_the_spec_says(seed: int, release: Releases, tmp_path: Path) -> None:
    data = _drawn(random.Random(seed))
    experiment = from_data(data)
    services = {name for name, pod in pods_of(experiment).items() if not pod.is_finite}
    left = services - pods_that_end(experiment)
    run = release("rl")
    run.install(package_data(data, tmp_path))
    alive: set[str] = set()

    def is_so() -> bool:
        pods = run.objects("pods", with_conductor=True)
        pods = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        alive.clear()
        alive.update(str(pod["metadata"]["labels"].get("symph.dev/group", "conductor")) for pod in pods)
        jobs = run.objects("jobs")
        ends = {condition["type"] for job in jobs for condition in job["status"].get("conditions", [])}
        return alive == left and bool(ends & {"Complete", "Failed"})

    eventually(is_so, 90, lambda: f"{json.dumps(data)}\nwanted {left}, found {alive}")
