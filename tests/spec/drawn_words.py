"""Possible texts and numbers of a drawn experiment, by place: see `tests.spec.drawing`."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

_QUANTITIES = ["1", "500m", "0.5", "2Gi", 1, 0.25]
_LIMITS = ["4", "8.5Gi", 16]
_LABELS = ["n", "on", "1e3", "x_y", 1, 0.5, True]
_OBJECTS = ["s", "team.x", "on"]
_PATHS = ["/data", "/var/x y", "/mnt/on"]
_POD_OVERLAYS: list[Data] = [
    {},
    {"spec": {"hostNetwork": True, "volumes": [{"name": "symph-config", "x": "1"}]}},
    {"metadata": {"labels": {"on": "n"}, "annotations": {"a": "{{ x }}"}, "finalizers": ["a"]}},
    {"spec": {"securityContext": {"runAsUser": 7}, "tolerations": [], "affinity": {"nodeAffinity": {}}}},
    {
        "spec": {
            "containers": [{"name": "extra", "image": "x:1"}],
            "hostAliases": [{"ip": "1.1.1.1"}],
            "nodeSelector": {},
        }
    },
    {
        "spec": {
            "dnsConfig": {"searches": ["a"]},
            "terminationGracePeriodSeconds": 7,
            "schedulingGates": [{"name": "n"}],
        }
    },
]
_CONTAINER_OVERLAYS: list[Data] = [
    {},
    {"securityContext": {"runAsUser": 1000, "capabilities": {"add": ["NET_ADMIN"]}}, "tty": True},
    {"lifecycle": {"preStop": {"exec": {"command": ["a\u2028b"]}}}, "envFrom": [{"configMapRef": {"name": "c"}}]},
    {"livenessProbe": {"httpGet": {"port": "web", "path": "/"}}, "ports": [{"containerPort": 81, "name": "n"}]},
    {"resources": {"limits": {"example.org/x": "1"}}, "volumeMounts": [{"name": "a", "mountPath": "/o"}], "args": []},
]
_FIXED: dict[str, list[Any]] = {
    "Experiment.team": ["ml"],
    "Experiment.owner": ["ann"],
    "Experiment.namespace": ["rl-dev"],
    "Experiment.image": ["busybox:1.37.0", "registry.example.org:5000/team/image:1.2", "a@sha256:" + "0" * 64],
    "Experiment.volumes.?": ["v1", "v2"],
    "Experiment.configs.?": ["a.yaml", "n", "x.py"],
    "Experiment.prepare.?": ["fetch", "on"],
    "Experiment.port_range!": [[7000, 8999], "7000 - 7900"],
    "Experiment.service_account": ["runner"],
    "Experiment.labels.?": ["cost", "on", "example.org/n"],
    "Experiment.labels.*": _LABELS,
    "Experiment.annotations.?": ["note", "example.org/n"],
    "Experiment.networks.*": ["macvlan"],
    "Experiment.image_pull_secrets.*": ["pull", "on"],
    "ChartSettings.app_version": ["1.0", "2.1.0+cu12", "n"],
    "ChartSettings.home": ["https://example.org/rl"],
    "ChartSettings.icon": ["https://example.org/rl.svg"],
    "ChartSettings.sources.*": ["https://git.example.org/rl"],
    "ChartSettings.license": ["Apache-2.0", "on"],
    "ChartSettings.changes.*": ["larger: batches", "- on"],
    "Maintainer.name": ["Ann", "on"],
    "Maintainer.email": ["ann@example.org"],
    "Maintainer.url": ["https://example.org/ann"],
    "ConfigFile.base64": ["AP8=", ""],
    "ConfigFile.file": ["conf.txt", "conf.bin"],
    "ConfigFile.mode": ["0400", "755"],
    "SecretFile.file": ["secret.txt", "key.pem"],
    "SecretFile.key": ["key", "on"],
    "SecretFile.remote": ["vault/key#pem", "k"],
    "SecretSource.store": ["vault"],
    "SecretSource.refresh": ["10m"],
    "ExposeSettings.host": ["tb.example.org"],
    "ExposeSettings.class_name": ["nginx"],
    "ExposeSettings.gateway": ["public", "infra/public"],
    "ExposeSettings.source_ranges.*": ["10.0.0.0/8", "192.168.0.0/16"],
    "ExposeSettings.annotations.?": ["example.org/n", "on"],
    "Process.image": ["u:1", "a/b:on"],
    "Process.capabilities.?": ["disk", "example.org/type"],
    "Process.capabilities.*": _LABELS,
    "Process.cwd": ["/work", "sub/dir"],
    "Process.service_account": ["runner", "on"],
    "Process.priority_class": ["high"],
    "Process.requests.?": ["cpu", "memory", "ephemeral-storage"],
    "Process.requests.*": _QUANTITIES,
    "Process.limits.?": ["cpu", "memory", "ephemeral-storage"],
    "Process.limits.*": _LIMITS,
    "Process.env.?": ["A", "LR", "n", "ON", "PATH_X", "my.var"],
    "Process.pod_overlay!": _POD_OVERLAYS,
    "Process.container_overlay!": _CONTAINER_OVERLAYS,
    "Process.min_replicas": [0, 1],
    "Experiment.linger": [0, 7, "30s"],
    "Process.deadline": [1, 3600],
    "Process.replicas": [0, 1, 1, 2, 3, 12],
    "LocalProcess.env.?": ["A", "L"],
    "LocalProcess.log_size": ["1Mi", "unlimited"],
    "LocalSettings.log_size": ["1Mi", "unlimited"],
    "LocalSettings.env.?": ["A", "L"],
    "LocalSettings.pass_env.*": ["HOME", "WANDB_*"],
    "Experiment.env.?": ["A", "SHARED"],
    "Experiment.env_file": ["conf.txt", ["conf.txt"]],
    "EnvSource.secret": _OBJECTS,
    "EnvSource.config": _OBJECTS,
    "EnvSource.key": ["k", "a.b"],
    "EnvSource.field": ["spec.nodeName", "metadata.labels['on']"],
    "EnvSource.resource": ["limits.memory", "requests.cpu"],
    "Step.image": ["git:1"],
    "Step.cwd": ["/w"],
    "Step.env.?": ["A", "on"],
    "Step.requests.?": ["cpu", "memory"],
    "Step.requests.*": _QUANTITIES,
    "Step.limits.?": ["cpu", "memory"],
    "Step.limits.*": _LIMITS,
    "Experiment.groups!": [{}],
    "Experiment.processes!": [{}],
    "ProcessGroup.processes!": [{}],
    "Experiment.secrets": ["secret.txt", "key.pem"],
    "Process.mounts": [
        "type=bind,src=/h,dst=/bind,readonly",
        "type=volume,src=pvc,dst=/pvc",
        "type=device,src=/dev/fuse",
    ],
    "Step.mounts": ["type=bind,src=/h,dst=/bind"],
    "AnyVolume.shm": ["1Gi"],
    "Inline.shm": ["1Gi"],
    "Mount.volume": ["v1", "v2"],
    "Probe.initial_delay": [3, "5s"],
    **{f"{name}.{field}": [7, "2h"] for name in ("Process", "ProcessGroup") for field in ("deadline", "grace_period")},
    "Probe.period": [3, "2m"],
    "Probe.timeout": [3, "1h"],
    "Mount.sub_path": ["a/b", "on"],
    "Inline.name": ["mine"],
    "Inline.sub_path": ["a/b"],
    "HttpProbe.path": ["/ok", "/a?b={{ x }}"],
    "Toleration.key": ["spot", "example.org/x"],
    "Toleration.value": ["on", "1"],
    "Assignment.node_pool_name": ["plain", "rich"],
    "Assignment.gpu_type": ["nvidia-tesla-v100"],
    "Assignment.process_per_machine": [1, 2],
    "Placement.pools": ["pools.yaml"],
    "Placement.reservation": ["mine"],
    "Placement.topology": ["example.org/block"],
    "Placement.exclusive": ["kubernetes.io/hostname"],
    "Placement.tpu_topology": ["2x4"],
    "Workload.queue": ["q"],
    "Workload.queue_priority": ["high"],
    "Workload.priority": [-7, 0, 9],
    "Workload.priority_class": ["high"],
    "Workload.scheduler_name": ["mine"],
    "AppwrapperSettings.annotations.?": ["workload.codeflare.dev.appwrapper/retryLimit", "n"],
    "ArgoSettings.schedules.*": ["0 3 * * *", "@daily"],
    "ArgoSettings.timezone": ["Europe/Berlin"],
    "ArgoSettings.needs!": [{}, "first", ["first", "on"], {"a": None, "on": "a"}, {"a": [], "on": ["a"]}],
    "ArgoSettings.parameters.*": ["A", "LR"],
    "ArgoSettings.service_account": ["runner"],
    "DijobSettings.group": ["g"],
    "DijobSettings.parallel_workers": [1, 2],
    "VolcanoSettings.plugins.?": ["ssh", "svc", "env"],
}
_VOLUMES: dict[str, list[Any]] = {
    "nfs.server": ["10.0.0.1", "nfs.example.org"],
    "nfs.path": _PATHS,
    "host_path.path": _PATHS,
    "host_path.kind": ["", "Directory", "DirectoryOrCreate"],
    "claim.claim": _OBJECTS,
    "empty_dir.size": ["1Gi", "500Mi"],
    "secret.secret": _OBJECTS,
    "secret.mode": ["0400"],
    "config.config": _OBJECTS,
    "config.mode": ["0644"],
    "device.path": ["/dev/infiniband"],
    "device.perm": ["rw", "r"],
    "git.repository": ["https://example.org/r.git"],
    "git.revision": ["main", "v1"],
    "git.image": ["git:1"],
}
# Probabilities of fields: of all fields of a record, or of one.
SHARE = {"Experiment": 0.6, "Process": 0.2, "ProcessGroup": 0.2, "Workload": 0.4, "Placement": 0.15, "Assignment": 0.4}
SHARE |= {"Experiment.volumes": 0.9, "Experiment.expose": 0.9, "Experiment.workload": 0.8, "Workload.kind": 0.9}
SHARE |= {"Process.lifecycle": 0.8, "Process.binds": 0.8, "Process.exposes": 0.8, "Placement.pools": 0.6}
SHARE |= {
    "Process.ready": 0.4,
    "HttpProbe": 0.7,
    "ExposeSettings": 0.6,
    "Inline.empty_dir": 0.7,
    "AnyVolume.empty_dir": 0.7,
}
# Alternative fields of a record, of which one choice is made.
APART = {
    "EnvSource": [["secret", "key"], ["config", "key"], ["field"], ["resource"]],
    "Probe": [["tcp"], ["http"], ["exec"]],
    "ConfigFile": [["text"], ["base64"], ["file"]],
    "Toleration": [["key"], ["key", "operator"], ["key", "effect", "seconds"]],
}
# Valid, but never sufficient for a cluster on their own.
NEVER_ALONE = {
    "Experiment.expose.*=Gateway": "the name of the Gateway is said beside the type",
    "Process.assign_to=gpu": "the node pool is said beside it",
    "Process.assign_to=machine": "the node pool is said beside it",
}


def _words() -> dict[str, Any]:
    words: dict[str, Any] = dict(_FIXED)
    # A group and a lone process describe a pod alike; a volume is the same wherever it is declared.
    for place, said in _FIXED.items():
        if place.startswith("Process."):
            words[place.replace("Process.", "ProcessGroup.")] = said
    for place, said in _VOLUMES.items():
        kind, _, name = place.partition(".")
        record = "".join(word.capitalize() for word in kind.split("_"))
        words |= {f"{holder}.{place}": said for holder in ("AnyVolume", "Inline")} | {f"{record}Volume.{name}": said}
        if name in ("path", "claim", "size", "secret", "config", "repository"):
            words |= {f"{holder}.{kind}": said for holder in ("AnyVolume", "Inline")}
    return words


WORDS = _words()
