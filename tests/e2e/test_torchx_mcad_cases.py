"""TorchX's own tests of its MCAD scheduler, run against release 0.7.0 and against our replacement.

The file of those tests (schedulers/test/kubernetes_mcad_scheduler_test.py) is in no package, so each is a pair of
answers here, under its name; `OTHERS` are those that look at another scheduler by design.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

pytest.importorskip("torchx")

from kubernetes.client import ApiClient
from torchx.schedulers import kubernetes_mcad_scheduler as theirs
from torchx.specs import AppDef, AppState, BindMount, DeviceMount, Resource, Role, VolumeMount, macros

from symphony_charts.integrations.torchx.kubernetes_mcad import McadScheduler
from symphony_charts.torchx_scheduler import mcad

IN_ALL = 56
# They expect calls of a faked client, an import error without Kubernetes' client, a client that is handed in, images
# pushed by Docker, random app ids, or macros that are not filled in.
OTHERS = {
    *("submit", "submit_job_name_conflict", "cancel_existing", "describe", "describe_pending_dispatch"),
    *("describe_unknown", "describe_failure", "describe_unauthorized", "describe_unknown_failure", "list"),
    *("list_values", "list_failure", "log_iter", "NoImport.describe", "NoImport.dryrun", "create_scheduler"),
    *("submit_dryrun_patch", "push_patches", "get_unique_truncated_appid", "role_to_pod"),
}

Pair = tuple[object, object]


def app(**fields: Any) -> AppDef:
    """Return an application of one role that sets every field of a pod."""
    role = Role(
        name="trainer_foo",
        image="pytorch/torchx:latest",
        entrypoint="main",
        args=["--out", macros.img_root, "--id", macros.app_id, "--rank0", macros.rank0_env],
        env={"FOO": "bar"},
        resource=Resource(cpu=2, memMB=3000, gpu=4),
        port_map={"foo": 1234},
        num_replicas=1,
        max_retries=3,
        mounts=[BindMount(src_path="/src", dst_path="/dst", read_only=True)],
    )
    for name, value in fields.items():
        setattr(role, name, value)
    return AppDef("test", roles=[role])


def plain(value: object) -> Any:
    return ApiClient().sanitize_for_serialization(value)


def objects(made: AppDef, **options: Any) -> Pair:
    """Return the AppWrapper of an application, here under the id that TorchX drew."""
    names = ("service_account", "image_secret", "coscheduler_name", "priority_class_name", "network")
    given = {"namespace": "test", **dict.fromkeys(names), "priority": None, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = plain(theirs.app_to_resource(deepcopy(made), **given))
    return mcad.app_to_resource(made, **given, app_id=wanted["metadata"]["name"]), wanted


def named(name: str) -> Pair:
    """Return the AppWrapper of an application of that name, which is cleaned for labels."""
    made = app()
    made.name = name
    return objects(made)


def service(made: AppDef) -> Pair:
    """Return the Service of an application, on the port that TorchX finds for it."""
    made.roles[0].num_replicas = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        port = theirs.get_port_for_service(made)
    found = []
    for wrapper in objects(made):
        items: Any = wrapper["spec"]["resources"]["GenericItems"]  # type: ignore[index]  # a map, typed as an object
        found += [one["generictemplate"] for one in items if one["generictemplate"]["kind"] == "Service"]
    ours, wanted = found
    assert wanted["spec"]["ports"][0]["port"] == int(port)
    return ours, wanted


def roles(*paths: str) -> Pair:
    """Return the roles read from the items of an AppWrapper without the parts at `paths`."""
    wrapper: Any = objects(app())[1]
    items = wrapper["spec"]["resources"]["GenericItems"]
    for path in paths:
        *above, last = path.split(".")
        part: Any = items[0]["generictemplate"]
        for key in above:
            part = part[int(key) if key.isdecimal() else key]
        part.pop(last.replace("|", "."))
    return mcad.get_role_information(deepcopy(items)), theirs.get_role_information(deepcopy(items))


def options() -> Pair:
    return set(McadScheduler("x").run_opts()._opts), set(theirs.create_scheduler("x").run_opts()._opts)


def options_without_a_client() -> Pair:
    """Return, for both, if there are run options when Kubernetes' client cannot be imported."""
    line = "import sys; sys.modules['kubernetes'] = None; from {} import {} as made; print(bool(made('x').run_opts()))"
    said = [
        subprocess.run(
            [sys.executable, "-c", line.format(*home)], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for home in (
            ("symphony_charts.integrations.torchx.kubernetes_mcad", "McadScheduler"),
            ("torchx.schedulers.kubernetes_mcad_scheduler", "create_scheduler"),
        )
    ]
    return said[0], said[1]


def validated() -> Pair:
    """Check that neither refuses the application by raising."""
    McadScheduler("x")._validate(app(), "kubernetes_mcad")
    theirs.create_scheduler("x")._validate(app(), "kubernetes_mcad")
    return "taken", "taken"


def status(function: str, value: dict[str, Any]) -> Pair:
    return getattr(mcad, function)(deepcopy(value)), getattr(theirs, function)(deepcopy(value))


_VOLUMES = [VolumeMount(src="name", dst_path="/dst", read_only=True)]
_DEVICES = [DeviceMount(src_path="foo", dst_path="bar", permissions="rwm")]
_SECRET = {"image_secret": "foo"}
_LARGE = {"node.kubernetes.io/instance-type": "some_instance"}

CASES: dict[str, Callable[[], Pair]] = {
    "app_to_resource_resolved_macros": lambda: objects(app(), priority=0),
    "retry_not_set": lambda: objects(app(max_retries=0)),
    "create_pod_group": lambda: objects(app(num_replicas=2), coscheduler_name="test-co-scheduler"),
    "create_mcad_service": lambda: (
        mcad.mcad_svc(app(), "svc", "test", "1234"),
        plain(theirs.mcad_svc(app(), "svc", "test", "1234")),
    ),
    "validate": validated,
    "cleanup_str": lambda: named("-/_a/b/CD!123!"),
    "get_port_for_service": lambda: service(app()),
    "no_port": lambda: service(app(port_map={})),
    "invalid_port": lambda: service(app(port_map={"foo": 65536})),
    "get_pending_appwrapper_status": lambda: status("get_appwrapper_status", {}),
    "get_tasks_status_description": lambda: status(
        "get_tasks_status_description", {"state": "Running", "running": "1", "failed": "3", "Succeeded": "4"}
    ),
    "submit_dryrun": lambda: objects(app(), priority=0, **_SECRET, service_account="a"),
    "get_role_information_no_generic_items": lambda: (mcad.get_role_information([]), theirs.get_role_information([])),
    "volume_mounts": lambda: objects(app(mounts=_VOLUMES)),
    "device_mounts": lambda: objects(app(mounts=_DEVICES)),
    "resource_devices": lambda: objects(app(resource=Resource(1, 0, 1, devices={"vpc.amazonaws.com/efa": 4}))),
    "instance_type": lambda: objects(app(resource=Resource(1, 0, 1, capabilities=_LARGE))),
    "rank0_env": lambda: objects(app(num_replicas=2)),
    "submit_dryrun_service_account": lambda: objects(app(), service_account="foo"),
    "submit_dryrun_secret_name": lambda: objects(app(), **_SECRET),
    "submit_dryrun_priority": lambda: objects(app(), priority=0),
    "submit_dryrun_priority_class_name": lambda: objects(app(), priority_class_name="default-priority"),
    "submit_dryrun_network": lambda: objects(app(), network="test-network-conf"),
    "runopts": options,
    "NoImport.runopts": options_without_a_client,
}


_C = "spec.containers.0"
_DROPPED: dict[str, tuple[str, ...]] = {
    "get_role_information": (),
    "get_role_information_no_metadata": ("metadata",),
    "get_role_information_no_label": ("metadata.labels",),
    "get_role_information_no_role_name": ("metadata.labels.torchx|pytorch|org/role-name",),
    "get_role_information_no_specs": ("spec",),
    "get_role_information_no_image_name": (f"{_C}.image",),
    "get_role_information_no_resources": (f"{_C}.resources",),
    "get_role_information_no_cpu": (f"{_C}.resources.limits.cpu", f"{_C}.resources.requests.cpu"),
    "get_role_information_no_memory": (f"{_C}.resources.limits.memory", f"{_C}.resources.requests.memory"),
    "get_role_information_no_ports": (f"{_C}.ports",),
    "get_role_information_no_volume_mounts": (f"{_C}.volumeMounts",),
}
CASES |= {name: partial(roles, *paths) for name, paths in _DROPPED.items()}


@pytest.mark.parametrize("name", CASES)
def test_what_they_ask_is_answered_as_by_torchx(name: str) -> None:
    ours, wanted = CASES[name]()
    assert ours == wanted


@pytest.mark.parametrize(
    ("app_wrapper", "state"),
    [
        ({"status": {"state": "Completed"}}, AppState.SUCCEEDED),
        ({"status": {"state": "RunningHoldCompletion"}}, AppState.RUNNING),
        ({"status": {}}, AppState.PENDING),
        ({"status": {"state": "Odd"}}, AppState.UNKNOWN),
    ],
)
def test_no_state_of_an_appwrapper_is_an_error(app_wrapper: dict[str, Any], state: AppState) -> None:
    assert mcad.get_appwrapper_status(app_wrapper) is state


def test_without_an_app_id_the_same_application_gives_the_same_objects() -> None:
    made = [mcad.app_to_resource(app(), "ml", None, None, None, None, None) for _ in range(2)]
    assert made[0] == made[1]


def test_each_of_their_tests_is_a_case_here_or_is_named_with_a_reason() -> None:
    assert OTHERS.isdisjoint(CASES)
    assert (len(CASES), len(CASES) + len(OTHERS)) == (36, IN_ALL)
