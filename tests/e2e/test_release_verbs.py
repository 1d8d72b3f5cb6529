"""`symph install|upgrade|uninstall|status|history|rollback` on a real cluster; in part with each helm."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.charts import package_data
from tests.e2e.programs import Output, Programs, Symph
from tests.e2e.release import Release
from tests.tools import newest_helm
from tests.waiting import eventually


@pytest.fixture
def helm_path(request: pytest.FixtureRequest) -> Path | None:
    """Return each helm if the test uses `any_helm`, else the newest."""
    each = "any_helm" in request.fixturenames
    return request.getfixturevalue("any_helm") if each else newest_helm()


@pytest.fixture
def symph(programs: Programs, namespace: str, helm_path: Path) -> Symph:
    return lambda *words, place=namespace: programs.symph(*words, "-n", place, env={"HELM_BIN": str(helm_path)})


@pytest.fixture
def held(programs: Programs, namespace: str) -> Callable[[], set[str]]:
    """Return the names of all objects in the namespace that a release may make."""

    def names() -> set[str]:
        kinds = "jobs,statefulsets,services,configmaps,secrets,networkpolicies"
        found = programs.kubectl("-n", namespace, "get", kinds, "-o", "name").split()
        return {name for name in found if "kube-root-ca" not in name and "sh.helm.release" not in name}

    return names


def naps(command: str = "echo done", name: str = "naps", **more: object) -> dict[str, object]:
    return {"name": name, "image": "busybox:1.37.0", "processes": {"nap": {"cmds": [command], **more}}}


def spec_of(experiment: dict[str, object], folder: Path) -> str:
    path = folder / "naps.json"
    path.write_text(json.dumps(experiment))
    return str(path)


@pytest.mark.usefixtures("any_helm")
def test_a_spec_is_installed_with_its_secrets_and_runs_to_its_end(
    symph: Symph, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "key.txt").write_text("hush")
    spec = spec_of({**naps("cat /etc/secrets/key.txt"), "secrets": ["key.txt"]}, tmp_path)
    done = symph("install", spec, "--wait-for-jobs", "-o", "json")
    assert (done.code, json.loads(done.out)["secretPushed"]) == (0, True), done.err
    assert "hush" in programs.kubectl("-n", namespace, "logs", "-l", "symph.dev/group=nap")
    (status,) = json.loads(symph("status", "naps", "-o", "json").out)["items"]
    assert (status["heldBy"], status["phase"], status["ready"]) == (["Helm release naps, revision 1"], "succeeded", 1)


def test_a_dry_run_asks_the_cluster_and_makes_nothing(
    symph: Symph, held: Callable[[], set[str]], tmp_path: Path
) -> None:
    done = symph("install", spec_of(naps(), tmp_path), "--dry-run")
    assert (done.code, held()) == (0, set()), done.err
    assert symph("status", "naps").code == 8


def test_all_that_the_cluster_refuses_is_said_at_once_and_nothing_is_made(
    symph: Symph, held: Callable[[], set[str]], tmp_path: Path
) -> None:
    chart = package_data({**naps(), "processes": {"a": {"cmds": ["a"]}, "b": {"cmds": ["b"]}}}, tmp_path / "d")
    broken = [f"groups.{name}.containers.{name}.resources.requests.wheels=1" for name in "ab"]
    done = symph("install", str(chart), *(word for text in broken for word in ("--set", text)))
    assert (done.code, held()) == (3, set())
    assert ("Job/naps-a-" in done.err, "Job/naps-b-" in done.err) == (True, True), done.err


def test_a_failed_job_ends_the_wait_at_once_with_its_exit_status(symph: Symph, tmp_path: Path) -> None:
    started = time.monotonic()
    # Without a check it would be ready for a moment.
    nap = naps("echo sorry; exit 3", ready={"exec": ["false"]})
    done = symph("install", spec_of(nap, tmp_path), "--wait", "--timeout", "100s")
    assert done.code == 1, done.err
    assert "nap exited with 3" in done.err
    assert time.monotonic() - started < 60


def test_a_wait_that_takes_too_long_says_what_the_scheduler_said(
    symph: Symph, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    spec = spec_of(naps(requests={"cpu": 900}), tmp_path)
    assert symph("install", spec).code == 0
    seen = partial(programs.kubectl, "-n", namespace, "get", "pods", "-o", "json")
    eventually(lambda: "Insufficient cpu" in seen(), 60, seen)
    done = symph("upgrade", spec, "--wait", "--timeout", "2s")
    assert done.code == 6
    assert "Insufficient cpu" in done.err, done.err


def test_what_is_there_is_not_installed_twice_and_what_is_not_there_is_not_upgraded(
    symph: Symph, tmp_path: Path
) -> None:
    spec = spec_of(naps(), tmp_path)
    assert symph("upgrade", spec).code == 8
    assert symph("upgrade", spec, "--install").code == 0
    assert symph("install", spec).code == 7


def test_a_service_grows_although_a_variable_of_it_changes_its_kind(
    symph: Symph, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    # With one replica SYMPH_INDEX is a value, with two it comes from a label of the pod.
    spec = spec_of(naps("sleep 600", lifecycle="service"), tmp_path)
    assert symph("install", spec).code == 0
    grown = symph("upgrade", spec, "--set", "groups.nap.replicas=2")
    assert (grown.code, grown.err.partition("next:")[0]) == (0, "")
    assert programs.kubectl("-n", namespace, "get", "sts/naps-nap", "-o", "jsonpath={.spec.replicas}") == "2"


def test_a_missing_namespace_is_made_only_when_told(symph: Symph, programs: Programs, tmp_path: Path) -> None:
    spec, place = spec_of(naps(), tmp_path), f"made-{time.time_ns():x}"
    try:
        refused = symph("install", spec, place=place)
        assert (refused.code, "--create-namespace" in refused.err) == (8, True)
        assert symph("install", spec, "--create-namespace", "--dry-run", place=place).code == 0
        assert programs.try_run([str(programs.kubectl_path), "get", "namespace", place]).code == 1
        assert symph("install", spec, "--create-namespace", place=place).code == 0
    finally:
        programs.kubectl("delete", "namespace", place, "--ignore-not-found", "--wait=false")


@pytest.mark.usefixtures("any_helm")
def test_a_rollback_names_what_runs_again_and_wants_a_yes(symph: Symph, tmp_path: Path) -> None:
    spec = spec_of(naps(), tmp_path)
    assert symph("install", spec, "--wait-for-jobs").code == 0
    assert "in place: the run continues" in symph("upgrade", spec, "--dry-run").out
    assert "a new run" in symph("upgrade", spec, "--set", "runKey=two", "--dry-run").out
    assert "a new run" in symph("upgrade", spec, "--set", "runKey=two", "--wait-for-jobs").out
    asked = symph("rollback", "naps")
    assert (asked.code, "run again" in asked.err) == (2, True)
    done = symph("rollback", "naps", "--yes", "--wait", "-o", "json")
    assert (done.code, len(json.loads(done.out)["reruns"])) == (0, 1)
    history = json.loads(symph("history", "naps", "-o", "json").out)["items"]
    assert [(one["revision"], one["status"]) for one in history][:2] == [(3, "deployed"), (2, "superseded")]
    assert symph("rollback", "naps", "--to", "9", "--yes").code == 8


@pytest.mark.usefixtures("any_helm")
def test_an_uninstall_sweeps_leftovers_and_leaves_what_is_not_the_releases(
    symph: Symph, programs: Programs, namespace: str, held: Callable[[], set[str]], tmp_path: Path
) -> None:
    assert symph("install", spec_of(naps("sleep 600"), tmp_path)).code == 0
    of_helm = {"meta.helm.sh/release-name": "naps", "meta.helm.sh/release-namespace": namespace}
    others = {
        "leak": of_helm,
        "bare": {},
        "argo": {**of_helm, "argocd.argoproj.io/tracking-id": "naps:/ConfigMap:x/argo"},
        "else": {**of_helm, "meta.helm.sh/release-name": "other"},
    }
    labels = {"app.kubernetes.io/instance": "naps", "symph.dev/experiment": "naps"}
    for name, marks in others.items():
        meta = {"name": name, "labels": labels, "annotations": marks}
        programs.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, namespace=namespace)
    assert symph("uninstall", "naps").code == 2
    listed = json.loads(symph("uninstall", "naps", "--dry-run", "-o", "json").out)["items"]
    assert [one["name"] for one in listed if one["why"] == "leftover"] == ["ConfigMap/leak"]
    done = symph("uninstall", "naps", "--yes", "--wait", "--timeout", "90s")
    assert done.code == 0, done.err
    assert held() == {"configmap/bare", "configmap/argo", "configmap/else"}


@pytest.fixture
def foreign(release: Callable[..., Release], tmp_path: Path) -> Path:
    """Return a foreign chart, installed as the release `theirs`."""
    chart = tmp_path / "theirs"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: theirs\nversion: 0.1.0\n")
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: theirs\n"
    (chart / "templates" / "map.yaml").write_text(body)
    release("theirs").install(chart)
    return chart


def test_a_release_that_is_no_experiment_is_never_touched(
    symph: Symph, foreign: Path, held: Callable[[], set[str]]
) -> None:
    for words in ("uninstall theirs --yes", "status theirs", "rollback theirs", f"upgrade {foreign}"):
        assert symph(*words.split()).code == 8
    assert symph("install", str(foreign), "--name", "mine").code == 3
    assert held() == {"configmap/theirs"}


def test_an_object_of_somebody_else_is_a_conflict_before_anything_is_made(
    symph: Symph, programs: Programs, namespace: str, held: Callable[[], set[str]], tmp_path: Path
) -> None:
    chart = package_data({**naps(binds=["api"]), "name": "naps"}, tmp_path / "d")
    programs.kubectl("-n", namespace, "create", "service", "clusterip", "naps-api", "--tcp=1")
    done = symph("install", str(chart))
    assert (done.code, "Service/naps-api" in done.err) == (7, True)
    assert held() == {"service/naps-api"}


def test_a_name_in_git_and_on_the_cluster_is_wrong_usage_that_lists_both(
    programs: Programs, namespace: str, helm_path: Path, tmp_path: Path
) -> None:
    name, folder, kubeconfig = f"naps-{namespace}", tmp_path / "project", tmp_path / "kubeconfig"
    folder.mkdir()
    programs.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "charts.git")])
    settings = f"team: ml\nrepository: {{url: {tmp_path / 'charts.git'}, author: A <a@b.c>}}\nenvironments: [dev]\n"
    (folder / ".symph.yaml").write_text(settings)
    spec_of(naps(name=name), folder)
    kubeconfig.write_bytes(programs.kubeconfig.read_bytes())
    words = ("config", "set-context", "--current", "--namespace", namespace)
    programs.run([str(programs.kubectl_path), *words], more_env={"KUBECONFIG": str(kubeconfig)})
    env = {"KUBECONFIG": str(kubeconfig), "HELM_BIN": str(helm_path), "SYMPH_STATE_DIR": str(tmp_path / "state")}

    def symph(*words: str) -> Output:
        return programs.symph(*words, cwd=folder, env=env)

    def found(*words: str) -> list[dict[str, object]]:
        done = symph("status", name, *words, "-o", "json")
        assert done.out, done.err
        return list(json.loads(done.out)["items"])

    assert symph("publish", "naps.json", "--env", "dev", "--version", "0.1.0").code == 0
    assert [item["env"] for item in found()] == ["dev"]
    assert symph("install", "naps.json").code == 0
    for verb in ("history", "rollback"):
        both = symph(verb, name)
        assert (both.code, "--env dev or -n " + namespace in both.err) == (2, True), both.err
    assert [(item["env"], item["namespace"]) for item in found()] == [("dev", "default"), (None, namespace)]
    assert [item["heldBy"] for item in found("-n", namespace)] == [[f"Helm release {name}, revision 1"]]
    assert [item["env"] for item in found("--env", "dev")] == ["dev"]
