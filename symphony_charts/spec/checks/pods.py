"""Check pods and their processes: commands, replicas, labels, images and resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import LABEL_NAME, OBJECT_NAME, hint, join
from symphony_charts.formats.quantity import MOST, QuantityOverflowError, amount_of, is_quantity, quantity
from symphony_charts.spec.model import Experiment, PodSettings, Process, Step
from symphony_charts.spec.pods import Pod, ProcessRef, pods_of
from symphony_charts.spec.sources import Toleration
from symphony_charts.spec.variable_names import shell_faults


class ProcessEntry(NamedTuple):
    """A process with its `ref` and its `path` in the experiment; `in_group` if it shares its pod."""

    ref: ProcessRef
    path: str
    process: Process
    in_group: bool


def entries_of(experiment: Experiment) -> list[ProcessEntry]:
    """Return all processes, those in groups first."""
    grouped = [
        ProcessEntry(ProcessRef(group, name), f"groups.{group}.processes.{name}", process, True)
        for group, settings in experiment.groups.items()
        for name, process in settings.processes.items()
    ]
    lone = [
        ProcessEntry(ProcessRef(name, name), f"processes.{name}", process, False)
        for name, process in experiment.processes.items()
    ]
    return grouped + lone


# Domains of the labels that the chart sets. For annotations only the first one is reserved.
OUR_DOMAINS = ("symph.dev", "app.kubernetes.io", "helm.sh")
# Exceptions, which users may set.
_TOLD = ("app.kubernetes.io/version", "app.kubernetes.io/part-of")
# Kubernetes: pkg/apis/batch/validation, maxParallelismForIndexed.
_MOST_REPLICAS = 100_000
_POD_DEFAULTS = PodSettings()


def pod_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of single groups, processes and steps."""
    yield from _label_faults(experiment.labels, "labels", with_values=True, ours=OUR_DOMAINS)
    yield from _label_faults(experiment.annotations, "annotations", with_values=False, ours=OUR_DOMAINS[:1])
    for pod in pods_of(experiment).values():
        yield from _settings_faults(pod.settings, pod.path, pod.is_finite)
        yield from _pool_faults(pod)
    for entry in entries:
        if entry.in_group:
            yield from _grouped_faults(entry)
        yield from _command_faults(entry.process, entry.path)
        yield from _count_faults(entry.process, entry.path)
    for name, step in experiment.prepare.items():
        yield from _command_faults(step, f"prepare.{name}")
    yield from small_faults(experiment.workload, {"retries": 0}, "workload")
    yield from small_faults(experiment, {"linger": 0}, "")


def is_in_domain(key: str, domains: Iterable[str]) -> bool:
    """Return True if the label key is in one of `domains` or in a subdomain."""
    prefix, slash, _ = key.partition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def image_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults that matter only on a cluster: missing images, relative paths, impossible restarts."""
    programs: list[tuple[str, str, Process | Step]] = [
        *((entry.path, f'process "{entry.ref}"', entry.process) for entry in entries),
        *((f"prepare.{name}", f'step "{name}"', step) for name, step in experiment.prepare.items()),
    ]
    for path, image in [("image", experiment.image), *((f"{path}.image", one.image) for path, _, one in programs)]:
        if image and (re.search(r"\s|://", image)):
            step_out = "write it as [registry/]name[:tag][@digest], without blanks and https://"
            yield Problem(f'"{image}" is not a valid image name', path, step_out)
    for path, name, program in programs:
        if not experiment.image and not program.image:
            next_step = f"set `{path}.image`, or `image` for the whole experiment"
            yield Problem(f"{name} has no image", f"{path}.image", next_step)
        if program.cwd and not program.cwd.startswith("/"):
            what = f'"{program.cwd}" is not an absolute path, and a container needs one'
            yield Problem(what, f"{path}.cwd", "write the whole path, from /; for local runs: `local.cwd`")
    for pod in pods_of(experiment).values():
        if pod.processes and not pod.is_finite and pod.settings.restart in ("never", "on-failure"):
            what = f"a cluster always restarts a pod of services; it does not allow `restart: {pod.settings.restart}`"
            yield Problem(what, f"{pod.path}.restart", "remove it, or make the process finite")


def _grouped_faults(entry: ProcessEntry) -> Iterator[Problem]:
    process, group = entry.process, entry.ref.pod
    shared = f'belongs to a pod, and "{entry.ref.process}" shares its pod with group "{group}"'
    for field in PodSettings.__struct_fields__:
        if getattr(process, field) != getattr(_POD_DEFAULTS, field):
            yield Problem(f"`{field}` {shared}", f"{entry.path}.{field}", f"move it to groups.{group}.{field}")
    if process.local is not None and process.local.replicas is not None:
        yield Problem(f"`replicas` {shared}", f"{entry.path}.local.replicas", f"set groups.{group}.replicas")


def _pool_faults(pod: Pod) -> Iterator[Problem]:
    pools: dict[str, str] = {}
    for member, process in pod.processes.items():
        pool = process.assign_to.node_pool_name if process.assign_to is not None else None
        if pool is None:
            continue
        pools.setdefault(pool, member)
        if len(pools) > 1 and pools[pool] == member:
            other = next(iter(pools))
            what = f'group "{pod.name}" is one pod, but "{pools[other]}" asks for {other} and "{member}" for {pool}'
            path = f"{pod.path}.processes.{member}.assign_to.node_pool_name"
            yield Problem(what, path, "use one pool for all, or move one process out of the group")


def _settings_faults(settings: PodSettings, path: str, is_finite: bool) -> Iterator[Problem]:
    least = {"replicas": 0, "min_replicas": 0, "retries": 0, "grace_period": 0, "deadline": 1}
    yield from small_faults(settings, least, path)
    if settings.replicas > _MOST_REPLICAS:
        what = f"{settings.replicas:,} replicas; an indexed Job allows at most {_MOST_REPLICAS:,}"
        yield Problem(what, f"{path}.replicas", "lower it")
    if settings.min_replicas is not None and settings.min_replicas > settings.replicas:
        what = f"min_replicas is {settings.min_replicas}, above `replicas`, {settings.replicas}"
        yield Problem(what, f"{path}.min_replicas", "raise `replicas`, or lower `min_replicas`")
    if settings.restart == "always" and is_finite:
        what = "`restart: always` would restart a finite process forever"
        yield Problem(what, f"{path}.restart", "set `lifecycle: service`, or restart: on-failure or never")
    if settings.until and is_finite:
        yield Problem("`until` is only for pods of services, and this pod is finite", f"{path}.until", "remove it")
    yield from _label_faults(settings.labels, f"{path}.labels", with_values=True, ours=OUR_DOMAINS)
    yield from _label_faults(settings.annotations, f"{path}.annotations", with_values=False, ours=OUR_DOMAINS[:1])
    yield from _label_faults(settings.node_selector, f"{path}.node_selector", with_values=True)
    yield from _label_faults(settings.capabilities, f"{path}.capabilities", with_values=True)
    for index, toleration in enumerate(settings.tolerations):
        yield from _toleration_faults(toleration, f"{path}.tolerations[{index}]")


def _toleration_faults(toleration: Toleration, path: str) -> Iterator[Problem]:
    if toleration.operator == "Exists" and toleration.value:
        what = "a toleration with `Exists` cannot have a value"
        yield Problem(what, f"{path}.value", "remove the value, or use operator Equal")
    if not toleration.key and toleration.operator != "Exists":
        yield Problem("the toleration has no key", f"{path}.key", "add `key:`, or operator Exists for all")
    if toleration.seconds is not None and toleration.effect != "NoExecute":
        what = "`seconds` applies only to effect NoExecute"
        yield Problem(what, f"{path}.seconds", "remove it, or set effect: NoExecute")


def _command_faults(process: Process | Step, path: str) -> Iterator[Problem]:
    if process.cmds is not None and (process.command is not None or process.args is not None):
        other = "command" if process.command is not None else "args"
        what = f"a shell runs `cmds`, so `{other}` has no effect beside them"
        yield Problem(what, f"{path}.cmds", f"keep `cmds`, or `{other}`")
    for field in ("command", "cmds"):
        if getattr(process, field) == []:
            yield Problem(f"`{field}` is empty", f"{path}.{field}", "set it, or remove it")
    if isinstance(process, Process) and process.local is not None:
        local = process.local
        if local.cmds is not None and (local.command is not None or local.args is not None):
            what = "a shell runs `cmds` instead of a command"
            yield Problem(what, f"{path}.local.cmds", "keep `cmds`, or command and args")
        elif local.args is not None and local.command is None and process.cmds is not None:
            what = "`args` belong to a command, and a local run uses `cmds`"
            yield Problem(what, f"{path}.local.args", "set `local.command` too, or remove `args`")
    yield from _shell_faults(process, path)


def _shell_faults(process: Process | Step, path: str) -> Iterator[Problem]:
    local, preamble = (process.local, process.preamble) if isinstance(process, Process) else (None, [])
    has_lines = process.cmds is not None or bool(preamble) or (local is not None and local.cmds is not None)
    yield from shell_faults(process.shell, f"{path}.shell", has_lines=has_lines)
    if local is None:
        return
    cmds = local.cmds if local.cmds is not None or local.command is not None else process.cmds
    has_lines = cmds is not None or bool(preamble if local.preamble is None else local.preamble)
    yield from shell_faults(local.shell, f"{path}.local.shell", has_lines=has_lines)


def _count_faults(process: Process, path: str) -> Iterator[Problem]:
    yield from small_faults(process, {"gpus": 0}, path)
    if process.local is not None:
        yield from small_faults(process.local, {"replicas": 0, "gpus": 0}, f"{path}.local")
    if process.cwd is not None and not process.cwd:
        yield Problem("`cwd` is empty", f"{path}.cwd", "remove it to use the folder of the image")
    if process.assign_to is not None:
        least = {"process_per_machine": 1, "cpu": 0, "memory_m": 0, "gpu_count": 0}
        yield from small_faults(process.assign_to, least, f"{path}.assign_to")


def small_faults(record: msgspec.Struct, least: Mapping[str, int], path: str) -> Iterator[Problem]:
    """Yield a fault for each field of `record` that is below its number in `least`."""
    for field, bound in least.items():
        value = getattr(record, field)
        if value is not None and value < bound:
            yield Problem(f"{value} is too low", f"{path}.{field}".lstrip("."), f"use at least {bound}")


def choice_faults(record: msgspec.Struct, fields: Sequence[str], path: str, what: str) -> Iterator[Problem]:
    """Yield a fault unless exactly one of `fields` of `record` is set."""
    given = [field for field in fields if getattr(record, field) is not None]
    if len(given) != 1:
        yield Problem(f"{what}, not {' and '.join(given) or 'none'}", path, f"keep one of {', '.join(fields)}")


def _label_faults(
    labels: Mapping[str, str], path: str, *, with_values: bool, ours: Sequence[str] = ()
) -> Iterator[Problem]:
    for key, value in labels.items():
        here = f"{path}.{key}"
        if not is_label_key(key):
            next_step = "use letters, digits, dashes and dots: name, or example.com/name"
            yield Problem(f'"{key}" is not a valid key', here, next_step)
        elif is_in_domain(key, ours) and key not in _TOLD:
            yield Problem(f'"{key}" is reserved: symph sets it', here, "use your own prefix")
        if with_values and value and not LABEL_NAME.fullmatch(value):
            next_step = "use at most 63 letters, digits, dashes, dots and underscores"
            yield Problem(f'"{value}" is not a valid value of a label', here, next_step)


def is_label_key(key: str) -> bool:
    """Return True if `key` is a valid label or resource name: a name, optionally after a domain and a slash."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not OBJECT_NAME.fullmatch(prefix) or len(prefix) > 253):
        return False
    return LABEL_NAME.fullmatch(name) is not None


# The log size without a limit, and the smallest limit that works.
UNLIMITED = "unlimited"
LEAST_LOG = 1 << 16
_UNITS = {"": "", "k": "k", "ki": "Ki", "m": "M", "mi": "Mi", "g": "G", "gi": "Gi", "t": "T", "ti": "Ti"}

_FORM = 'write it as Kubernetes does: "500m", "1.5", "2Gi"'
# Standard resources without a domain, besides hugepages-SIZE: pkg/apis/core/helper, IsStandardResourceName.
_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")


def resource_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of the amounts that processes, steps and pods ask for."""
    for entry in entries:
        yield from _fields_faults(entry.process, entry.path)
        yield from _container_faults(entry.process.container_overlay, f"{entry.path}.container_overlay")
        local = entry.process.local
        if local is not None and local.log_size is not None:
            yield from _log_faults(local.log_size, f"{entry.path}.local.log_size")
    yield from _log_faults(experiment.local.log_size, "local.log_size")
    for name, step in experiment.prepare.items():
        yield from _fields_faults(step, f"prepare.{name}")
    for pod in pods_of(experiment).values():
        yield from _pod_faults(pod.settings.pod_overlay, f"{pod.path}.pod_overlay")


def amount_faults(resource: str, amount: str, path: str) -> Iterator[Problem]:
    """Yield faults of an amount that an API server or scheduler would refuse."""
    try:
        amount_of(resource, amount)
    except QuantityOverflowError:
        most = MOST // 1000 if resource == "cpu" else MOST
        yield Problem(f'"{amount}" is more {resource} than Kubernetes can count', path, f"use at most {most}")
    except ValueError:
        yield Problem(f'"{amount}" is not an amount of {resource}', path, _meant(amount))
    else:
        # Source: pkg/apis/core/v1/helper, IsExtendedResourceName.
        is_extended = "/" in resource and "kubernetes.io/" not in resource
        # Kubernetes reads a suffix without a number as zero; it is probably a typing error.
        if not any(character.isdigit() for character in amount):
            yield Problem(f'"{amount}" is not an amount of {resource}', path, _FORM)
        elif is_extended and quantity(amount).denominator != 1:
            yield Problem(f'"{amount}" of {resource} is not a whole number', path, "1, 2, ...")


def _meant(amount: str) -> str:
    """Suggest the intended amount: no blanks, a point for a comma, `G` for `GB`."""
    match = re.fullmatch(r"\s*(\d+)([.,]\d+)?\s*([a-zA-Z]*)\s*", amount, re.ASCII)
    if match is None:
        return _FORM
    unit = match[3].lower().removesuffix("b").removesuffix("ytes")
    unit = "" if match[3].lower() in ("core", "cores", "cpu", "cpus") else _UNITS.get(unit, "?")
    meant = f"{match[1]}{(match[2] or '').replace(',', '.')}{unit}"
    return f'did you mean "{meant}"?' if is_quantity(meant) else _FORM


def _log_faults(size: str, path: str) -> Iterator[Problem]:
    if size != UNLIMITED and not (is_quantity(size) and LEAST_LOG <= quantity(size) <= MOST):
        step = f'write it as "100Mi", at least {LEAST_LOG >> 10}Ki, or "{UNLIMITED}"'
        yield Problem(f'"{size}" is not a size of a log', path, step)


def _fields_faults(process: Process | Step, path: str) -> Iterator[Problem]:
    for field, amounts in (("requests", process.requests), ("limits", process.limits)):
        yield from _map_faults(amounts, f"{path}.{field}")
    for index, share in enumerate(process.pod_share if isinstance(process, Process) else ()):
        if share not in process.requests:
            what = f"a share of {share} needs a request, and this process requests no {share}"
            yield Problem(what, f"{path}.pod_share[{index}]", f"add `requests.{share}`, or remove it")
    for name in process.requests.keys() & process.limits.keys():
        request, limit = process.requests[name], process.limits[name]
        if is_quantity(request) and is_quantity(limit) and quantity(request) > quantity(limit):
            what = f"requests {request} of {name}, above its limit of {limit}"
            yield Problem(what, f"{path}.requests.{name}", "raise the limit, or request less")


def _pod_faults(overlay: Mapping[str, object], path: str) -> Iterator[Problem]:
    spec = sub(overlay, "spec")
    yield from _map_faults(sub(spec, "overhead"), f"{path}.spec.overhead")
    yield from _container_faults(spec, f"{path}.spec")
    for key in ("initContainers", "containers"):
        containers = spec.get(key)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            yield from _container_faults(container, f"{path}.spec.{key}[{index}]")


def _container_faults(overlay: object, path: str) -> Iterator[Problem]:
    for field in ("requests", "limits"):
        yield from _map_faults(sub(overlay, "resources", field), f"{path}.resources.{field}")


def _known(name: str) -> str:
    if name.startswith("gpu"):
        return "set `gpus`, a field beside `requests`"
    if name in ("ram", "mem"):
        name = "memory"
    return hint(name, _STANDARD, "cpu, memory, ephemeral-storage, or vendor.com/name")


def _map_faults(amounts: Mapping[str, object], path: str) -> Iterator[Problem]:
    for name, amount in ((str(key), value) for key, value in amounts.items()):
        here = join(path, name)
        if not is_label_key(name):
            yield Problem(f'"{name}" is not a valid resource', here, "use cpu, memory or vendor.com/name")
        elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
            yield Problem(f'Kubernetes has no resource "{name}"', here, _known(name))
        else:
            yield from amount_faults(name, str(amount), here)
