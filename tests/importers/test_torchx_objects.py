"""TorchX's own objects, as its releases emit them: every behaviour here was seen in TorchX's output."""

from __future__ import annotations

from typing import Any, cast

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.importers.torchx.objects import app_wrapper, mcad_name, mcad_service_port, volcano_job
from symphony_charts.importers.torchx.options import RunOptions
from tests.importers.samples import appdef, role

RANK0 = ["-c", "run ${rank0_env} ${app_id} ${replica_id} $$ ${img_root}|"]


def items(*roles: dict[str, object], options: RunOptions | None = None) -> list[dict[str, Any]]:
    wrapper = cast("dict[str, Any]", app_wrapper(appdef(*roles), options or RunOptions(), "train-x1"))
    assert all(item["replicas"] == 1 for item in wrapper["spec"]["resources"]["GenericItems"])
    return [item["generictemplate"] for item in wrapper["spec"]["resources"]["GenericItems"]]


def spec(**options: Any) -> dict[str, Any]:
    wrapper = cast("dict[str, dict[str, Any]]", app_wrapper(appdef(role()), RunOptions(**options), "train-x1"))
    return wrapper["spec"]


def tasks(*roles: dict[str, object], **options: Any) -> list[dict[str, Any]]:
    job = cast("dict[str, Any]", volcano_job(appdef(*roles), RunOptions(queue="q", **options), "train-x1"))
    return cast("list[dict[str, Any]]", job["spec"]["tasks"])


def test_the_whole_app_wrapper_of_one_replica() -> None:
    resource = {
        "cpu": 2,
        "gpu": 1,
        "memMB": 3000,
        "capabilities": {"node.kubernetes.io/instance-type": "p4d"},
        "devices": {"x.com/efa": 2},
    }
    app = appdef(role(args=["-m", "x"], env={"A": "1"}, port_map={"http": 80}, resource=resource))
    options = RunOptions(namespace="ml", service_account="sa", image_secret="pull", network="net")  # noqa: S106 - the name of a Secret
    assert app_wrapper(app, options, "train-x1") == {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": "train-x1", "namespace": "ml"},
        "spec": {
            "resources": {
                "GenericItems": [
                    {
                        "replicas": 1,
                        "generictemplate": {
                            "apiVersion": "v1",
                            "kind": "Pod",
                            "metadata": {
                                "name": "train-x1-0",
                                "namespace": "ml",
                                "annotations": {
                                    "sidecar.istio.io/inject": "false",
                                    "k8s.v1.cni.cncf.io/networks": "net",
                                },
                                "labels": {
                                    "app.kubernetes.io/name": "train",
                                    "app.kubernetes.io/managed-by": "torchx.pytorch.org",
                                    "app.kubernetes.io/instance": "train-x1",
                                    "torchx.pytorch.org/version": "0.7.0",
                                    "torchx.pytorch.org/app-name": "train",
                                    "torchx.pytorch.org/role-index": "0",
                                    "torchx.pytorch.org/role-name": "trainer",
                                    "torchx.pytorch.org/replica-id": "0",
                                },
                            },
                            "spec": {
                                "containers": [
                                    {
                                        "name": "train-x1-0",
                                        "image": "img:1",
                                        "command": ["python", "-m", "x"],
                                        "env": [
                                            {"name": "A", "value": "1"},
                                            {"name": "TORCHX_RANK0_HOST", "value": "localhost"},
                                            {"name": "TORCHX_MCAD_TRAINER_0_HOSTS", "value": "train-x1-0.train-x1"},
                                        ],
                                        "ports": [{"name": "http", "containerPort": 80}],
                                        "resources": {
                                            "limits": {
                                                "cpu": "2000m",
                                                "memory": "3000M",
                                                "nvidia.com/gpu": "1",
                                                "x.com/efa": "2",
                                            },
                                            "requests": {"cpu": "1900m", "memory": "1976M", "nvidia.com/gpu": "1"},
                                        },
                                        "securityContext": {},
                                        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
                                    }
                                ],
                                "restartPolicy": "Never",
                                "nodeSelector": {"node.kubernetes.io/instance-type": "p4d"},
                                "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
                                "serviceAccountName": "sa",
                                "hostname": "train-x1-0",
                                "subdomain": "train-x1",
                                "imagePullSecrets": [{"name": "pull"}],
                            },
                        },
                    },
                    {
                        "replicas": 1,
                        "generictemplate": {
                            "apiVersion": "v1",
                            "kind": "Service",
                            "metadata": {
                                "name": "train-x1",
                                "namespace": "ml",
                                "labels": {
                                    "app.kubernetes.io/name": "train",
                                    "app.kubernetes.io/managed-by": "torchx.pytorch.org",
                                    "app.kubernetes.io/instance": "train-x1",
                                },
                            },
                            "spec": {
                                "clusterIP": "None",
                                "publishNotReadyAddresses": True,
                                "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
                                "selector": {"app.kubernetes.io/instance": "train-x1"},
                                "sessionAffinity": "None",
                                "type": "ClusterIP",
                            },
                            "status": {"loadBalancer": {}},
                        },
                    },
                ]
            }
        },
    }


def test_items_are_pod_groups_then_pods_in_order_of_roles_then_the_service() -> None:
    options = RunOptions(coscheduler_name="gang")
    found = items(role(name="a", num_replicas=2), role(name="b"), options=options)
    names = [(item["kind"], item["metadata"]["name"]) for item in found]
    assert names == [
        ("PodGroup", "train-x1-pg0"),
        ("PodGroup", "train-x1-pg1"),
        ("Pod", "train-x1-0"),
        ("Pod", "train-x1-1"),
        ("Pod", "train-x1-0"),
        ("Service", "train-x1"),
    ]


def test_a_pod_group_per_role_uses_the_group_that_scheduler_plugins_dropped() -> None:
    group, pod, _ = items(role(num_replicas=1), options=RunOptions(coscheduler_name="gang"))
    assert group["apiVersion"] == "scheduling.sigs.k8s.io/v1alpha1"
    assert group["spec"] == {"minMember": 1}
    assert group["metadata"]["labels"]["appwrapper.workload.codeflare.dev"] == "train-x1"
    assert pod["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io"] == "train-x1-pg0"
    assert pod["spec"]["schedulerName"] == "gang"


def test_without_an_image_secret_there_is_an_empty_one() -> None:
    assert items(role())[0]["spec"]["imagePullSecrets"] == [{}]


def test_priority_zero_is_said_and_no_priority_is_not() -> None:
    assert spec(priority=0)["priority"] == 0
    assert "priority" not in spec()


def test_the_fewest_retries_of_all_roles_requeue_the_whole() -> None:
    app = appdef(role(name="a", max_retries=3, num_replicas=2), role(name="b", max_retries=2))
    found = cast("dict[str, Any]", app_wrapper(app, RunOptions(), "x"))["spec"]["schedulingSpec"]
    requeuing = {"timeInSeconds": 300, "maxTimeInSeconds": 0, "growthType": "exponential", "maxNumRequeuings": 2}
    assert found == {"minAvailable": 3, "requeuing": requeuing}


def test_a_role_without_retries_means_none_for_all() -> None:
    app = appdef(role(name="a", max_retries=3), role(name="b"))
    assert "schedulingSpec" not in cast("dict[str, Any]", app_wrapper(app, RunOptions(), "x"))["spec"]


def test_macros_differ_on_the_first_replica_of_the_first_role() -> None:
    first, second, other, _ = items(role(args=RANK0, num_replicas=2), role(name="ps-x", args=RANK0))
    assert first["spec"]["containers"][0]["command"][2] == "run TORCHX_RANK0_HOST train-x1 0 $ |"
    assert second["spec"]["containers"][0]["command"][2] == "run TORCHX_MCAD_TRAINER_0_HOSTS train-x1 1 $ |"
    assert other["spec"]["containers"][0]["command"][2] == "run TORCHX_MCAD_TRAINER_0_HOSTS train-x1 0 $ |"


def test_each_role_defines_only_its_own_hosts_variable() -> None:
    _, other, _ = items(role(), role(name="ps-x"))
    assert other["spec"]["containers"][0]["env"] == [
        {"name": "TORCHX_MCAD_PSX_0_HOSTS", "value": "train-x1-0.train-x1"}
    ]


def test_small_requests_go_down_to_nothing() -> None:
    pod = items(role(resource={"cpu": 0.05, "gpu": 0, "memMB": 100}))[0]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "0m", "memory": "0M"}


def test_mounts_are_numbered_and_a_device_makes_the_container_privileged() -> None:
    mounts = ["type=bind,src=/a,dst=/b,readonly", "type=volume,src=c,dst=/d", "type=device,src=/dev/x,perm=r"]
    pod = items(role(mounts=mounts))[0]["spec"]
    assert pod["volumes"][1:] == [
        {"name": "mount-0", "hostPath": {"path": "/a"}},
        {"name": "mount-1", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "mount-2", "hostPath": {"path": "/dev/x"}},
    ]
    assert [mount["readOnly"] for mount in pod["containers"][0]["volumeMounts"][1:]] == [True, False, True]
    assert pod["containers"][0]["securityContext"] == {"privileged": True}


@pytest.mark.parametrize(
    ("maps", "port"),
    [([{}], 29500), ([{"a": 1, "b": 2}], 2), ([{"a": 1}, {"b": 3}], 3), ([{"a": 1}, {}], 1), ([{"a": 70000}], 29500)],
)
def test_the_services_port_is_the_last_one_seen(maps: list[dict[str, int]], port: int) -> None:
    assert mcad_service_port(appdef(*[role(name=f"r{n}", port_map=ports) for n, ports in enumerate(maps)])) == port


@pytest.mark.parametrize(
    ("text", "name"),
    [("My_App!.v2", "myappv2"), ("-a", "a"), ("--a", "-a"), ("12ab", "ab"), ("a-", "a-"), ("1-My", "-my")],
)
def test_names_are_cleaned_as_mcad_cleans_them(text: str, name: str) -> None:
    assert mcad_name(text) == name


def test_labels_are_not_cleaned() -> None:
    wrapper = cast("dict[str, Any]", app_wrapper(appdef(role(name="a/b c")), RunOptions(), "x"))
    labels = wrapper["spec"]["resources"]["GenericItems"][0]["generictemplate"]["metadata"]["labels"]
    assert labels["torchx.pytorch.org/role-name"] == "a/b c"


def test_the_whole_volcano_job_of_one_replica() -> None:
    options = RunOptions(queue="batch", priority_class_name="high", service_account="sa")
    assert volcano_job(appdef(role(args=["x"])), options, "train-x1") == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train-x1"},
        "spec": {
            "schedulerName": "volcano",
            "queue": "batch",
            "priorityClassName": "high",
            "maxRetry": 0,
            "plugins": {"svc": ["--publish-not-ready-addresses"], "env": []},
            "tasks": [
                {
                    "replicas": 1,
                    "name": "trainer-0",
                    "template": {
                        "metadata": {
                            "annotations": {"sidecar.istio.io/inject": "false"},
                            "labels": {
                                "torchx.pytorch.org/version": "2026.10.26",
                                "torchx.pytorch.org/app-name": "train",
                                "torchx.pytorch.org/role-index": "0",
                                "torchx.pytorch.org/role-name": "trainer",
                                "torchx.pytorch.org/replica-id": "0",
                                "app.kubernetes.io/name": "train",
                                "app.kubernetes.io/managed-by": "torchx.pytorch.org",
                                "app.kubernetes.io/instance": "train-x1",
                            },
                        },
                        "spec": {
                            "containers": [
                                {
                                    "name": "trainer-0",
                                    "image": "img:1",
                                    "command": ["python", "x"],
                                    "env": [
                                        {"name": "TORCHX_RANK0_HOST", "value": "localhost"},
                                        {"name": "TORCHX_IMAGE", "value": "img:1"},
                                    ],
                                    "ports": [],
                                    "resources": {"limits": {}, "requests": {}},
                                    "securityContext": {},
                                    "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
                                }
                            ],
                            "restartPolicy": "Never",
                            "nodeSelector": {},
                            "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
                            "serviceAccountName": "sa",
                        },
                    },
                }
            ],
        },
    }


def test_tasks_below_min_replicas_must_run_and_the_others_may() -> None:
    assert [task["minAvailable"] for task in tasks(role(num_replicas=3, min_replicas=2))] == [1, 1, 0]


def test_a_role_without_min_replicas_says_nothing_of_it() -> None:
    assert "minAvailable" not in tasks(role(num_replicas=2))[0]


@pytest.mark.parametrize(
    ("policy", "policies"),
    [
        ("REPLICA", []),
        (
            "APPLICATION",
            [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}],
        ),
    ],
)
def test_retries_come_with_the_policies_of_the_role(policy: str, policies: list[dict[str, str]]) -> None:
    task = tasks(role(max_retries=2, retry_policy=policy))[0]
    assert (task["maxRetry"], task["policies"]) == (2, policies)


def test_volcano_names_the_variable_that_its_own_plugin_sets() -> None:
    _, other = tasks(role(name="Trainer_1"), role(name="ps", args=RANK0))
    assert "VC_TRAINER1_0_HOSTS" in other["template"]["spec"]["containers"][0]["command"][2]


def test_values_that_name_a_field_are_references_in_the_newer_release_only() -> None:
    app = appdef(role(env={"N": "[FIELD_PATH]spec.nodeName"}))
    new, old = (
        cast("dict[str, Any]", volcano_job(app, RunOptions(queue="q"), "x", release))["spec"]["tasks"][0]["template"][
            "spec"
        ]
        for release in ("2026.10.26", "0.7.0")
    )
    assert new["containers"][0]["env"][0] == {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    assert old["containers"][0]["env"][0] == {"name": "N", "value": "[FIELD_PATH]spec.nodeName"}


def test_a_volcano_job_without_a_queue_is_refused_as_torchx_refuses_it() -> None:
    with pytest.raises(SpecError, match="needs a queue"):
        volcano_job(appdef(), RunOptions(), "x")


@pytest.mark.parametrize(("count", "expected"), [(None, "2"), (0, None), (5, "5")])
def test_the_option_for_efa_devices_replaces_adds_or_removes(count: int | None, expected: str | None) -> None:
    resource = {"cpu": 0, "gpu": 0, "memMB": 0, "devices": {"vpc.amazonaws.com/efa": 2}}
    limits = tasks(role(resource=resource), efa_device_count=count)[0]["template"]["spec"]["containers"][0][
        "resources"
    ]["limits"]
    assert limits.get("vpc.amazonaws.com/efa") == expected


def test_an_overlay_merges_maps_appends_lists_and_obeys_its_operators() -> None:
    overlay = {
        "spec": {
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "gpu"}],
            "__put__:volumes": [],
            "__del__:restartPolicy": None,
            "__join__:containers:name": [{"name": "trainer-0", "tty": True}, {"name": "side"}],
        }
    }
    pod = tasks(role(metadata={"kubernetes": {"V1Pod": overlay}}))[0]["template"]["spec"]
    assert (pod["nodeSelector"], pod["tolerations"], pod["volumes"]) == ({"a": "b"}, [{"key": "gpu"}], [])
    assert "restartPolicy" not in pod
    assert [container.get("tty") for container in pod["containers"]] == [True, None]


def test_labels_of_the_newer_volcano_scheduler_are_cleaned_with_dots_at_their_ends() -> None:
    labels = tasks(role(name="!a/b!"))[0]["template"]["metadata"]["labels"]
    assert labels["torchx.pytorch.org/role-name"] == ".a.b."
