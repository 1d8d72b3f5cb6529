"""The gate: real helm prints the objects that `assemble` makes, for examples, overrides and generated experiments.

If this holds, everything that is computed natively (lint, plan, diff, fit) speaks of what helm really installs.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.kinds.children import opened
from symphony_charts.kinds.registry import KINDS, kind_of
from symphony_charts.spec.data import from_data
from tests.chart.harness import (
    EXAMPLE_NAMES,
    assert_same,
    chart_of,
    example_chart,
    experiment_of,
    helm_objects,
    native_objects,
    run_helm,
    write_chart,
)
from tests.chart.strategies import HOSTILE, experiments, hostile_text
from tests.tools import HELM_VERSIONS

FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_helm_prints_what_assemble_makes(name: str, tmp_path: Path) -> None:
    assert_same(example_chart(name), tmp_path)


@FEW
@given(experiments())
def test_helm_prints_what_assemble_makes_of_generated_experiments(data: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_same(chart_of(from_data(data)), Path(folder))


SEALED = [
    ["secrets.source=sealed", "secrets.encryptedData.token=AgB1", "secrets.sealedFor=default/r1-e-secrets"],
    ["secrets.source=sealed", "secrets.name=made-apart"],
    ["secrets.source=sealed", "secrets.encryptedData.token=AgB1", "secrets.scope=cluster-wide", "secrets.name=mine"],
    ["secrets.source=external", "secrets.store.name=s"],
    ["secrets.source=external", "secrets.store.name=s", "secrets.files.token.remote=a#b#c"],
]


@pytest.mark.parametrize("sets", SEALED, ids=lambda sets: sets[-1])
def test_helm_prints_the_secrets_that_assemble_makes(sets: list[str], tmp_path: Path) -> None:
    data = {"name": "e", "image": "a:1", "secrets": ["/tmp/token"], "processes": {"p": {"command": ["x"]}}}
    assert_same(chart_of(from_data(data)), tmp_path, sets)


OVERRIDES = [
    ["groups.agent.replicas=32"],
    ["groups.agent.replicas=1"],
    ["groups.learner.replicas=3"],
    ["groups.agent.replicas=0"],
    ["groups.agent=null"],
    ["groups.learner=null"],
    ["services.replay-server.port=7777"],
    ["services.replay-server=null"],
    ["groups.agent.containers.agent.image=other:2"],
    ["groups.agent.containers.agent.resources.requests.cpu=2"],
    ["groups.agent.containers.agent.resources.limits.memory=3Gi"],
    ["groups.agent.containers.agent.env.LR=0.00000015"],
    ["groups.agent.containers.agent.env.BIG=10000000"],
    ["groups.agent.containers.agent.env.DEBUG=true"],
    ["groups.agent.containers.agent.env.SYMPH_INDEX=9"],
    ["groups.agent.containers.agent.args=one string"],
    ["groups.agent.containers.agent.args={a,b,3}"],
    ["groups.agent.containers.agent.lifecycle=service"],
    ["groups.agent.nodeSelector.pool=v100"],
    [
        "groups.agent.volumes.scratch.emptyDir.medium=Memory",
        "groups.agent.containers.agent.mounts.scratch.mountPath=/s",
    ],
    ["groups.agent.backoffLimit=4"],
    ["groups.agent.overlay.spec.hostIPC=true"],
    ["groups.agent.containers.agent.overlay.stdin=true"],
    ["runKey=7"],
    ["workload.kind=jobset"],
    ["workload.kind=jobset", "groups.agent.replicas=32", "groups.learner.replicas=2", "groups.agent.backoffLimit=4"],
    ["workload.kind=jobset", "workload.gang=kueue", "workload.queue=q", "groups.learner.replicas=0"],
    [
        "workload.gang=native",
        "workload.gangVersion=v1alpha2",
        "groups.agent.minReplicas=2",
        "groups.agent.backoffLimit=1",
    ],
    ["workload.gang=native", "workload.gangVersion=v1beta1", "workload.gangScope=group", "workload.kind=jobset"],
    ["workload.gang=native", "workload.gangVersion=v1beta1", "workload.gangTopology=example.org/block"],
    [
        "workload.gang=coscheduling",
        "defaults.schedulerName=co",
        "groups.agent.minReplicas=99",
        "groups.learner.keep=true",
    ],
    ["workload.gang=volcano", "workload.queue=q", "workload.gangScope=group"],
    ["workload.kind=appwrapper", "workload.gang=kueue", "workload.queue=q", "groups.learner.replicas=2"],
    ["workload.kind=appwrapper", "groups.agent.backoffLimit=4", "groups.learner.restartPolicy=OnFailure"],
    ["workload.kind=appwrapper", "workload.appwrapper.annotations.example=1", "groups.agent.replicas=0"],
    ["workload.kind=appwrapper", "workload.appwrapper.version=v1beta1", "workload.priority=-7"],
    [
        "workload.kind=appwrapper",
        "workload.appwrapper.version=v1beta1",
        "workload.appwrapper.annotations.example=x",
        "groups.agent.backoffLimit=4",
        "groups.agent.replicas=3",
        "groups.agent.minReplicas=2",
    ],
    ["workload.kind=volcano", "workload.queue=q", "groups.learner.replicas=2", "doneWhen={learner/learner}"],
    ["workload.kind=volcano", "groups.agent.backoffLimit=4", "groups.learner.restartPolicy=OnFailure"],
    ["workload.kind=volcano", "groups.agent.activeDeadlineSeconds=60", "groups.agent.minReplicas=1"],
    ["workload.kind=volcano", "defaults.priorityClassName=high", "workload.volcano.plugins.ssh={}"],
    ["workload.kind=volcano", "workload.volcano.plugins.svc={--x}", "doneWhen={learner/learner,agent/agent}"],
    ["workload.gang=volcano", "defaults.schedulerName=mine", "groups.agent.schedulerName=other"],
    ["workload.gang=kueue", "workload.queue=q", "workload.queuePriority=high"],
    ["workload.kind=argo"],
    ["workload.kind=argo", "groups.agent.replicas=3", "doneWhen={learner/learner}", "workload.argo.retries=1"],
    ["workload.kind=argo", "workload.argo.schedules=@daily", "workload.argo.serviceAccount=runner"],
    ["workload.kind=jobset", "workload.jobset.maxRestarts=2"],
    ["groups.agent.names={cache}", "groups.learner.names={db,on}", "services=null"],
    ["groups.agent.names={cache}", "groups.learner.names={db,on}", "groups.learner.keep=true"],
    ["workload.kind=jobset", "groups.agent.names={cache}"],
    ["workload.kind=volcano", "groups.learner.names={db}"],
    ["hold=true"],
    ["networkPolicy.enabled=true"],
    ["services.tensorboard.expose=Ingress", "services.tensorboard.host=tb.example.org"],
    ["services.tensorboard.expose=Gateway", "services.tensorboard.gateway=infra/public"],
    ["services.tensorboard.expose=NodePort"],
    ["services.tensorboard.expose=ClusterIP"],
    ["services.tensorboard.sourceRanges={10.0.0.0/8,192.168.0.0/16}"],
    ["fullnameOverride=a-name-that-is-longer-than-any-name-of-a-release-could-ever-sensibly-be"],
    ["nameOverride=other"],
    ["tests.enabled=false"],
    ["defaults.env.EVERYWHERE=1", "defaults.imagePullPolicy=Always", "defaults.imagePullSecrets={a,b}"],
    ["defaults.nodeSelector.pool=x", "groups.agent.nodeSelector.pool=y"],
    ["labels.team=ml", "annotations.note=x", "networks={a,b}"],
    ["secrets.files.token.only={agent/agent}", "secrets.files.all.only={}", "secrets.name=mine"],
]


@pytest.mark.parametrize("sets", OVERRIDES, ids=lambda sets: sets[0][:60])
def test_helm_and_assemble_agree_under_overrides(sets: list[str], tmp_path: Path) -> None:
    assert_same(example_chart("rl"), tmp_path, sets)


_SEALED = "secrets.source=sealed,secrets.files.token.only={}"


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["groups.agent.names={db}", "groups.learner.names={db}"], "groups.learner.names: another Service of the"),
        (["groups.agent.names={r1-rl-tensorboard}"], "groups.agent.names: another Service of the release is called r1"),
        ([_SEALED], "secrets.encryptedData: nothing is sealed for token"),
        ([_SEALED, "secrets.encryptedData.other=AgB1"], "secrets.encryptedData: nothing is sealed for token"),
        ([_SEALED, "secrets.name=mine", "secrets.encryptedData.token="], "nothing is sealed for token"),
        (
            [_SEALED, "secrets.encryptedData.token=AgB1", "secrets.sealedFor=ml/r1-rl-secrets"],
            "secrets.sealedFor: what is sealed opens as ml/r1-rl-secrets alone, and this is default/r1-rl-secrets",
        ),
        (
            [_SEALED, "secrets.encryptedData.token=AgB1", "secrets.sealedFor=ml", "secrets.scope=namespace-wide"],
            "secrets.sealedFor: what is sealed opens as ml alone, and this is default",
        ),
        *(
            (
                [
                    f"services.tensorboard.{said}"
                    for said in (f"expose={way}", "gateway=g", "sourceRanges={10.0.0.0/8}")
                ],
                f"services.tensorboard.sourceRanges: a LoadBalancer alone keeps others out, no {way}",
            )
            for way in ("NodePort", "Ingress", "Gateway")
        ),
    ],
)
def test_what_would_not_be_what_was_meant_is_refused_by_both(sets: list[str], said: str, tmp_path: Path) -> None:
    chart = example_chart("rl")
    with pytest.raises(SpecError, match=re.escape(said)):
        native_objects(chart, sets)
    where = write_chart(chart, tmp_path)
    for version in HELM_VERSIONS:
        arguments = [word for text in sets for word in ("--set", text)]
        ended = run_helm(version, "template", "r1", where, *arguments, check=False)
        assert ended.returncode != 0
        assert said in ended.stderr


def test_a_group_added_by_a_values_file_works(tmp_path: Path) -> None:
    group = {"containers": {"watch": {"image": "busybox:1.37.0", "command": "sleep", "lifecycle": "service"}}}
    values = {
        "groups": {"watcher": group},
        "services": {"watch": {"group": "watcher", "process": "watch", "port": 9000}},
    }
    assert_same(example_chart("rl"), tmp_path, values=values)


@pytest.mark.parametrize("gang", ["none", "kueue", "native", "coscheduling", "volcano"])
@pytest.mark.parametrize("queue", ["", "q"])
@pytest.mark.parametrize("kind", KINDS)
def test_helm_and_assemble_refuse_the_same_combinations(kind: str, queue: str, gang: str, tmp_path: Path) -> None:
    chart = example_chart("rl")
    sets = [f"workload.kind={kind}", f"workload.gang={gang}", f"workload.queue={queue}"]
    where = write_chart(chart, tmp_path)
    try:
        native_objects(chart, sets)
    except SpecError as error:
        said = [f"{problem.path}: {problem.what}" for problem in error.problems]
    else:
        said = []
    for version in HELM_VERSIONS:
        arguments = [word for text in sets for word in ("--set", text)]
        ended = run_helm(version, "template", "r1", where, *arguments, check=False)
        assert bool(ended.returncode) == bool(said), ended.stderr
        assert all(line in ended.stderr for line in said), ended.stderr


_WORKLOADS: list[dict[str, object]] = [
    {},
    {"kind": "jobset"},
    {"kind": "appwrapper"},
    {"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}},
    {"kind": "volcano"},
]


@FEW
@given(st.lists(hostile_text, min_size=1, max_size=8), st.sampled_from(_WORKLOADS))
@example(list(HOSTILE), _WORKLOADS[0])
@example(list(HOSTILE), _WORKLOADS[1])
@example(list(HOSTILE), _WORKLOADS[2])
@example(list(HOSTILE), _WORKLOADS[3])
@example(list(HOSTILE), _WORKLOADS[4])
def test_hostile_strings_come_back_intact(texts: list[str], workload: dict[str, object]) -> None:
    env = {f"E{index}": text for index, text in enumerate(texts)}
    experiment = experiment_of(
        processes={"p": {"command": ["prog", *texts], "args": texts, "env": env, "annotations": {"note": texts[0]}}},
        configs={f"f{index}": {"text": text} for index, text in enumerate(texts)},
        workload=workload,
    )
    chart = chart_of(experiment)
    with tempfile.TemporaryDirectory() as folder:
        where = write_chart(chart, Path(folder))
        for version in HELM_VERSIONS:
            objects = helm_objects(version, where)
            (job,) = [item for item in opened(objects.values()) if kind_of(item) == "Job"]
            (config,) = [item for key, item in objects.items() if key[0] == "ConfigMap"]
            container = job["spec"]["template"]["spec"]["containers"][0]  # type: ignore[index]  # parsed YAML
            assert container["command"] == ["prog", *texts]
            assert container["args"] == texts
            assert {entry["name"]: entry.get("value") for entry in container["env"]}.items() >= env.items()
            assert config["data"] == {f"f{index}": text for index, text in enumerate(texts)}
            assert objects == native_objects(chart)
