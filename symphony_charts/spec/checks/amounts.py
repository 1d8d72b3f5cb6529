"""The checks of amounts judge requests and limits, in fields and in overlays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from symphony_charts.errors import Problem
from symphony_charts.formats.paths import join, nearest
from symphony_charts.formats.quantity import MOST, QuantityOverflowError, amount_of, is_quantity, quantity
from symphony_charts.spec.checks.entries import ProcessEntry
from symphony_charts.spec.checks.pods import is_label_key
from symphony_charts.spec.model import Experiment, Process, Step

__all__ = ["UNLIMITED", "amount_faults", "resource_faults"]

# The word for a log of which nothing is given up, and the smallest size that can be held to.
UNLIMITED = "unlimited"
LEAST_LOG = 1 << 16
_UNITS = {"": "", "k": "k", "ki": "Ki", "m": "M", "mi": "Mi", "g": "G", "gi": "Gi", "t": "T", "ti": "Ti"}

_FORM = 'write it as Kubernetes does: "500m", "1.5", "2Gi"'
# Resources without a domain that Kubernetes knows, beside hugepages-SIZE: pkg/apis/core/helper, IsStandardResourceName.
_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")


def resource_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of the amounts that processes, steps and pods ask for."""
    for entry in entries:
        yield from _fields_faults(entry.process, entry.path)
        yield from _container_faults(entry.process.container_overlay, f"{entry.path}.container_overlay")
        yield from _pod_faults(entry.process.pod_overlay, f"{entry.path}.pod_overlay")
        local = entry.process.local
        if local is not None and local.log_size is not None:
            yield from _log_faults(local.log_size, f"{entry.path}.local.log_size")
    yield from _log_faults(experiment.local.log_size, "local.log_size")
    for name, step in experiment.prepare.items():
        yield from _fields_faults(step, f"prepare.{name}")
    for name, group in experiment.groups.items():
        yield from _pod_faults(group.pod_overlay, f"groups.{name}.pod_overlay")


def amount_faults(resource: str, amount: str, path: str) -> Iterator[Problem]:
    """Yield what an API server or a scheduler would refuse of `amount` of a resource."""
    try:
        amount_of(resource, amount)
    except QuantityOverflowError:
        yield Problem(
            what=f'"{amount}" is more than Kubernetes can count of {resource}',
            path=path,
            next=f"at most {MOST // 1000 if resource == 'cpu' else MOST}",
        )
    except ValueError:
        yield Problem(what=f'"{amount}" is no amount of {resource}', path=path, next=_meant(amount))
    else:
        # Kubernetes takes a suffix alone for zero; whoever writes one has forgotten the number.
        if not any(character.isdigit() for character in amount):
            yield Problem(what=f'"{amount}" is no amount of {resource}', path=path, next=_FORM)
        elif _is_counted(resource) and quantity(amount).denominator != 1:
            yield Problem(what=f'"{amount}" of {resource}, of which there are whole ones', path=path, next="1, 2, ...")


def _meant(amount: str) -> str:
    """The amount that was probably meant, as Kubernetes writes it: no blanks, a point for a comma, `G` for `GB`."""
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
        yield Problem(what=f'"{size}" is no size of a log', path=path, next=step)


def _is_counted(resource: str) -> bool:
    """Return True for an extended resource (pkg/apis/core/v1/helper, IsExtendedResourceName)."""
    return "/" in resource and "kubernetes.io/" not in resource


def _fields_faults(process: Process | Step, path: str) -> Iterator[Problem]:
    for field, amounts in (("requests", process.requests), ("limits", process.limits)):
        yield from _map_faults(amounts, f"{path}.{field}")
    for index, share in enumerate(process.pod_share if isinstance(process, Process) else ()):
        if share not in process.requests:
            what = f"a share of {share} is part of what is requested, and no {share} is"
            yield Problem(what=what, path=f"{path}.pod_share[{index}]", next=f"add `requests.{share}`, or drop it")
    for name in process.requests.keys() & process.limits.keys():
        request, limit = process.requests[name], process.limits[name]
        if is_quantity(request) and is_quantity(limit) and quantity(request) > quantity(limit):
            what = f"requests {request} of {name}, above its limit of {limit}"
            yield Problem(what=what, path=f"{path}.requests.{name}", next="raise the limit, or ask for less")


def _pod_faults(overlay: Mapping[str, object], path: str) -> Iterator[Problem]:
    spec = overlay.get("spec")
    if not isinstance(spec, Mapping):
        return
    yield from _map_faults(spec.get("overhead"), f"{path}.spec.overhead")
    yield from _container_faults(spec, f"{path}.spec")
    for key in ("initContainers", "containers"):
        containers = spec.get(key)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            yield from _container_faults(container, f"{path}.spec.{key}[{index}]")


def _container_faults(overlay: object, path: str) -> Iterator[Problem]:
    resources = overlay.get("resources") if isinstance(overlay, Mapping) else None
    if isinstance(resources, Mapping):
        for field in ("requests", "limits"):
            yield from _map_faults(resources.get(field), f"{path}.resources.{field}")


def _known(name: str) -> str:
    if name.startswith("gpu"):
        return "count GPUs in `gpus`, a field beside `requests`"
    meant = "memory" if name in ("ram", "mem") else nearest(name, _STANDARD)
    return f'did you mean "{meant}"?' if meant else "cpu, memory, ephemeral-storage, or vendor.com/name"


def _map_faults(amounts: object, path: str) -> Iterator[Problem]:
    if not isinstance(amounts, Mapping):
        return
    for name, amount in amounts.items():
        here = join(path, str(name))
        if not is_label_key(str(name)):
            yield Problem(what=f'"{name}" cannot be a resource', path=here, next="cpu, memory, vendor.com/name")
        elif "/" not in str(name) and str(name) not in _STANDARD and not str(name).startswith("hugepages-"):
            yield Problem(what=f'Kubernetes knows no resource "{name}"', path=here, next=_known(str(name)))
        else:
            yield from amount_faults(str(name), str(amount), here)
