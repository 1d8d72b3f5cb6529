"""Argo CD syncs a repository of charts: each publish runs once, and nothing runs without one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.argocd import ArgoCd, argo_cd
from tests.e2e.programs import Programs
from tests.e2e.release import describe
from tests.gitops.servers import commit, git
from tests.tools import newest_helm
from tests.waiting import eventually

_WAIT_S = 90
# How long an ended run must stay as it is; read at import: inside a test, the user's variables are removed.
_HELD_S = 300 if "SYMPH_SOAK" in os.environ else 10
_SOURCE = f"git+https://git.example.org/symphony-charts@{'0a' * 20}"
_SPEC = """\
name: {name}
image: busybox:1.37.0
processes:
  nap: {{cmds: ["echo {word}"]}}
"""
_RUN = """\
name: rl
image: busybox:1.37.0
done_when: [trainer]
processes:
  trainer: {cmds: [sleep 1]}
  actor: {cmds: [sleep 600], grace_period: 1, connects: [frames]}
  replay: {cmds: [sleep 600], grace_period: 1, lifecycle: service, binds: frames}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A folder with settings, a repository that Argo CD reads, and two namespaces."""

    folder: Path
    argo: ArgoCd
    dev: str
    prod: str

    def symph(self, *words: str) -> str:
        done = self.argo.programs.symph(*words, cwd=self.folder)
        assert done.code == 0, f"symph {' '.join(words)}: {done.out}\n{done.err}"
        return done.out

    def begin(self, *more: str) -> None:
        """Initialise the repository, and do what its README says."""
        self.symph("gitops", "init", "--argocd-namespace", self.argo.namespace, "--install-from", _SOURCE, *more)
        repository = self.folder / "charts.git"
        manager = re.findall(r"--field-manager=(\S+)", git(repository, "show", "main:README.md"))[0]
        for name in ("run-end", "argocd-cm", "project", "applicationset"):
            text = git(repository, "show", f"main:bootstrap/{name}.yaml")
            self.argo.programs.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=text)

    def diff(self, name: str, word: str, env: str = "dev") -> dict[str, Any]:
        """Return the forecast of ``symph diff`` for a publish of an experiment that prints `word`."""
        (self.folder / f"{name}.yaml").write_text(_SPEC.format(name=name, word=word))
        return dict(json.loads(self.symph("diff", f"{name}.yaml", "--env", env, "-o", "json")))

    def publish(self, name: str, word: str, *more: str) -> None:
        (self.folder / f"{name}.yaml").write_text(_SPEC.format(name=name, word=word))
        self.symph("publish", f"{name}.yaml", *(more or ("--env", "dev")))

    def jobs(self, namespace: str, name: str) -> dict[str, Any]:
        """Return the uids of an experiment's Jobs by name, without those being deleted."""
        argv = ["-n", namespace, "get", "jobs", "-l", f"app.kubernetes.io/instance={name}", "-o", "json"]
        found = json.loads(self.argo.programs.kubectl(*argv))["items"]
        alive = [job["metadata"] for job in found if "deletionTimestamp" not in job["metadata"]]
        return {metadata["name"]: metadata["uid"] for metadata in alive}

    def wait_synced(self, env: str, name: str, version: str, place: str = "") -> dict[str, Any]:
        """Return the Jobs, once Argo CD has applied that version and reports the work as done."""
        app, path = f"ml-charts-{env}-ml-{name}", f"charts/ml/{name}/{version}"
        place = place or (self.dev if env == "dev" else self.prod)
        is_there = lambda: (  # noqa: E731
            self.argo.synced(app) == path and self.argo.health(app) == "Healthy" and self.argo.place(app) == place
        )
        eventually(is_there, _WAIT_S, lambda: f"{app} runs {path}\n{self.state(place)}")
        return self.jobs(place, name)

    def why(self, name: str) -> dict[str, Any]:
        """Return the answer of `symph status` on an experiment in dev, and its exit status."""
        programs, settings = self.argo.programs, self.folder / ".symph.yaml"
        context = programs.kubectl("config", "current-context").strip()
        settings.write_text(
            settings.read_text().replace(f"namespace: {self.dev}}}", f"namespace: {self.dev}, context: {context}}}")
        )
        done = programs.symph("status", name, "--env", "dev", "-o", "json", cwd=self.folder)
        assert done.out, done.err
        # Runs outside Git have no environment.
        (item,) = (each for each in json.loads(done.out)["items"] if each["env"])
        return {**(item["why"] or {}), "code": done.code}

    def state(self, namespace: str) -> str:
        return f"{self.argo.describe()}\n{describe(self.argo.programs, namespace)}"


@pytest.fixture
def team(programs: Programs, namespace: str, tmp_path: Path) -> Iterator[Team]:
    """Yield a team whose repository has just been initialised, following its README."""
    dev, prod = f"{namespace}-dev", f"{namespace}-prod"
    for place in (dev, prod):
        programs.kubectl("create", "namespace", place)
    _configure(tmp_path, dev, prod)
    with argo_cd(tmp_path / "argocd", namespace, programs, newest_helm()) as argo:
        made = Team(folder=tmp_path, argo=argo, dev=dev, prod=prod)
        made.begin()
        yield made
        _remove(programs, namespace)
    for place in (dev, prod):
        programs.kubectl("delete", "namespace", place, "--wait=false")


def _configure(folder: Path, dev: str, prod: str) -> None:
    """Make a repository and the settings of a team in `folder`."""
    repository = folder / "charts.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repository)], check=True, timeout=30)
    (folder / ".symph.yaml").write_text(
        f"team: ml\nrepository: {{url: file://{repository}, author: Ann <ann@example.org>}}\n"
        f"environments:\n  dev: {{namespace: {dev}}}\n  prod: {{namespace: {prod}}}\n"
    )


def _remove(programs: Programs, namespace: str) -> None:
    """Remove finalizers whose controller is gone."""
    programs.kubectl("-n", namespace, "delete", "applicationsets", "--all", "--timeout=30s")
    programs.kubectl("-n", namespace, "delete", "applications", "--all", "--timeout=60s")


def test_diff_says_what_argo_cd_does(team: Team) -> None:
    """Work runs once until it is changed, promoted, rolled back, moved or retired, and `diff` predicts it."""
    team.publish("naps", "one")
    first = team.wait_synced("dev", "naps", "0.1.0")
    assert len(first) == 1
    assert team.argo.application("ml-charts-dev-ml-naps")["spec"]["project"] == "ml-charts-dev"

    # A foreign publish moves the branch, and does not restart our work.
    team.publish("other", "else")
    assert len(team.wait_synced("dev", "other", "0.1.0")) == 1
    assert team.jobs(team.dev, "naps") == first

    assert team.diff("naps", "two")["outcome"] == "new run"
    team.publish("naps", "two")
    second = team.wait_synced("dev", "naps", "0.1.1")
    assert len(second) == 1
    assert not second.keys() & first.keys()

    # A rollback, and a new publish after it.
    team.symph("rollback", "naps", "--env", "dev")
    assert team.wait_synced("dev", "naps", "0.1.0").keys() == first.keys()
    assert team.diff("naps", "three")["outcome"] == "new run"
    team.publish("naps", "three")
    third = team.wait_synced("dev", "naps", "0.1.2")
    assert not third.keys() & {*first, *second}
    assert team.diff("naps", "three")["outcome"] == "nothing"

    # Another environment, in its own project.
    team.symph("promote", "naps", "--from", "dev", "--to", "prod")
    assert team.wait_synced("prod", "naps", "0.1.2").keys() == third.keys()
    assert team.argo.application("ml-charts-prod-ml-naps")["spec"]["project"] == "ml-charts-prod"
    assert team.jobs(team.dev, "naps") == third

    # Another namespace, which the project has to allow first.
    elsewhere = f"{team.dev}-2"
    team.argo.programs.kubectl("create", "namespace", elsewhere)
    settings = team.folder / ".symph.yaml"
    settings.write_text(settings.read_text().replace(f"namespace: {team.dev}}}", f"namespace: {elsewhere}}}"))
    said = team.diff("naps", "three")
    assert (said["outcome"], said["move"]) == (
        "new run",
        {"from": f"namespace {team.dev}", "to": f"namespace {elsewhere}", "ends": True},
    )
    team.begin("--force")
    team.publish("naps", "three")
    moved = team.wait_synced("dev", "naps", "0.1.2", elsewhere)
    assert len(moved) == 1
    eventually(lambda: not team.jobs(team.dev, "naps"), _WAIT_S, lambda: team.state(team.dev))
    assert team.jobs(team.prod, "naps").keys() == third.keys()

    team.symph("retire", "naps", "--env", "dev", "--yes")
    eventually(lambda: not team.argo.application("ml-charts-dev-ml-naps"), _WAIT_S, lambda: team.state(elsewhere))
    assert not team.jobs(elsewhere, "naps")
    assert team.jobs(team.prod, "naps")
    team.argo.programs.kubectl("delete", "namespace", elsewhere, "--wait=false")


def test_what_ended_with_its_run_stays_so_under_argo_cd(team: Team) -> None:
    """The conductor suspends Jobs: Argo CD sees no difference, and another publish resumes nothing."""
    programs, app = team.argo.programs, "ml-charts-dev-ml-rl"
    account = ("--verb=get,patch", "--resource=jobs"), ("--role=conductor", f"--serviceaccount={team.dev}:conductor")
    for kind, words in (("serviceaccount", ()), ("role", account[0]), ("rolebinding", account[1])):
        programs.kubectl("-n", team.dev, "create", kind, "conductor", *words)
    (team.folder / "rl.yaml").write_text(_RUN)
    team.symph("publish", "rl.yaml", "--env", "dev", "--env-set", "conductor.serviceAccountName=conductor")

    def ended() -> dict[str, bool]:
        found = programs.get("-n", team.dev, "jobs", "-l", "app.kubernetes.io/instance=rl")["items"]
        return {
            str(job["metadata"]["labels"].get("symph.dev/group")): bool(job["spec"].get("suspend")) for job in found
        }

    wanted = {"trainer": False, "actor": True, "replay": True, "None": False}
    eventually(
        lambda: ended() == wanted and team.argo.synced(app) and team.argo.health(app) == "Healthy",
        _WAIT_S,
        lambda: f"{ended()}\n{team.state(team.dev)}",
    )
    jobs = team.jobs(team.dev, "rl")

    team.publish("other", "else")
    team.wait_synced("dev", "other", "0.1.0")
    compared = team.argo.application(app)["status"]["reconciledAt"]
    team.argo.programs.kubectl(
        "-n", team.argo.namespace, "annotate", "application", app, "argocd.argoproj.io/refresh=hard"
    )
    is_compared = lambda: team.argo.application(app)["status"]["reconciledAt"] != compared  # noqa: E731
    eventually(is_compared, _WAIT_S, lambda: team.state(team.dev))
    until = time.monotonic() + _HELD_S
    while time.monotonic() < until:
        status = team.argo.application(app)["status"]
        assert (status["sync"]["status"], status["health"]["status"]) == ("Synced", "Healthy"), team.state(team.dev)
        assert (team.jobs(team.dev, "rl"), ended()) == (jobs, wanted)
        time.sleep(1)


def test_status_says_why_argo_cd_cannot_apply_it(team: Team) -> None:
    """A pointer that aims at another environment's place runs nothing there, and a taken name is told."""
    team.publish("naps", "one")
    [name] = team.wait_synced("dev", "naps", "0.1.0")
    repository, path, programs = team.folder / "charts.git", "envs/dev/ml/naps.symph-app.yaml", team.argo.programs
    text = git(repository, "show", f"main:{path}")
    stolen = text.replace(f"namespace: {team.dev}\n", f"namespace: {team.prod}\n").replace("env: dev", "env: prod")
    commit(repository, {path: stolen})
    eventually(
        lambda: "InvalidSpecError" in team.argo.conditions("ml-charts-dev-ml-naps"),
        _WAIT_S,
        lambda: team.state(team.dev),
    )
    # The path says which project, not the pointer.
    assert team.argo.application("ml-charts-dev-ml-naps")["spec"]["project"] == "ml-charts-dev"
    assert not team.argo.application("ml-charts-prod-ml-naps")
    assert not team.jobs(team.prod, "naps")
    why = team.why("naps")
    assert (why["cause"], why["code"]) == ("sync", 1), why
    assert why["text"].startswith("Argo CD cannot apply it: application destination")
    commit(repository, {path: text})

    job = json.loads(programs.kubectl("-n", team.dev, "get", "job", name, "-o", "json"))
    team.publish("naps", "two")
    team.wait_synced("dev", "naps", "0.1.1")
    # A foreign Job takes the name of the rollback's Job.
    job["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:1.36.0"
    job["spec"]["template"]["metadata"]["labels"] = {"app": "theirs"}
    del job["spec"]["selector"]
    job["metadata"] = {"name": name, "namespace": team.dev}
    programs.kubectl("create", "-f", "-", stdin=json.dumps(job))
    team.symph("rollback", "naps", "--env", "dev")

    is_read = lambda: team.why("naps").get("cause") == "immutable"  # noqa: E731
    eventually(is_read, _WAIT_S, lambda: f"{team.why('naps')}\n{team.state(team.dev)}")
    why = team.why("naps")
    assert why == {
        "cause": "immutable",
        "text": f"Argo CD cannot apply it: spec.template of Job/{name} is immutable",
        "next": f"kubectl -n {team.dev} delete job/{name}",
        "processes": [],
        "code": 1,
    }
    # The suggested step helps.
    programs.kubectl(*why["next"].split()[1:])
    assert list(team.wait_synced("dev", "naps", "0.1.0")) == [name]


def test_a_second_repository_changes_nothing_of_the_first(team: Team) -> None:
    """Two teams share an Argo CD, with the same environments, namespaces and experiments' names."""
    team.publish("naps", "one")
    first = team.wait_synced("dev", "naps", "0.1.0")

    def state() -> list[Any]:
        kinds = "appprojects,applicationsets,applications"
        items = team.argo.programs.get("-n", team.argo.namespace, kinds)["items"]
        named = [item for item in items if item["metadata"]["name"].startswith("ml-charts")]
        return [(item["kind"], item["metadata"]["name"], item["metadata"]["uid"], item["spec"]) for item in named]

    before = state()
    assert len(before) == 5  # two projects, two ApplicationSets, an Application
    folder = team.folder / "second"
    folder.mkdir()
    _configure(folder, team.dev, team.prod)
    second = replace(team, folder=folder)
    # Under the names of the first nothing is applied.
    with pytest.raises(AssertionError, match="conflict"):
        second.begin()
    assert state() == before
    second.begin("--name", "second", "--force")
    second.publish("naps2", "two")
    app = "second-dev-ml-naps2"
    eventually(
        lambda: team.argo.synced(app) and team.argo.health(app) == "Healthy", _WAIT_S, lambda: team.state(team.dev)
    )
    assert state() == before
    second.symph("retire", "naps2", "--env", "dev", "--yes")
    eventually(lambda: not team.argo.application(app), _WAIT_S, lambda: team.state(team.dev))
    assert state() == before
    assert team.jobs(team.dev, "naps") == first


def test_a_pointer_that_cannot_be_read_stops_its_own_environment_alone(team: Team) -> None:
    commit(team.folder / "charts.git", {"envs/dev/ml/broken.symph-app.yaml": "name: broken\n"})
    team.publish("naps", "one", "--chart-only")
    (team.folder / "naps.yaml").write_text(_SPEC.format(name="naps", word="one"))
    team.symph("publish", "naps.yaml", "--env", "prod")
    assert len(team.wait_synced("prod", "naps", "0.1.0")) == 1
