"""TorchX's run options: the table of all, and the values of one run.

Sources: meta-pytorch/torchx, torchx/schedulers/kubernetes_mcad_scheduler.py (release 0.7.0) and
kubernetes_scheduler.py (2026.10). Options of scheduler `symph` are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symphony_charts.formats.names import nearest
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as `symph import runopts` lists it; `becomes` is the field of the experiment that it sets.

    `default` describes the behaviour if it is not set; `value` is the default that the scheduler declares.
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
        help="namespace of the job (default: the one of the kubeconfig's context)",
    ),
    Option(
        name="image_repo",
        type="str",
        default="None",
        becomes="image, and `symph package --image-repo`",
        help="repository to push patched images to, such as example.com/your/container",
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
        help="millicores subtracted from the CPU request for the node itself",
        schedulers=_VOLCANO,
    ),
    Option(
        name="reserved_memmb",
        type="int",
        default="0",
        becomes="processes.*.requests",
        help="megabytes subtracted from the memory request for the node itself",
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
        help="gang scheduler of all pods: none, kueue, native, coscheduling, volcano",
        schedulers=_OURS,
    ),
    Option(
        name="reserve",
        type="bool",
        default="False",
        becomes="processes.*.reserve",
        help="subtract what a node reserves from the requests, as TorchX does (100m, 1024M; at most half)",
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
        help="target: tmux (this machine), kube (a cluster), chart (write a Helm chart, start nothing)",
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
        help="exact app id (None: the app's name, with a number if it is taken)",
        schedulers=_OURS,
    ),
    Option(
        name="dest",
        type="str",
        default="dist",
        becomes="symph package --dest",
        help="folder for charts, with on=chart",
        schedulers=_OURS,
        value="dist",
    ),
    Option(
        name="compat",
        type="str",
        default="none",
        becomes="symph import torchx --compat",
        help="torchx: a dry run prints TorchX's own AppWrapper with the name app_id",
        schedulers=_OURS,
        value="none",
    ),
    Option(
        name="plain_http",
        type="bool",
        default="False",
        becomes="symph package --plain-http",
        help="use HTTP without TLS for the registry of image_repo (always for this machine)",
        schedulers=_OURS,
        value=False,
    ),
    Option(
        name="ca_file",
        type="str",
        default="None",
        becomes="symph package --ca-file",
        help="trusted certificate authorities for the registry of image_repo",
        schedulers=_OURS,
    ),
    Option(
        name="cert_file",
        type="str",
        default="None",
        becomes="symph package --cert-file",
        help="client certificate for the registry of image_repo",
        schedulers=_OURS,
    ),
    Option(
        name="key_file",
        type="str",
        default="None",
        becomes="symph package --key-file",
        help="private key of cert_file",
        schedulers=_OURS,
    ),
    Option(
        name="insecure_skip_tls_verify",
        type="bool",
        default="False",
        becomes="symph package --insecure-skip-tls-verify",
        help="do not verify the registry's certificate of image_repo",
        schedulers=_OURS,
        value=False,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The values of the options for one run; None if not set."""

    namespace: str | None = None
    image_repo: str | None = None
    service_account: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    image_secret: str | None = None
    coscheduler_name: str | None = None
    network: str | None = None
    queue: str | None = None
    reserved_millicpu: int | None = None
    reserved_memmb: int | None = None
    efa_device_count: int | None = None
    kind: str | None = None
    appwrapper_version: str | None = None
    gang: str | None = None
    reserve: bool | None = None

    @property
    def is_for_mcad(self) -> bool:
        """True if MCAD queues it, which reads AppWrappers of its own version."""
        return self.kind == "appwrapper" and self.appwrapper_version == "v1beta1"

    @property
    def starts_as_gang(self) -> bool:
        """True if pods wait for one another before they start."""
        has_gang = self.gang not in (None, "none") or self.coscheduler_name is not None
        return has_gang or self.kind == "volcano" or self.is_for_mcad


# Synonyms of options, and options that only affect TorchX itself.
_SYNONYMS = {"priority_class": "priority_class_name"}
_ONLY_TORCHX = ("quiet", "validate_spec", "priority_boost")


def pushed_image(image: str, options: RunOptions) -> str | None:
    """Return the name of a pushed image: a patched one (`sha256:...`) is under its hash in the image repository.

    None for a patched image without a repository.
    """
    if not image.startswith("sha256:"):
        return image
    return f"{options.image_repo}:{image.removeprefix('sha256:')}" if options.image_repo else None


def parse_cfg(text: str, log: Log) -> RunOptions:
    """Return the options of `key=value,key=value`, as `torchx run -cfg` takes them.

    A piece without ``=`` belongs to the value before it, as in TorchX.
    """
    values: dict[str, object] = {}
    key = ""
    for piece in text.split(","):
        name, equals, value = piece.partition("=")
        if equals:
            key = name.strip()
            values[key] = value
        elif key:
            values[key] = f"{values[key]},{piece}"
        elif piece.strip():
            log.fault("cfg", f'"{piece}" is not an option', "write key=value,key=value")
    return read_options(values, log, "cfg")


def read_options(values: Mapping[str, object], log: Log, path: str) -> RunOptions:
    """Return the options in a map; unknown ones are faults, as a silent typo would change the run."""
    fields = Fields({_SYNONYMS.get(key, key): _none(value) for key, value in values.items()}, path, log)
    version, kind = fields.text("appwrapper_version"), fields.text("kind")
    if version is not None and version not in ("v1beta1", "v1beta2"):
        what = f'"{version}" is not a version of AppWrappers'
        log.fault(fields.at("appwrapper_version"), what, "use v1beta1 (MCAD) or v1beta2")
    options = RunOptions(
        namespace=fields.text("namespace"),
        image_repo=fields.text("image_repo"),
        service_account=fields.text("service_account"),
        priority=fields.integer("priority", -(2**31), 2**31 - 1),
        priority_class_name=fields.text("priority_class_name"),
        image_secret=fields.text("image_secret"),
        coscheduler_name=fields.text("coscheduler_name"),
        network=fields.text("network"),
        queue=fields.text("queue"),
        reserved_millicpu=fields.integer("reserved_millicpu", 0),
        reserved_memmb=fields.integer("reserved_memmb", 0),
        efa_device_count=fields.integer("efa_device_count", 0),
        kind=kind or ("appwrapper" if version else None),
        appwrapper_version=version,
        gang=fields.text("gang"),
        reserve=fields.flag("reserve"),
    )
    for key in _ONLY_TORCHX:
        if key in fields:
            fields.skip(key)
            log.changed(fields.at(key), f"`{key}` is an option of TorchX itself, without effect for symph")
    for key in list(fields.unread()):
        names = [option.name for option in OPTIONS]
        meant = nearest(key, names)
        log.fault(fields.at(key), f'unknown option "{key}"', f'did you mean "{meant}"?' if meant else _list(names))
    return options


def _none(value: object) -> object:
    return None if value in ("", "None", "null") else value


def _list(names: list[str]) -> str:
    return f"options: {', '.join(names)}"
