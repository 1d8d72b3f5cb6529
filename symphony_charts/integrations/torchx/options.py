"""The table of TorchX's run options holds names, types and defaults, and what of an experiment each one is.

Sources: meta-pytorch/torchx, torchx/schedulers/kubernetes_mcad_scheduler.py (release 0.7.0) and
kubernetes_scheduler.py (2026.10). What stands for scheduler ``symph`` is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OPTIONS", "SCHEDULER_OPTIONS", "Option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as `symph import runopts` lists it; `becomes` is the field of the experiment that it sets.

    `default` is what happens when it is not said; `value` is what the scheduler declares as its default.
    """

    name: str
    type: str
    default: str
    becomes: str
    help: str
    schedulers: tuple[str, ...] = ("kubernetes_mcad", "kubernetes")
    value: str | bool | None = None


_MCAD = ("kubernetes_mcad",)
_VOLCANO = ("kubernetes",)
_OURS = ("symph",)

OPTIONS: tuple[Option, ...] = (
    Option(
        name="namespace",
        type="str",
        default="default",
        becomes="namespace",
        help="namespace the job runs in (of a context that has its own: that one)",
    ),
    Option(
        name="image_repo",
        type="str",
        default="None",
        becomes="image, and `symph package --image-repo`",
        help="repository that patched images are pushed to; example.com/your/container",
    ),
    Option(
        name="service_account",
        type="str",
        default="None",
        becomes="service_account",
        help="service account of the pods",
    ),
    Option(
        name="priority",
        type="int",
        default="None",
        becomes="workload.priority",
        help="priority of the job as a whole; higher goes first",
        schedulers=_MCAD,
    ),
    Option(
        name="priority_class_name",
        type="str",
        default="None",
        becomes="workload.priority_class",
        help="PriorityClass of the pods (`priority_class` under scheduler kubernetes)",
    ),
    Option(
        name="image_secret",
        type="str",
        default="None",
        becomes="image_pull_secrets",
        help="Secret with the registry's credentials",
        schedulers=_MCAD,
    ),
    Option(
        name="coscheduler_name",
        type="str",
        default="None",
        becomes="workload.scheduler_name, workload.gang: coscheduling",
        help="second scheduler that places each role's pods together",
        schedulers=_MCAD,
    ),
    Option(
        name="network",
        type="str",
        default="None",
        becomes="networks",
        help="additional pod network (needs multus)",
        schedulers=_MCAD,
    ),
    Option(
        name="queue",
        type="str",
        default="None",
        becomes="workload.queue",
        help="queue that admits the job",
        schedulers=_VOLCANO,
    ),
    Option(
        name="reserved_millicpu",
        type="int",
        default="0",
        becomes="processes.*.requests",
        help="millicores taken off the CPU request for the node's own use",
        schedulers=_VOLCANO,
    ),
    Option(
        name="reserved_memmb",
        type="int",
        default="0",
        becomes="processes.*.requests",
        help="megabytes taken off the memory request for the node's own use",
        schedulers=_VOLCANO,
    ),
    Option(
        name="efa_device_count",
        type="int",
        default="None",
        becomes="processes.*.limits[vpc.amazonaws.com/efa]",
        help="number of EFA devices instead of the resource's; 0 takes them away",
        schedulers=_VOLCANO,
    ),
    Option(
        name="kind",
        type="str",
        default="jobs",
        becomes="workload.kind",
        help="Kubernetes kind that runs the roles: jobs, jobset, appwrapper, volcano, ...",
        schedulers=_OURS,
    ),
    Option(
        name="appwrapper_version",
        type="str",
        default="v1beta2",
        becomes="workload.appwrapper.version",
        help="version of AppWrappers that the cluster serves: v1beta1 (MCAD) or v1beta2; chooses kind=appwrapper",
        schedulers=_OURS,
    ),
    Option(
        name="gang",
        type="str",
        default="none",
        becomes="workload.gang",
        help="how all pods are placed together: none, kueue, native, coscheduling, volcano",
        schedulers=_OURS,
    ),
    Option(
        name="reserve",
        type="bool",
        default="False",
        becomes="processes.*.reserve",
        help="take off the requests what a node keeps for itself, as TorchX does (100m, 1024M; never more than half)",
        schedulers=_OURS,
        value=False,
    ),
)

SCHEDULER_OPTIONS: tuple[Option, ...] = (
    Option(
        name="on",
        type="str",
        default="tmux",
        becomes="symph up, install or package",
        help="where it goes: tmux (this machine), kube (a cluster), chart (a Helm chart, nothing is started)",
        schedulers=_OURS,
        value="tmux",
    ),
    Option(
        name="context",
        type="str",
        default="None",
        becomes="--context",
        help="context of the kubeconfig, with on=kube (None: the current one)",
        schedulers=_OURS,
    ),
    Option(
        name="app_id",
        type="str",
        default="None",
        becomes="name",
        help="app id, exactly (None: the app's name, with a number behind it where that is taken)",
        schedulers=_OURS,
    ),
    Option(
        name="dest",
        type="str",
        default="dist",
        becomes="symph package --dest",
        help="folder that charts are written to, with on=chart",
        schedulers=_OURS,
        value="dist",
    ),
    Option(
        name="compat",
        type="str",
        default="none",
        becomes="symph import torchx --compat",
        help="torchx: a dry run gives TorchX's own AppWrapper under app_id",
        schedulers=_OURS,
        value="none",
    ),
    Option(
        name="plain_http",
        type="bool",
        default="False",
        becomes="symph package --plain-http",
        help="speak HTTP without TLS to the registry of image_repo (to this machine always)",
        schedulers=_OURS,
        value=False,
    ),
    Option(
        name="ca_file",
        type="str",
        default="None",
        becomes="symph package --ca-file",
        help="the authorities that are trusted for the registry of image_repo",
        schedulers=_OURS,
    ),
    Option(
        name="cert_file",
        type="str",
        default="None",
        becomes="symph package --cert-file",
        help="certificate that is shown to the registry of image_repo",
        schedulers=_OURS,
    ),
    Option(
        name="key_file",
        type="str",
        default="None",
        becomes="symph package --key-file",
        help="the key of cert_file",
        schedulers=_OURS,
    ),
    Option(
        name="insecure_skip_tls_verify",
        type="bool",
        default="False",
        becomes="symph package --insecure-skip-tls-verify",
        help="take any certificate of the registry of image_repo",
        schedulers=_OURS,
        value=False,
    ),
)
