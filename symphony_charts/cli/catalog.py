"""`symph catalog`: machine types, and the node pools of a cluster file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import msgspec

from symphony_charts.cli import options, output
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats import names, quantity
from symphony_charts.placement import catalog as placement_catalog
from symphony_charts.placement.pools import readers
from symphony_charts.system import files


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    import_ = actions.add_parser("import", help="print the node pools of a cluster file")
    import_.add_argument("files", metavar="FILE", nargs="+", help="cluster file; several are taken as one cluster")
    options.add_list(import_, "--var", metavar="KEY=VALUE", help="a Terraform variable")
    options.add_system(import_)
    options.add_output(import_)
    show = actions.add_parser("show", help="print machine types by name, custom ones too")
    show.add_argument("names", metavar="MACHINE", nargs="+")
    options.add_output(show)
    search = actions.add_parser("search", help="find machine types by a part of name, family or accelerator")
    search.add_argument("text", metavar="TEXT")
    options.add_output(search)
    refresh = actions.add_parser("refresh", help="keep the machine types that your own gcloud lists")
    refresh.add_argument("file", metavar="FILE", help="gcloud compute machine-types list --format=json")
    options.add_dry_run(refresh)
    options.add_output(refresh)
    options.add_examples(
        parser,
        "symph catalog import cluster.tf.json",
        "symph catalog show n1-standard-8 n2-custom-6-20480",
        "symph catalog search a100",
        "gcloud compute machine-types list --format=json > types.json; symph catalog refresh types.json",
    )


def run(args: argparse.Namespace) -> int:
    return {"import": _import, "show": _show, "search": _search, "refresh": _refresh}[args.action](args)


def _import(args: argparse.Namespace) -> int:
    read = readers.read_pool_files(args.files, variables=dict(options.parse_assignments(args.var, "--var")))
    pools = readers.apply_system_option(read, args.system)
    rows = [
        {
            "name": pool.name,
            "machineType": pool.machine_type,
            "minNodes": pool.min_nodes,
            "maxNodes": pool.max_nodes,
            "liveNodes": len(pool.nodes),
            "usable": pool.usable,
            "allocatable": dict(pool.allocatable),
            "system": dict(pool.system),
            "knownBy": pool.accuracy,
            "gpuType": pool.gpu_type,
            "provisioning": pool.provisioning,
            "labels": dict(sorted(pool.labels.items())),
            "taints": [str(taint) for taint in pool.taints],
            "zones": list(pool.zones),
            "doubts": [doubt.text for doubt in pool.uncertainties],
            "source": pool.source,
            "cpu": quantity.cores_text(pool.usable.get("cpu", 0)),
            "memory": f"{quantity.gib_text(pool.usable.get('memory', 0))} GiB",
        }
        for pool in pools.pools
    ]
    columns = [
        output.Column("POOL", "name"),
        output.Column("MACHINE", "machineType"),
        output.Column("NODES", lambda row: f"{row['minNodes']}-{row['maxNodes']}"),
        *output.columns("cpu", "memory"),
        output.Column("GPU", _gpu_text),
        output.Column("KIND", "provisioning"),
        output.Column("KNOWN BY", "knownBy"),
        output.Column("TAINTS", lambda row: " ".join(output.texts(row["taints"]))),
        output.Column(
            "LABELS", lambda row: " ".join(f"{key}={text}" for key, text in row["labels"].items()), is_wide=True
        ),
        output.Column("SOURCE", "source", is_wide=True),
    ]
    output.print_items(args, "Pool", rows, columns, empty="the file describes machine types, but no node pools")
    doubts = [f"{pool.name}: {doubt.text}" for pool in pools.pools for doubt in pool.uncertainties]
    for note in (*doubts, *pools.autoscaled):
        output.note(f"note: {note}")
    return 0


def _gpu_text(row: Mapping[str, Any]) -> str:
    gpus, chips = row["usable"].get("nvidia.com/gpu"), row["usable"].get("google.com/tpu")
    if gpus:
        return f"{gpus} {row['gpuType']}".strip()
    return f"{chips} TPU" if chips else ""


def _show(args: argparse.Namespace) -> int:
    catalog = readers.user_catalog()
    machines = {name: machine for name in args.names if (machine := catalog.get(name))}
    if unknown := [name for name in args.names if name not in machines]:
        step = names.hint(unknown[0], catalog.machines, "see `symph catalog search`")
        raise NotFound(f'no machine type "{unknown[0]}"', "", step)
    _print_machines(args, list(machines.values()))
    return 0


def _search(args: argparse.Namespace) -> int:
    _print_machines(args, readers.user_catalog().search(args.text))
    return 0


def _print_machines(args: argparse.Namespace, machines: list[placement_catalog.Machine]) -> None:
    rows: list[dict[str, Any]] = [msgspec.to_builtins(machine) for machine in machines]
    columns = [
        output.Column("MACHINE", "name"),
        output.Column("VCPU", "vcpu"),
        output.Column("MEMORY", lambda row: f"{row['memory_mib'] / 1024:g} GiB"),
        output.Column("ARCH", lambda row: row.get("arch", "amd64")),
        output.Column("GPU", lambda row: f"{row['gpus']} {row['gpu']}" if row.get("gpus") else ""),
        output.Column("TPU", lambda row: f"{row['chips']} {row['tpu']}" if row.get("chips") else ""),
        output.Column("SOURCES", lambda row: "+".join(row.get("sources", ())), is_wide=True),
    ]
    output.print_items(args, "Machine", rows, columns, empty="no machine type matches")


def _refresh(args: argparse.Namespace) -> int:
    read = readers.read_pools_file(args.file).catalog
    shipped = placement_catalog.default_catalog().machines
    fresh = sorted((m for m in read.machines.values() if shipped.get(m.name) != m), key=lambda m: m.name)
    if read.origin != str(args.file):
        hint = "give the output of gcloud compute machine-types list --format=json"
        raise SpecError.one("this file lists no machine types", at=str(args.file), next=hint)
    path = readers.user_catalog_path()
    if not args.dry_run:
        files.write_file(path, msgspec.json.format(msgspec.json.encode(fresh), indent=1) + b"\n")
    new = [m.name for m in fresh if m.name not in shipped]
    record = {"file": str(path), "machines": len(fresh), "new": new, "written": not args.dry_run}
    verb = "would keep" if args.dry_run else "kept"
    output.print_record(args, "Catalog", record, f"{verb} {len(fresh)} machine types, {len(new)} new ones, in {path}")
    return 0
