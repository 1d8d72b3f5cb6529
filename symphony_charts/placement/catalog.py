"""The catalogue of Google machine types: vCPUs, memory, accelerators and local disks.

The shipped file is written by scripts/make_catalog.py and checked there against two public tables; a user's own `gcloud
compute machine-types list --format=json` extends or replaces it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from symphony_charts.system.package_data import table
from symphony_charts.system.records import decode_json


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One machine type; `gpus`, `chips` and `local_ssds` are built in, `topology` is of one TPU VM."""

    name: str
    family: str
    arch: str = "amd64"
    vcpu: int
    memory_mib: int
    shared: bool = False
    gpu: str = ""
    gpus: int = 0
    tpu: str = ""
    chips: int = 0
    topology: str = ""
    local_ssds: int = 0
    local_ssd_gib: int = 375
    sources: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True):
    date: str
    machines: tuple[Machine, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """Machine types by name, and the day of the table's last check."""

    machines: Mapping[str, Machine]
    date: str = ""
    origin: str = field(default="shipped", compare=False)

    def get(self, name: str) -> Machine | None:
        """Return the machine of that name, None if unknown; names such as ``n2-custom-6-20480-ext`` are computed."""
        return self.machines.get(name) or _custom(name)

    def search(self, text: str) -> list[Machine]:
        """Return all machines whose name, family, GPU or TPU contains `text`, by name."""
        wanted = text.lower()
        hits = (m for m in self.machines.values() if any(wanted in part for part in (m.name, m.family, m.gpu, m.tpu)))
        return sorted(hits, key=lambda m: (m.family, m.vcpu, m.memory_mib, m.name))

    def extended(self, machines: Iterable[Machine], origin: str) -> Catalog:
        """Return this catalogue with `machines` added or replaced."""
        return Catalog({**self.machines, **{machine.name: machine for machine in machines}}, self.date, origin)


@lru_cache(maxsize=1)
def default_catalog() -> Catalog:
    file = decode_json(table("placement/data/machines.json"), _File)
    return Catalog({machine.name: machine for machine in file.machines}, file.date)


_CUSTOM = re.compile(r"(?:(?P<family>[a-z]\w*)-)?custom-(?P<cpu>\d+)-(?P<mib>\d+)(?:-ext)?$")
_E2_SHARED = re.compile(r"e2-custom-(?P<size>micro|small|medium)-(?P<mib>\d+)$")


def _custom(name: str) -> Machine | None:
    """Parse `[family-]custom-<vCPU>-<MiB>[-ext]`; no family means n1. The shared e2 ones have 2 vCPUs."""
    if shared := _E2_SHARED.match(name):
        return Machine(name=name, family="e2", vcpu=2, memory_mib=int(shared["mib"]), shared=True)
    match = _CUSTOM.match(name)
    if match is None or int(match["cpu"]) == 0 or int(match["mib"]) == 0:
        return None
    family = match["family"] or "n1"
    arch = "arm64" if family in {"t2a", "c4a", "n4a"} else "amd64"
    return Machine(name=name, family=family, arch=arch, vcpu=int(match["cpu"]), memory_mib=int(match["mib"]))


# Common GPU names -> values of the label cloud.google.com/gke-accelerator, commonest first.
GPU_ALIASES: Mapping[str, tuple[str, ...]] = {
    "k80": ("nvidia-tesla-k80",),
    "p4": ("nvidia-tesla-p4",),
    "p100": ("nvidia-tesla-p100",),
    "v100": ("nvidia-tesla-v100",),
    "t4": ("nvidia-tesla-t4",),
    "a100": ("nvidia-tesla-a100", "nvidia-a100-80gb"),
    "a100-40gb": ("nvidia-tesla-a100",),
    "a100-80gb": ("nvidia-a100-80gb",),
    "l4": ("nvidia-l4",),
    "h100": ("nvidia-h100-80gb", "nvidia-h100-mega-80gb"),
    "h100-mega": ("nvidia-h100-mega-80gb",),
    "h200": ("nvidia-h200-141gb",),
    "b200": ("nvidia-b200",),
    "gb200": ("nvidia-gb200",),
    "gb300": ("nvidia-gb300",),
    "rtx-pro-6000": ("nvidia-rtx-pro-6000",),
}


def gpu_matches(wanted: str, offered: str) -> bool:
    """Return True if a pool's GPU type matches: the exact label value, or a short name such as ``V100``.

    A short name never matches a part of another one: ``p4`` is not ``p40``, ``gb200`` is not ``b200``.
    """
    asked, has = wanted.lower().replace("_", "-"), offered.lower()
    short, other = (name.removeprefix("nvidia-").removeprefix("tesla-") for name in (asked, has))
    return asked == has or (has in GPU_ALIASES[short] if short in GPU_ALIASES else short == other)


def slice_hosts(topology: str, chips_per_host: int) -> int:
    """Return the number of VMs of a TPU slice of `topology`, such as ``4x4`` or ``2x2x4``.

    Raises ValueError for an invalid topology.
    """
    sides = topology.lower().split("x")
    if not all(side.isdecimal() and int(side) > 0 for side in sides) or len(sides) not in (2, 3):
        raise ValueError(f'"{topology}" is not a TPU topology, such as 4x4 or 2x2x4')
    return max(1, math.prod(map(int, sides)) // max(1, chips_per_host))
