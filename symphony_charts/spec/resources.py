"""A process states its resources and its node: requests less `reserve`, limits, and the node's labels.

TorchX lowers every request by 100 millicores and 1024 MB, so that processes that fill a machine still fit beside its
system, and leaves the limit. So does `reserve`, with a floor: half of what was asked for stays.
Source: meta-pytorch/torchx, torchx/schedulers/kubernetes_scheduler.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

from symphony_charts.formats.quantity import is_quantity, quantity
from symphony_charts.spec.model import PodSettings, Process

__all__ = ["resources_of", "selector_of"]

_CPU = Fraction(100, 1000)
_MEMORY = Fraction(1024 * 10**6)


def resources_of(process: Process) -> tuple[dict[str, str], dict[str, str]]:
    """The requests and limits of a process, its `reserve` taken off; without `reserve` they are as they were said.

    What was asked for becomes the limit where none was given. CPU comes in millicores, memory in ``M``, or in ``Mi``
    where it was asked for so, both rounded up.
    """
    requests, limits = dict(process.requests), dict(process.limits)
    if process.reserve:
        for name, reserve in (("cpu", _CPU), ("memory", _MEMORY)):
            asked = requests.get(name) or limits.get(name)
            if asked is not None and is_quantity(asked):
                limits.setdefault(name, asked)
                unit = "m" if name == "cpu" else "Mi" if asked.endswith("i") else "M"
                requests[name] = _lower(asked, reserve, unit, quantity(f"1{unit}"))
    return requests, limits


def _lower(asked: str, reserve: Fraction, unit: str, size: Fraction) -> str:
    """`asked` less the reserve and at least half of it, in whole units; as it is where it is less than a unit."""
    whole = quantity(asked)
    units = math.ceil(max(whole - reserve, whole / 2) / size)
    return f"{units}{unit}" if units * size < whole else asked


_CAPABILITIES = {
    "instance-type": "node.kubernetes.io/instance-type",
    "instance_type": "node.kubernetes.io/instance-type",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
}


def selector_of(settings: PodSettings) -> dict[str, str]:
    """The node selector of a pod: its `capabilities` under the labels that Kubernetes has for them, and its own."""
    named = {_CAPABILITIES.get(name, name): value for name, value in settings.capabilities.items()}
    return {**named, **settings.node_selector}
