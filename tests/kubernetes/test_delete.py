"""`remove` finds the objects of a release by its labels, and deletes nothing else."""

from __future__ import annotations

from typing import cast

import pytest

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.experiments import KubeExperiments, objects_of_release, remove


def made(kind: str, name: str, release: str = "blue", namespace: str = "ml", **labels: str) -> Object:
    own = {"symph.dev/experiment": "rl", "app.kubernetes.io/instance": release, **labels}
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace, "uid": f"{kind}/{name}", "labels": own}}


def pushed(name: str, release: str = "blue", namespace: str = "ml", experiment: str = "rl") -> Object:
    labels = {"app.kubernetes.io/managed-by": "symph", "symph.dev/experiment": experiment}
    return made("Secret", name, release, namespace, **labels)


class Cluster:
    """A stub for a cluster with these objects, which records the titles of deleted objects."""

    namespace = context = "ml"

    def __init__(self, *objects: Object) -> None:
        self.objects = objects
        self.deleted: list[str] = []

    def collection(self, api_version: str, kind: str, namespace: str | None) -> str:
        return f"{namespace or '*'}/{kind}"

    def serves(self, api_version: str, kind: str) -> bool:
        return False

    def listed(self, path: str, selector: str = "", *, metadata_only: bool = False) -> list[Object]:
        namespace, _, kind = path.partition("/")
        found = [item for item in self.objects if item["kind"] == kind and _has(item, selector)]
        return [item for item in found if namespace in ("*", item["metadata"]["namespace"])]

    def delete(self, item: Object) -> bool:
        self.deleted.append(item["metadata"]["uid"])
        return True


def _has(item: Object, selector: str) -> bool:
    labels = item["metadata"]["labels"]
    pairs = [part.partition("=") for part in selector.split(",")]
    return all(key in labels and (not equals or labels[key] == text) for key, equals, text in pairs)


def on(cluster: Cluster) -> KubeExperiments:
    return KubeExperiments(api=cast("KubeApi", cluster))


JOB = made("Job", "blue-rl-a-1")


def test_the_secret_that_was_pushed_for_a_release_goes_with_it() -> None:
    cluster = Cluster(JOB, pushed("any-name"))
    assert remove(on(cluster), "blue") == ["Job/blue-rl-a-1", "Secret/any-name"]
    assert sorted(cluster.deleted) == ["Job/blue-rl-a-1", "Secret/any-name"]


def test_the_conductor_goes_with_the_experiment() -> None:
    conductor = made("Job", "blue-rl-1-conductor", **{"app.kubernetes.io/component": "conductor"})
    cluster = Cluster(JOB, conductor)
    assert remove(on(cluster), "blue") == ["Job/blue-rl-1-conductor", "Job/blue-rl-a-1"]


@pytest.mark.parametrize(
    "secret",
    [
        pushed("of-another-release", release="green"),
        pushed("of-another-namespace", namespace="lab"),
        pushed("of-another-experiment", experiment="other"),
        {**pushed("of-an-operator"), "metadata": {**pushed("of-an-operator")["metadata"], "ownerReferences": [{}]}},
    ],
)
def test_secrets_of_others_are_left(secret: Object) -> None:
    cluster = Cluster(JOB, secret)
    remove(on(cluster), "blue")
    assert cluster.deleted == ["Job/blue-rl-a-1"]


def test_a_secret_that_git_manages_keeps_the_release() -> None:
    secret = pushed("any-name")
    secret["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "app:/Secret:ml/any-name"}
    cluster = Cluster(JOB, secret)
    with pytest.raises(Conflict, match='manages "blue" from Git'):
        remove(on(cluster), "blue")
    assert cluster.deleted == []


def test_a_secret_that_was_pushed_before_its_release_is_no_release() -> None:
    with pytest.raises(NotFound):
        objects_of_release(on(Cluster(pushed("any-name"))), "blue")
