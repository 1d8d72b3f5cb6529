"""Behaviour that needs a cluster: foreign namespaces, ownership, the reasons of the scheduler, kubeconfig."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.backend.status import LogQuery
from symphony_charts.clusters.kubernetes import KubeCluster
from symphony_charts.errors import CheckFailed, Conflict, NotFound, SpecError, UsageError
from symphony_charts.kubernetes import client
from symphony_charts.kubernetes.backend import KubeWatcher
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.releases.releases import Releases, prepared_chart
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data
from tests.e2e.programs import Programs
from tests.e2e.release_pairs import WIDGETS
from tests.tools import newest_helm
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("as_user")

_ATTEMPTS = 1000 if "SYMPH_SOAK" in os.environ else 150
FOREVER = {"command": ["sleep", "300"], "grace_period": 1}


def launch(cluster: KubeCluster, name: str = "exp", *, force: bool = False, **more: Any) -> None:
    data = {"name": name, "image": "python:3.12-slim", "processes": {"a": FOREVER}, **more}
    cluster.launch(from_data(data), force=force)


def names_in(programs: Programs, namespace: str, kinds: str = "jobs,services,configmaps,secrets,pods") -> set[str]:
    return set(programs.kubectl("-n", namespace, "get", kinds, "-o", "name").split())


def test_nothing_that_is_not_ours_is_listed_or_deleted_whatever_it_is_called(
    programs: Programs, namespace: str
) -> None:
    for name in ("web", "db", "exp-1"):
        programs.kubectl("-n", namespace, "create", "configmap", name)
        programs.kubectl("-n", namespace, "create", "service", "clusterip", name, "--tcp=80")
        programs.kubectl("-n", namespace, "create", "job", name, "--image=busybox", "--", "sleep", "300")
    # A subset of our labels is no proof of ownership.
    programs.kubectl("-n", namespace, "label", "job", "web", "app.kubernetes.io/instance=web")
    programs.kubectl("-n", namespace, "label", "job", "db", "symph.dev/run=r1", "symph.dev/group=db")
    before = names_in(programs, namespace, "jobs,services,configmaps")
    chance = random.Random(7)
    words = ["web", "db", "exp-1", namespace, "default", "kube-system", "argocd", "", "*", ".*", "a,b", "!x", "="]
    words += ["a in (b)", "web,symph.dev/experiment", "web\n", "..", "/", "%2e%2e", "app.kubernetes.io/instance=web"]
    letters = ["web", "-", "b", "1", ",", "=", "*", "(", " ", "é"]
    words += ["".join(chance.choices(letters, k=4)) for _ in range(_ATTEMPTS - len(words))]
    watchers = [KubeWatcher(), KubeWatcher(namespace=namespace), KubeWatcher(namespace="kube-system")]
    for word in words:
        with pytest.raises((NotFound, Conflict)):
            chance.choice(watchers).delete(word)
    assert names_in(programs, namespace, "jobs,services,configmaps") == before
    for space in (namespace, "default", "kube-system", "kube-public", "kube-node-lease"):
        assert programs.kubectl("get", "namespace", space, "-o", "jsonpath={.status.phase}") == "Active"
    assert not {"web", "db", "exp-1", namespace, "default"} & set(KubeCluster().list_experiments())
    with pytest.raises(Conflict, match="kube-system"):
        launch(KubeCluster(namespace="kube-system"))


def test_what_git_manages_is_neither_replaced_nor_deleted(programs: Programs, namespace: str) -> None:
    cluster = KubeCluster(namespace=namespace)
    launch(cluster)
    before = names_in(programs, namespace)
    for verb, key in (("annotate", "argocd.argoproj.io/tracking-id"), ("label", "helm.toolkit.fluxcd.io/name")):
        programs.kubectl("-n", namespace, verb, "jobs", "--all", f"{key}=dev")
        with pytest.raises(Conflict) as replaced:
            launch(cluster, force=True)
        with pytest.raises(Conflict) as deleted:
            cluster.delete("exp")
        assert ("symph publish" in replaced.value.next, "symph retire" in deleted.value.next) == (True, True)
        assert names_in(programs, namespace) >= before
        programs.kubectl("-n", namespace, verb, "jobs", "--all", f"{key}-")


def test_helm_and_server_side_apply_make_the_same_objects(
    programs: Programs, namespace: str, as_user: pytest.MonkeyPatch
) -> None:
    made = []
    for path in (None, newest_helm()):
        if path:
            as_user.setenv("HELM_BIN", str(path))
        cluster = KubeCluster(namespace=namespace)
        launch(cluster, processes={"a": {**FOREVER, "binds": ["web"]}})
        status = cluster.describe("exp")
        assert status is not None
        assert [one.held_by for one in cluster.list()] == [status.held_by]
        listed = json.loads(
            programs.kubectl(
                "-n", namespace, "get", "jobs,services,configmaps", "-l", "symph.dev/experiment", "-o", "json"
            )
        )
        made.append((status.held_by, {_title(item): _content(item) for item in listed["items"]}))
        cluster.set_experiment("exp")
        cluster.delete("exp")
        cluster.wait("exp", "deleted", timeout_s=60)
    (by_hand, applied), (by_helm, installed) = made
    assert by_hand == ("symph",)
    assert by_helm == ("Helm release exp, revision 1",)
    assert applied == installed


def test_declared_secrets_are_pushed_before_and_go_with_the_experiment(
    programs: Programs, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("s3cret")
    cluster = KubeCluster(namespace=namespace)
    data = {"name": "exp", "image": "python:3.12-slim", "secrets": ["token"]}
    command = ["sh", "-c", "echo $(cat /etc/secrets/token); sleep 300"]
    experiment = from_data({**data, "processes": {"a": {"command": command, "grace_period": 1}}})
    cluster.start(experiment, folder=tmp_path, pins={})
    eventually(lambda: cluster.get_log("exp", "a") == "s3cret\n", 60, "the secret was not seen")
    assert "secret/exp-secrets" in names_in(programs, namespace)
    cluster.delete("exp")
    assert "secret/exp-secrets" not in names_in(programs, namespace)


def test_every_object_that_the_cluster_refuses_is_named_before_any_is_made(programs: Programs, namespace: str) -> None:
    before = names_in(programs, namespace)
    bad = {**FOREVER, "container_overlay": {"imagePullPolicy": "Sometimes"}}
    with pytest.raises(SpecError) as caught:
        launch(KubeCluster(namespace=namespace), processes={"a": bad, "b": bad})
    assert len(caught.value.problems) == 2
    assert names_in(programs, namespace) == before


def test_one_name_in_two_namespaces_must_be_told_apart(programs: Programs, namespace: str) -> None:
    other = f"{namespace}-b"
    try:
        for space in (namespace, other):
            launch(KubeCluster(namespace=space), f"twin-{namespace}")
        with pytest.raises(UsageError, match="several namespaces"):
            KubeCluster().describe(f"twin-{namespace}")
        with pytest.raises(UsageError):
            KubeCluster().delete(f"twin-{namespace}")
    finally:
        programs.kubectl("delete", "namespace", other, "--wait=false")


def test_the_container_before_a_restart_can_be_read(namespace: str) -> None:
    script = "echo at $(cut -d. -f1 /proc/uptime); sleep 0.2; exit 1"
    process = {"command": ["sh", "-c", script], "lifecycle": "service", "grace_period": 1}
    cluster = KubeCluster(namespace=namespace)
    launch(cluster, processes={"a": process})

    def restarts() -> int:
        status = cluster.describe("exp")
        return sum(one.restarts for one in status.instances) if status else 0

    eventually(restarts, 60, "it does not restart")
    (line,) = cluster.logs("exp", LogQuery(previous=True))
    assert line.text.startswith("at ")


def test_following_goes_on_over_a_new_run_and_ends_with_the_experiment(
    namespace: str, tmp_path: Path, as_user: pytest.MonkeyPatch
) -> None:
    as_user.setenv("HELM_BIN", str(newest_helm()))
    cluster = KubeCluster(namespace=namespace)
    launch(cluster, processes={"a": _saying("one")})
    lines: list[str] = []
    followed = (line.text for line in cluster.logs("exp", LogQuery(follow=True)))
    reader = threading.Thread(target=lambda: lines.extend(followed), daemon=True)
    reader.start()
    eventually(lambda: "one\n" in lines, 60, "the first run says nothing")
    changed = from_data({"name": "exp", "image": "python:3.12-slim", "processes": {"a": _saying("two")}})
    with prepared_chart(prepare_experiment(changed), tmp_path, "0.2.0") as source, Releases() as releases:
        releases.upgrade("exp", source.chart, namespace=namespace)
    eventually(lambda: "two\n" in lines, 60, "the second run is not followed")
    cluster.delete("exp")
    reader.join(timeout=60)
    assert not reader.is_alive()
    assert lines == ["one\n", "two\n"]


def _saying(word: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", f"echo {word}; exec sleep 300"], "grace_period": 1}


def test_events_are_followed_until_the_experiment_has_ended(programs: Programs, namespace: str) -> None:
    failing = {"command": ["sh", "-c", "exit 3"], "restart": "never"}
    cluster = KubeCluster(namespace=namespace)
    launch(cluster, processes={"a": failing})
    with pytest.raises(CheckFailed):
        cluster.wait("exp", "succeeded", timeout_s=60)
    # Deleted pods do not report their end, and no further event comes.
    programs.kubectl("-n", namespace, "delete", "pods", "--all", "--timeout=60s")
    seen: list[str] = []
    reader = threading.Thread(
        target=lambda: seen.extend(e.reason for e in KubeWatcher(namespace=namespace).events("exp", follow=True)),
        daemon=True,
    )
    reader.start()
    reader.join(60)
    assert not reader.is_alive()
    assert "SuccessfulCreate" in seen


def test_a_reader_that_comes_after_a_restart_reads_what_was_written_before_it(
    namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KubeCluster(namespace=namespace)
    program = "echo try; test -e /mnt/tried && exit; touch /mnt/tried; exit 1"
    kept = [{"at": "/mnt", "empty_dir": None}]
    again = {"command": ["sh", "-c", program], "restart": "on-failure", "retries": 3, "mounts": kept}
    cluster.launch(from_data({"name": "exp", "image": "python:3.12-slim", "processes": {"a": again}}))
    log = KubeApi.log

    def late(api: KubeApi, *arguments: Any, **options: Any) -> Any:
        cluster.wait("exp", "succeeded", timeout_s=60)
        return log(api, *arguments, **options)

    monkeypatch.setattr(KubeApi, "log", late)
    followed = [line.text for line in cluster.logs("exp", LogQuery(follow=True))]
    assert (followed, [line.text for line in cluster.logs("exp")]) == (["try\n", "try\n"], ["try\n", "try\n"])


def served(api_version: str, namespace: str) -> str | None:
    api = KubeApi()
    try:
        path = api.collection(api_version, "Widget", namespace)
        api.listed(path)
    except NotFound:
        return None
    return path


def test_a_watch_whose_place_is_forgotten_looks_again(
    programs: Programs, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A new kind, so that no server remembers an earlier definition.
    group = f"{namespace}.example.org"
    programs.apply(json.loads(json.dumps(WIDGETS).replace(WIDGETS["spec"]["group"], group)))
    programs.establish(f"widgets.{group}")
    api = KubeWatcher(namespace=namespace).api
    path = eventually(lambda: served(f"{group}/v1", namespace), 60, "the kind is not served")
    whole = api._call
    asked: list[str] = []

    def forgotten(*args: Any, **options: Any) -> dict[str, Any]:
        asked.append("list")
        return {"metadata": {"resourceVersion": "1"}} if len(asked) == 1 else whole(*args, **options)

    monkeypatch.setattr(api, "_call", forgotten)
    try:
        looks = (event for event in api.watch(path, timeout_s=30) if event is None)
        assert len(list(itertools.islice(looks, 2))) == 2
    finally:
        programs.kubectl("delete", f"crd/widgets.{group}")


def test_a_change_wakes_a_watch_without_a_poll(namespace: str) -> None:
    cluster = KubeCluster(namespace=namespace)
    launch(cluster)
    cluster.wait("exp", "ready", timeout_s=60)
    threading.Timer(1.0, cluster.delete, ["exp"]).start()
    started = time.monotonic()
    assert cluster.wait("exp", "deleted", timeout_s=60) is None
    assert time.monotonic() - started < 30


def test_pages_of_a_long_list_are_put_together(
    programs: Programs, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{number}" for number in range(7)]
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names]
    programs.apply(*items, namespace=namespace)
    api = KubeWatcher().api
    monkeypatch.setattr(client, "_PAGE", 3)
    found = {item["metadata"]["name"] for item in api.listed(api.collection("v1", "ConfigMap", namespace))}
    assert set(names) <= found


def _title(item: dict[str, Any]) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"


def _content(item: dict[str, Any]) -> object:
    """Return the fields of an object that the chart sets, without the cluster's additions."""
    spec = dict(item.get("spec") or {})
    for name in ("clusterIP", "clusterIPs", "selector"):
        spec.pop(name, None) if item["kind"] == "Job" or name != "selector" else None
    template = spec.get("template", {}).get("metadata", {}).get("labels", {})
    for name in [name for name in template if "controller-uid" in name or "job-name" in name]:
        del template[name]
    return item["metadata"]["labels"], spec, item.get("data")
