"""Write symphony_charts/placement/data/machines.json from the rules below, and check it against public tables.

    python scripts/make_catalog.py                                  write the file, keep the recorded sources
    python scripts/make_catalog.py --check GKE.go GCP.yml           compare first, and record which source agrees

The rules are ours: how Google names machine types, and what a name means. Two public tables serve as witnesses, to be
downloaded by hand (both Apache-2.0):

- ``gke``: GoogleCloudPlatform/cluster-autoscaler, pkg/cloudprovider/gke/machinetypes/deprecated_machine_types_config.go
- ``pricing``: Cyclenerd/google-cloud-pricing-cost-calculator, build/gcp.yml

A machine must agree with every witness that lists it, or stand in EXCEPTIONS with the reason; a machine that a
witness lists and the rules miss is printed. Machines of one witness only have one name in ``sources``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

OUTPUT = Path(__file__).parent.parent / "symphony_charts/placement/data/machines.json"
CHECKED = "2026-11-21"

ARM = {"t2a", "c4a", "n4a", "a4x", "e4a"}

# Differences of the witnesses, and the reason why each is not followed.
EXCEPTIONS = {
    ("gke", "e2-micro"): "listed with its fractional share; the node shows 2 vCPU",
    ("gke", "e2-small"): "listed with its fractional share; the node shows 2 vCPU",
    ("gke", "e2-medium"): "listed with its fractional share; the node shows 2 vCPU",
    ("pricing", "e2-micro"): "listed with its fractional share; the node shows 2 vCPU",
    ("pricing", "e2-small"): "listed with its fractional share; the node shows 2 vCPU",
    ("pricing", "e2-medium"): "listed with its fractional share; the node shows 2 vCPU",
    ("gke", "g2-standard-24"): "lists 23 vCPU; the name and the other table say 24",
    ("gke", "n2d-highmem-96"): "lists 786 GiB; 8 GiB per vCPU and the other table say 768",
}

POWERS = "2 4 8 16 32"
N2 = "2 4 8 16 32 48 64 80 96 128"
C2D = "2 4 8 16 32 56 112"
C3 = "4 8 22 44 88 176"
C3D = "4 8 16 30 60 90 180 360"
C4 = "2 4 8 16 24 32 48 64 96 144 192 288"
C4A = "1 2 4 8 16 32 36 48 64 72"
C4A_SSD = "4:1 8:2 16:4 32:6 48:10 64:14 72:16"
C4D = "2 4 8 16 32 48 64 96 192 384"
C4D_SSD = "8:1 16:1 32:2 48:4 64:6 96:8 192:16 384:32"
C4N = "2 4 8 16 24 32 48 96 192"
C4N_SSD = "4:1 8:1 16:2 24:4 32:5 48:8 96:16 192:32"
C4_SSD = "4:1 8:1 16:2 24:4 32:5 48:8 64:10 96:16 144:24 192:32 288:48"
C3D_SSD = "8:1 16:1 30:2 60:4 90:8 180:16 360:32"
N4 = "2 4 8 16 32 48 64 80"
N4A = "1 2 4 8 16 32 48 64"
Z4D_SSD = "16:1 32:2 48:3 64:4 96:6 192:12"

# series, GiB per vCPU, "vCPU" or "vCPU:local SSDs" of each size. Memory is rounded down to GiB, except for n1.
SERIES: list[tuple[str, float, str]] = [
    ("n1-standard", 3.75, "1 2 4 8 16 32 64 96"),
    ("n1-highmem", 6.5, "2 4 8 16 32 64 96"),
    ("n1-highcpu", 0.9, "2 4 8 16 32 64 96"),
    ("n2-standard", 4, N2),
    ("n2-highmem", 8, "2 4 8 16 32 48 64 80 96"),
    ("n2-highcpu", 1, N2),
    ("n2d-standard", 4, f"{N2} 224"),
    ("n2d-highmem", 8, "2 4 8 16 32 48 64 80 96"),
    ("n2d-highcpu", 1, f"{N2} 224"),
    ("n4-standard", 4, N4),
    ("n4-highmem", 8, N4),
    ("n4-highcpu", 2, N4),
    ("n4a-standard", 4, N4A),
    ("n4a-highmem", 8, N4A),
    ("n4a-highcpu", 2, N4A),
    ("n4d-standard", 4, f"{N4} 96"),
    ("n4d-highmem", 8, f"{N4} 96"),
    ("n4d-highcpu", 2, f"{N4} 96"),
    ("e2-standard", 4, POWERS),
    ("e2-highmem", 8, "2 4 8 16"),
    ("e2-highcpu", 1, POWERS),
    ("e4-standard", 4, POWERS),
    ("e4-highmem", 8, "2 4 8 16"),
    ("e4-highcpu", 1, POWERS),
    ("t2d-standard", 4, "1 2 4 8 16 32 48 60"),
    ("t2a-standard", 4, "1 2 4 8 16 32 48"),
    ("c2-standard", 4, "4 8 16 30 60"),
    ("c2d-standard", 4, C2D),
    ("c2d-highmem", 8, C2D),
    ("c2d-highcpu", 2, C2D),
    ("c3-standard", 4, C3),
    ("c3-highmem", 8, C3),
    ("c3-highcpu", 2, C3),
    ("c3-standard-#-lssd", 4, "4:1 8:2 22:4 44:8 88:16 176:32"),
    ("c3-standard-#-metal", 4, "192"),
    ("c3-highmem-#-metal", 8, "192"),
    ("c3-highcpu-#-metal", 512 / 192, "192"),
    ("c3d-standard", 4, C3D),
    ("c3d-highmem", 8, C3D),
    ("c3d-highcpu", 2, "4 8 16"),
    ("c3d-highcpu", 59 / 30, "30 60 90 180 360"),
    ("c3d-standard-#-lssd", 4, C3D_SSD),
    ("c3d-highmem-#-lssd", 8, C3D_SSD),
    ("c4-standard", 3.75, C4),
    ("c4-highmem", 7.75, C4),
    ("c4-highcpu", 2, C4),
    ("c4-standard-#-lssd", 3.75, C4_SSD),
    ("c4-highmem-#-lssd", 7.75, C4_SSD),
    ("c4-standard-#-metal", 3.75, "288"),
    ("c4-highmem-#-metal", 7.75, "288"),
    ("c4-highcpu-#-metal", 2, "288"),
    ("c4a-standard", 4, C4A),
    ("c4a-highmem", 8, C4A),
    ("c4a-highcpu", 2, C4A),
    ("c4a-standard-#-lssd", 4, C4A_SSD),
    ("c4a-highmem-#-lssd", 8, C4A_SSD),
    ("c4a-highcpu-#-lssd", 2, C4A_SSD),
    ("c4a-standard-#-metal", 4, "96"),
    ("c4a-highmem-#-metal", 8, "96"),
    ("c4d-standard", 3.875, C4D),
    ("c4d-highmem", 7.875, C4D),
    ("c4d-highcpu", 1.875, C4D),
    ("c4d-standard-#-lssd", 3.875, C4D_SSD),
    ("c4d-highmem-#-lssd", 7.875, C4D_SSD),
    ("c4d-standard-#-metal", 4, "384"),
    ("c4d-highmem-#-metal", 8, "384"),
    ("c4d-highcpu-#-metal", 2, "384"),
    ("c4n-standard", 3.75, C4N),
    ("c4n-highmem", 7.75, C4N),
    ("c4n-highcpu", 2, C4N),
    ("c4n-standard-#-lssd", 3.75, C4N_SSD),
    ("c4n-highmem-#-lssd", 7.75, C4N_SSD),
    ("h3-standard", 4, "88"),
    ("h4d-standard", 3.75, "192"),
    ("h4d-highmem", 7.75, "192"),
    ("h4d-highmem-#-lssd", 7.75, "192:10"),
    ("h4d-megamem", 15.75, "192"),
    ("h4d-megamem-#-lssd", 15.75, "192:32"),
    ("m1-ultramem", 24.025, "40 80 160"),
    ("m2-ultramem", 5888 / 208, "208 416"),
    ("m2-megamem", 5888 / 416, "416"),
    ("m2-hypermem", 8832 / 416, "416"),
    ("m3-ultramem", 30.5, "32 64 128"),
    ("m3-megamem", 15.25, "64 128"),
    ("m4-ultramem", 1488 / 56, "56 112 224"),
    ("m4-megamem", 372 / 28, "28 56 112 224"),
    ("m4-hypermem", 15.5, "16 32 64"),
    ("m4n-ultramem", 1488 / 56, "56 112"),
    ("m4n-megamem", 372 / 28, "28 56 112"),
    ("m4n-hypermem", 15.5, "16 32 64"),
    ("z3-highmem", 8, "8:1 14:2 22:3 30:4 36:5 44:6 88:12 176:12"),
    ("z3-highmem-#-highlssd", 8, "8:1 16:2 22:3 32:4 44:6 88:12"),
    ("z3-highmem-#-standardlssd", 8, "14:1 22:2 44:3 88:6 176:12"),
    ("z4d-highmem-#-standardlssd", 7.875, "8:1 16:1 32:2 48:3 64:4 96:6 192:12 384:24"),
    ("z4d-highmem-#-highlssd", 7.875, "8:1 16:2 24:3 32:4 48:6 64:8 96:12 192:24"),
    ("z4d-standard-#-standardlssd", 3.875, Z4D_SSD),
    ("z4d-4t-standard-#-standardlssd", 3.875, Z4D_SSD),
    ("z4d-8t-standard-#-standardlssd", 3.875, Z4D_SSD),
    ("z3-highmem-#-highlssd-metal", 8, "192:12"),
    ("c4-standard-#-lssd-metal", 3.75, "288:6"),
    ("c4-highmem-#-lssd-metal", 7.75, "288:6"),
]

# Machines whose name does not give their size: vCPU, GiB.
SINGLE: dict[str, tuple[int, float]] = {
    "e2-micro": (2, 1),
    "e2-small": (2, 2),
    "e2-medium": (2, 4),
    "e4-medium": (2, 4),
    "f1-micro": (1, 0.6),
    "g1-small": (1, 1.7),
    "m1-megamem-96": (96, 1433.6),
    "n2-highmem-128": (128, 864),
}
SHARED = {"e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small"}

# name, vCPU, GiB, GPU type, GPUs, built-in local SSDs; a "-nolssd" twin exists if the last field is "+".
GPU_MACHINES: list[tuple[str, int, float, str, int, int, str]] = [
    *((f"a2-highgpu-{n}g", 12 * n, 85 * n, "nvidia-tesla-a100", n, 0, "") for n in (1, 2, 4, 8)),
    ("a2-megagpu-16g", 96, 1360, "nvidia-tesla-a100", 16, 0, ""),
    *((f"a2-ultragpu-{n}g", 12 * n, 170 * n, "nvidia-a100-80gb", n, n, "+") for n in (1, 2, 4, 8)),
    *((f"g2-standard-{c}", c, 4 * c, "nvidia-l4", 1, 0, "") for c in (4, 8, 12, 16, 32)),
    *((f"g2-standard-{c}", c, 4 * c, "nvidia-l4", c // 12, 0, "") for c in (24, 48, 96)),
    *((f"g4-standard-{48 * n}", 48 * n, 180 * n, "nvidia-rtx-pro-6000", n, 0, "") for n in (1, 2, 4, 8)),
    *((f"g4-standard-{c}", c, g, "nvidia-rtx-pro-6000", 1, 0, "") for c, g in ((6, 22), (12, 45), (24, 90))),
    *((f"a3-highgpu-{n}g", 26 * n, 234 * n, "nvidia-h100-80gb", n, 2 * n, "+") for n in (1, 2, 4, 8)),
    ("a3-edgegpu-8g", 208, 1872, "nvidia-h100-80gb", 8, 16, "+"),
    ("a3-megagpu-8g", 208, 1872, "nvidia-h100-mega-80gb", 8, 16, "+"),
    ("a3-ultragpu-8g", 224, 2952, "nvidia-h200-141gb", 8, 32, "+"),
    ("a4-highgpu-8g", 224, 3968, "nvidia-b200", 8, 32, "+"),
    ("a4x-highgpu-4g", 140, 884, "nvidia-gb200", 4, 4, "+"),
    ("a4x-maxgpu-4g-metal", 144, 960, "nvidia-gb300", 4, 4, ""),
]

# name, vCPU, GiB, value of the label gke-tpu-accelerator, chips per VM, topology of one VM.
TPU_MACHINES: list[tuple[str, int, int, str, int, str]] = [
    ("ct3-hightpu-4t", 96, 340, "tpu-v3-device", 4, "2x2"),
    ("ct3p-hightpu-4t", 48, 340, "tpu-v3-slice", 4, "2x2"),
    ("ct4p-hightpu-4t", 240, 407, "tpu-v4-podslice", 4, "2x2x1"),
    ("ct5l-hightpu-1t", 24, 48, "tpu-v5-lite-device", 1, "1x1"),
    ("ct5l-hightpu-4t", 112, 192, "tpu-v5-lite-device", 4, "2x2"),
    ("ct5l-hightpu-8t", 224, 384, "tpu-v5-lite-device", 8, "2x4"),
    ("ct5lp-hightpu-1t", 24, 48, "tpu-v5-lite-podslice", 1, "1x1"),
    ("ct5lp-hightpu-4t", 112, 192, "tpu-v5-lite-podslice", 4, "2x2"),
    ("ct5lp-hightpu-8t", 224, 384, "tpu-v5-lite-podslice", 8, "2x4"),
    ("ct5p-hightpu-4t", 208, 448, "tpu-v5p-slice", 4, "2x2x1"),
    ("ct6e-standard-1t", 44, 176, "tpu-v6e-slice", 1, "1x1"),
    ("ct6e-standard-4t", 180, 720, "tpu-v6e-slice", 4, "2x2"),
    ("ct6e-standard-8t", 180, 1440, "tpu-v6e-slice", 8, "2x4"),
    ("tpu7-standard-1t", 56, 240, "tpu7", 1, "1x1x1"),
    ("tpu7-standard-4t", 224, 960, "tpu7", 4, "2x2x1"),
    ("tpu7x-standard-1t", 56, 248, "tpu7x", 1, "1x1x1"),
    ("tpu7x-standard-4t", 224, 992, "tpu7x", 4, "2x2x1"),
    ("tpu7x-ultranet-4t", 224, 992, "tpu7x", 4, "2x2x1"),
]

BIG_SSD = re.compile(r"z3-|a4x-|z4d-|.*-lssd-metal$")  # disks of 3,000 GiB; all other local SSDs have 375
Row = dict[str, object]


def machine(name: str, vcpu: int, gib: float, ssds: int = 0) -> Row:
    """Return one catalogue row without accelerator; the family is the name up to its first hyphen."""
    family = name.split("-")[0]
    row: Row = {"name": name, "family": "n1" if family in {"f1", "g1"} else family}
    row |= {"arch": "arm64" if family in ARM else "amd64", "vcpu": vcpu, "memory_mib": round(gib * 1024)}
    if name in SHARED:
        row["shared"] = True
    if ssds:
        row |= {"local_ssds": ssds, "local_ssd_gib": 3000 if BIG_SSD.match(name) else 375}
    return row


def rows() -> Iterator[Row]:
    for series, ratio, sizes in SERIES:
        for size in sizes.split():
            vcpu, _, ssds = size.partition(":")
            name = series.replace("#", vcpu) if "#" in series else f"{series}-{vcpu}"
            gib = ratio * int(vcpu)
            yield machine(name, int(vcpu), gib if series.startswith("n1-") else int(gib + 1e-9), int(ssds or 0))
    for name, (vcpu, gib) in SINGLE.items():
        yield machine(name, vcpu, gib)
    for name, vcpu, gib, gpu, count, ssds, twin in GPU_MACHINES:
        yield machine(name, vcpu, gib, ssds) | {"gpu": gpu, "gpus": count}
        if twin:
            yield machine(f"{name}-nolssd", vcpu, gib) | {"gpu": gpu, "gpus": count}
    for name, vcpu, gib, tpu, chips, topology in TPU_MACHINES:
        yield machine(name, vcpu, gib) | {"tpu": tpu, "chips": chips, "topology": topology}


def witnesses(go: Path, gcp: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the data of the two public tables: source -> machine -> (vCPU, GiB)."""
    pattern = re.compile(r'NewMachineTypeInfo\("([^"]+)", ([0-9.]+), ([0-9.]+)\)')
    gke = {m[1]: (float(m[2]), float(m[3])) for m in pattern.finditer(go.read_text())}
    instances = yaml.safe_load(gcp.read_text())["compute"]["instance"]
    pricing = {name: (float(entry.get("cpu", 0)), float(entry.get("ram", 0))) for name, entry in instances.items()}
    return {"gke": gke, "pricing": pricing}


def check(table: list[Row], told: dict[str, dict[str, tuple[float, float]]]) -> list[str]:
    """Record the agreeing witnesses in each row; return every disagreement that is not in EXCEPTIONS."""
    faults = []
    for row in table:
        name, found = str(row["name"]), []
        for source, machines in told.items():
            if name not in machines:
                continue
            said = (machines[name][0], round(machines[name][1] * 1024))
            if said == (row["vcpu"], row["memory_mib"]):
                found.append(source)
            elif (source, name) not in EXCEPTIONS:
                faults.append(f"{name}: rules say {row['vcpu']}, {row['memory_mib']}; {source} says {said}")
        row["sources"] = found
        if not found and name not in SHARED:
            faults.append(f"{name}: no source agrees")
    return faults


def shape_faults(table: list[Row]) -> list[str]:
    """Return mismatches of names and contents: wrong accelerator count in a GPU or TPU suffix, duplicate names."""
    faults = []
    for row in table:
        count = re.search(r"-(\d+)([gt])(?:-|$)", str(row["name"]))
        if (
            count
            and ("gpu" in row or "tpu" in row)
            and int(count[1]) != row.get("gpus" if count[2] == "g" else "chips")
        ):
            faults.append(f"{row['name']}: accelerators do not match the name")
    names = [str(row["name"]) for row in table]
    return faults + [f"{name}: twice" for name in sorted({n for n in names if names.count(n) > 1})]


def with_recorded_sources(table: list[Row]) -> list[Row]:
    """Return `table` with the sources in the file on disk, so that a run without the public tables loses nothing."""
    recorded = {row["name"]: row.get("sources", []) for row in json.loads(OUTPUT.read_text())["machines"]}
    return [row | {"sources": recorded.get(row["name"], [])} for row in table]


def text_of(table: list[Row]) -> str:
    exceptions = [{"source": source, "machine": name, "why": why} for (source, name), why in EXCEPTIONS.items()]
    lines = ",\n".join(json.dumps(row) for row in table)
    head = json.dumps({"date": CHECKED, "exceptions": exceptions}, indent=1)[:-2]
    return f'{head},\n "machines": [\n{lines}\n]}}\n'


def catalog_rows() -> list[Row]:
    """Return the rows of the catalogue in the order of its file."""
    return sorted(rows(), key=lambda row: str(row["name"]))


def main() -> int:
    """Write the catalogue; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", nargs=2, type=Path, metavar=("GKE.go", "GCP.yml"))
    arguments = parser.parse_args()
    table = catalog_rows()
    faults = shape_faults(table)
    if arguments.check:
        told = witnesses(*arguments.check)
        faults += check(table, told)
        missing = sorted({name for said in told.values() for name in said} - {str(row["name"]) for row in table})
        sys.stderr.write(f"not in our rules: {' '.join(missing)}\n")
    else:
        table = with_recorded_sources(table)
    for fault in faults:
        sys.stderr.write(f"error: {fault}\n")
    OUTPUT.write_text(text_of(table))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
