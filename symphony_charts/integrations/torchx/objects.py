"""Make the AppWrapper that TorchX's MCAD scheduler makes of an application, under a given app id.

For users whose tools read these objects. Only this module keeps their faults (pods of two roles collide, labels are
not cleaned, one object per replica); experiments of `importers.torchx` do not have them.

Source: meta-pytorch/torchx, torchx/schedulers/kubernetes_mcad_scheduler.py (release 0.7.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Log
from symphony_charts.integrations.torchx import components
from symphony_charts.integrations.torchx.appdef import (
    RANK0_VARIABLE,
    AnyMount,
    AppDef,
    BindMount,
    DeviceMount,
    Resource,
    Role,
    VolumeMount,
    substitute,
)
from symphony_charts.integrations.torchx.importer import appdef_of
from symphony_charts.integrations.torchx.options import RunOptions, parse_cfg, pushed_image

# Source: meta-pytorch/torchx, role_to_pod in torchx/schedulers/kubernetes_mcad_scheduler.py.

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_GPU = "nvidia.com/gpu"
# TorchX reduces requests by these amounts for the node itself, since it intends to fill whole nodes.
_RESERVED_MILLICPU = 100
_RESERVED_MB = 1024


def pod_spec(
    role: Role, *, container: str, service_account: str | None, extra_env: Mapping[str, str]
) -> dict[str, object]:
    """Return the pod spec of one replica with macros already filled in."""
    volumes: list[object] = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]
    mounts: list[object] = [{"name": "dshm", "mountPath": "/dev/shm"}]  # noqa: S108 - a path in the container
    for index, mount in enumerate(role.mounts):
        volume, volume_mount = _mount(f"mount-{index}", mount)
        volumes.append(volume)
        mounts.append(volume_mount)
    is_privileged = any(isinstance(mount, DeviceMount) for mount in role.mounts)
    made: dict[str, object] = {
        "name": container,
        "image": role.image,
        "command": [role.entrypoint, *role.args],
        "env": [*({"name": name, "value": value} for name, value in role.env.items()), dict(extra_env)],
        "ports": [{"name": name, "containerPort": port} for name, port in role.port_map.items()],
        "resources": _resources(role.resource),
        "securityContext": {"privileged": True} if is_privileged else {},
        "volumeMounts": mounts,
    }
    instance = role.resource.capabilities.get(_INSTANCE_TYPE)
    spec: dict[str, object] = {
        "containers": [made],
        "restartPolicy": "Never",
        "nodeSelector": {} if instance is None else {_INSTANCE_TYPE: instance},
        "volumes": volumes,
    }
    if service_account is not None:
        spec["serviceAccountName"] = service_account
    return spec


def _resources(resource: Resource) -> dict[str, object]:
    """Return limits as requested, and requests reduced by the node's reserve, at least zero."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    if resource.cpu > 0:
        millis = int(resource.cpu * 1000)
        limits["cpu"], requests["cpu"] = f"{millis}m", f"{max(millis - _RESERVED_MILLICPU, 0)}m"
    if resource.memory_mb > 0:
        limits["memory"] = f"{resource.memory_mb}M"
        requests["memory"] = f"{max(resource.memory_mb - _RESERVED_MB, 0)}M"
    if resource.gpu > 0:
        limits[_GPU] = requests[_GPU] = str(resource.gpu)
    limits |= {name: str(count) for name, count in resource.devices.items()}
    return {"limits": limits, "requests": requests}


def _mount(name: str, mount: AnyMount) -> tuple[dict[str, object], dict[str, object]]:
    if isinstance(mount, VolumeMount):
        volume: dict[str, object] = {"name": name, "persistentVolumeClaim": {"claimName": mount.src}}
        is_read_only = mount.read_only
    else:
        volume = {"name": name, "hostPath": {"path": mount.src_path}}
        is_read_only = mount.read_only if isinstance(mount, BindMount) else mount.is_read_only
    return volume, {"name": name, "mountPath": mount.dst_path, "readOnly": is_read_only}


# The last release with an MCAD scheduler.
VERSION = "0.7.0"
NO_VOLCANO = (
    "for TorchX's Volcano Job: `torchx run -s kubernetes --dryrun`; for one of symph: kind=volcano without compat"
)
POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
_LABELS = "torchx.pytorch.org/"
_DEFAULT_PORT = 29500
_EMBEDDED_ISTIO = {"sidecar.istio.io/inject": "false"}


def submitted_objects(source: Source, cfg: str, app_id: str) -> dict[str, object]:
    """Return the AppWrapper of the AppDef in a file, with the run options `cfg` if it is not empty.

    Raises:
      SpecError: The AppDef or its options have faults.
    """
    log = Log()
    app, options = appdef_of(source, log)
    options = parse_cfg(cfg, log) if cfg else options
    log.raise_faults()
    return app_wrapper(app, options, app_id)


def followed_version() -> str:
    """Return the release of TorchX whose objects are made: the installed one if it has an MCAD scheduler."""
    try:
        has_scheduler = find_spec("torchx.schedulers.kubernetes_mcad_scheduler") is not None
    except ModuleNotFoundError:
        return VERSION
    return components.installed_version() if has_scheduler else VERSION


def mcad_name(text: str) -> str:
    """Return a name as the MCAD scheduler cleans it: drop one leading dash, keep `a-z0-9-`, drop leading digits."""
    return "".join(re.findall(r"[a-z0-9-]", text.removeprefix("-").lower())).lstrip("0123456789")


def app_wrapper(app: AppDef, options: RunOptions, app_id: str, version: str = "") -> dict[str, object]:
    """Return the AppWrapper v1beta1 of `torchx run -s kubernetes_mcad`, labelled with TorchX's version."""
    version = version or followed_version()
    app = _shortened(_pushed(app, options))
    namespace = options.namespace or "default"
    items: list[object] = []
    if options.coscheduler_name is not None:
        items += [_pod_group(app, index, role, namespace, app_id) for index, role in enumerate(app.roles)]
    items += list(_mcad_pods(app, options, app_id, namespace, version))
    items.append(mcad_service(app, namespace, app_id, mcad_service_port(app)))
    spec: dict[str, object] = {
        "resources": {"GenericItems": [{"replicas": 1, "generictemplate": item} for item in items]}
    }
    if options.priority is not None:
        spec["priority"] = options.priority
    if (retries := min(role.max_retries for role in app.roles)) > 0:
        spec["schedulingSpec"] = {
            "minAvailable": sum(role.num_replicas for role in app.roles),
            "requeuing": {
                "timeInSeconds": 300,
                "maxTimeInSeconds": 0,
                "growthType": "exponential",
                "maxNumRequeuings": retries,
            },
        }
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": app_id, "namespace": namespace},
        "spec": spec,
    }


def mcad_service_port(app: AppDef) -> int:
    """Return the port of the only Service: the last port of all roles, or the default if that is invalid."""
    ports = [port for role in app.roles for port in role.port_map.values()]
    return ports[-1] if ports and 0 < ports[-1] <= 65535 else _DEFAULT_PORT


def _shortened(app: AppDef) -> AppDef:
    """Return the application with a name that leaves room for a pod group, the number of roles and an id."""
    most = 63 - 4 - (3 + len(app.roles))
    return app if most - len(app.name) > 3 else replace(app, name=app.name[:most])


def _object_labels(app: AppDef, app_id: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": app.name,
        "app.kubernetes.io/managed-by": "torchx.pytorch.org",
        "app.kubernetes.io/instance": app_id,
    }


def _pod_group(app: AppDef, index: int, role: Role, namespace: str, app_id: str) -> dict[str, object]:
    labels = {**_object_labels(app, app_id), "appwrapper.workload.codeflare.dev": app_id}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": f"{app_id}-pg{index}", "namespace": namespace, "labels": labels},
        "spec": {"minMember": role.num_replicas},
    }


def _mcad_pods(
    app: AppDef, options: RunOptions, app_id: str, namespace: str, version: str
) -> Iterator[dict[str, object]]:
    rank0 = _mcad_hosts(app.roles[0])
    for index, role in enumerate(app.roles):
        for replica in range(role.num_replicas):
            filled = _filled(role, index, replica, app_id, rank0)
            own = {"name": _mcad_hosts(role), "value": f"{app_id}-0.{app_id}"}
            name = mcad_name(f"{app_id}-{replica}")
            spec = pod_spec(filled, container=name, service_account=options.service_account, extra_env=own)
            spec |= {
                "hostname": name,
                "subdomain": app_id,
                "imagePullSecrets": [{"name": options.image_secret} if options.image_secret is not None else {}],
            }
            if options.coscheduler_name is not None:
                spec["schedulerName"] = options.coscheduler_name
            if options.priority_class_name is not None:
                spec["priorityClassName"] = options.priority_class_name
            annotations = dict(_EMBEDDED_ISTIO)
            if options.network is not None:
                annotations["k8s.v1.cni.cncf.io/networks"] = options.network
            labels = mcad_pod_labels(app, role.name, index, replica, app_id, version)
            if options.coscheduler_name is not None:
                labels[POD_GROUP] = f"{app_id}-pg{index}"
            metadata = {"name": name, "namespace": namespace, "annotations": annotations, "labels": labels}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _mcad_hosts(role: Role) -> str:
    return f"TORCHX_MCAD_{mcad_name(role.name)}_0_HOSTS".upper().replace("-", "")


def mcad_pod_labels(app: AppDef, role: str, index: int, replica: int, app_id: str, version: str) -> dict[str, str]:
    return _object_labels(app, app_id) | _pod_labels(app, role, index, replica, version)


def mcad_service(app: AppDef, namespace: str, app_id: str, port: int) -> dict[str, object]:
    """Return the only, headless Service of an application."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": app_id, "namespace": namespace, "labels": _object_labels(app, app_id)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "ports": [{"protocol": "TCP", "port": port, "targetPort": port}],
            "selector": {"app.kubernetes.io/instance": app_id},
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    }


def _pushed(app: AppDef, options: RunOptions) -> AppDef:
    """Return the application with the names under which TorchX pushes its images before submission."""
    return replace(
        app, roles=[replace(role, image=pushed_image(role.image, options) or role.image) for role in app.roles]
    )


def _pod_labels(app: AppDef, role: str, index: int, replica: int, version: str) -> dict[str, str]:
    return {
        f"{_LABELS}version": version,
        f"{_LABELS}app-name": app.name,
        f"{_LABELS}role-index": str(index),
        f"{_LABELS}role-name": role,
        f"{_LABELS}replica-id": str(replica),
    }


def _filled(role: Role, index: int, replica: int, app_id: str, rank0: str) -> Role:
    """Return the role with macros filled in for one replica; the very first replica is rank 0."""
    is_first = index == 0 and replica == 0
    values = {
        "img_root": "",
        "base_img_root": "DEPRECATED",
        "app_id": app_id,
        "replica_id": str(replica),
        "rank0_env": RANK0_VARIABLE if is_first else rank0,
    }
    env = {name: substitute(value, values) for name, value in role.env.items()}
    if is_first:
        env[RANK0_VARIABLE] = "localhost"
    return replace(role, args=[substitute(arg, values) for arg in role.args], env=env)
