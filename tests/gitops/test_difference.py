from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.gitops.diff import Side, compare, compare_sides, effect_of, outcome_of

scalars = st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.text("ab", max_size=2))
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3),
    max_leaves=8,
)


def item(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    api = {"Job": "batch/v1", "StatefulSet": "apps/v1"}.get(kind, "v1")
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **rest}


def job(run: str, image: str = "a:1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "agent", "image": image, "env": [{"name": "LR", "value": "1"}]}]
    return item("Job", f"rl-agent-{run}", spec={"template": {"spec": {"containers": containers}}, **spec})


def volcano(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def effects(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    return [effect_of(difference)[0] for difference in compare(before, after)]


@given(trees)
def test_equal_objects_differ_in_nothing(tree: object) -> None:
    assert effects([item("ConfigMap", "c", data=tree)], [item("ConfigMap", "c", data=tree)]) == ["nothing"]


@given(trees, trees)
def test_objects_that_differ_are_never_called_unchanged(old: object, new: object) -> None:
    (difference,) = compare([item("Secret", "c", data=old)], [item("Secret", "c", data=new)])
    assert (difference.change == "unchanged") == (old == new)


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True))
def test_every_object_of_either_side_is_told_once(old: list[str], new: list[str]) -> None:
    found = compare([item("Service", name) for name in old], [item("Service", name) for name in new])
    assert sorted(each.after or each.before for each in found) == sorted({*old, *new})


def test_a_job_of_another_run_is_the_same_job_anew() -> None:
    (difference,) = compare([job("11111111")], [job("22222222", image="a:2")])
    assert difference.name == "Job/rl-agent"
    assert [(field.path, field.before, field.after) for field in difference.fields] == [
        ("spec.template.spec.containers.agent.image", "a:1", "a:2")
    ]
    assert effect_of(difference) == ("new run", "pod template changed")


def test_a_variable_is_named_not_counted() -> None:
    after = job("22222222")
    after["spec"]["template"]["spec"]["containers"][0]["env"].insert(0, {"name": "A", "value": "x"})
    (difference,) = compare([job("11111111")], [after])
    assert [field.path for field in difference.fields] == ["spec.template.spec.containers.agent.env.A"]


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ([], [job("11111111")], "created"),
        ([job("11111111")], [], "pruned"),
        ([job("11111111", parallelism=1)], [job("11111111", parallelism=2)], "updated"),
        ([job("11111111", completions=1)], [job("11111111", completions=2)], "fails"),
        ([job("11111111")], [job("11111111", image="a:2")], "fails"),
        ([item("StatefulSet", "s", spec={"replicas": 1})], [item("StatefulSet", "s", spec={"replicas": 2})], "updated"),
        (
            [item("StatefulSet", "s", spec={"template": {"a": 1}})],
            [item("StatefulSet", "s", spec={"template": {"a": 2}})],
            "restarted",
        ),
        (
            [item("StatefulSet", "s", spec={"serviceName": "a"})],
            [item("StatefulSet", "s", spec={"serviceName": "b"})],
            "fails",
        ),
        ([item("ConfigMap", "c", data={"a": "1"})], [item("ConfigMap", "c", data={"a": "2"})], "fails"),
        ([item("ConfigMap", "c-11111111")], [item("ConfigMap", "c-22222222")], "created"),
        (
            [volcano("rl", minAvailable=2, tasks=[{"name": "agent", "minAvailable": 2, "template": {}}])],
            [volcano("rl", minAvailable=1, tasks=[{"name": "agent", "minAvailable": 1, "template": {}}])],
            "updated",
        ),
        ([volcano("rl", queue="a")], [volcano("rl", queue="b")], "fails"),
        ([volcano("rl-11111111")], [volcano("rl-22222222")], "new run"),
        (
            [item("AppWrapper", "rl", spec={"components": [{"template": {"spec": {"a": 1}}}]})],
            [item("AppWrapper", "rl", spec={"components": [{"template": {"spec": {"a": 2}}}]})],
            "fails",
        ),
        ([item("Service", "s", spec={"ports": 1})], [item("Service", "s", spec={"ports": 2})], "updated"),
    ],
)
def test_what_argo_cd_does_with_a_change(
    before: list[dict[str, Any]], after: list[dict[str, Any]], effect: str
) -> None:
    assert effects(before, after) == [effect]


def test_pods_of_a_service_are_replaced_with_the_run_that_they_belong_to() -> None:
    services = [
        item("StatefulSet", "s", spec={"template": {"metadata": {"labels": {"symph.dev/run": run}}, "spec": {}}})
        for run in ("11111111", "22222222")
    ]
    (difference,) = compare(services[:1], services[1:])
    assert (effect_of(difference)[0], difference.fields) == ("restarted", ())


def test_the_worst_effect_is_the_outcome() -> None:
    frozen = compare([job("11111111"), item("Service", "s")], [job("11111111", image="b"), item("Service", "s")])
    assert outcome_of(frozen) == "fails"
    assert outcome_of(compare([job("11111111")], [job("22222222")])) == "new run"
    assert outcome_of(compare([job("11111111")], [job("11111111")])) == "nothing"


def test_test_hooks_are_no_part_of_what_argo_cd_sees() -> None:
    hook = item("Pod", "t", spec={"containers": []})
    hook["metadata"]["annotations"] = {"helm.sh/hook": "test"}
    found = compare_sides(Side(title="a", objects=()), Side(title="b", objects=(hook,)))
    assert found.lines == ()
    assert found.summary == "nothing happens"
