"""Node pools are read from any of ten inputs, which are told apart by their content.

Cloudwise and other Terraform configuration in JSON, HCL, `terraform show -json` of a plan or a state, a raw state,
`gcloud container node-pools list|describe` and `clusters describe` (JSON or YAML), `kubectl get nodes -o json` (with
pods and DaemonSets, if given), ComputeClass, MachineConfig, and our own pools.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.formats.yaml_text import line_of, load
from symphony_charts.placement.machines.catalog import Catalog, default_catalog
from symphony_charts.placement.pools.computeclass import read_compute_class
from symphony_charts.placement.pools.gcloud import read_cluster, read_node_pool
from symphony_charts.placement.pools.machine_list import read_machine_configs, read_machine_types
from symphony_charts.placement.pools.nodes import read_nodes
from symphony_charts.placement.pools.plain import read_plain
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.terraform_config import hcl_line_of, parse_hcl, read_config
from symphony_charts.placement.pools.terraform_state import read_show, read_state

__all__ = ["FORMATS", "merge", "pools_of_data", "read_pools"]

FORMATS = (
    "terraform", "terraform-plan", "terraform-state", "tfstate", "gcloud-cluster", "gcloud-pools", "kubernetes",
    "machine-types", "pools",
)  # fmt: skip


def read_pools(
    text: str, name: str = "", *, variables: Mapping[str, object] | None = None, catalog: Catalog | None = None
) -> Pools:
    """The pools of one file's `text`; `name` is its path and tells HCL from the rest.

    `variables` are Terraform's, given by the user. Raises SpecError with every fault at once, each with its line.
    """
    if name.endswith((".tf", ".hcl")):
        return pools_of_data(parse_hcl(text, name), name, variables=variables, catalog=catalog, text=text)
    data = _parse(text, name)
    return pools_of_data(data, name, variables=variables, catalog=catalog, text=text)


def pools_of_data(
    data: object,
    name: str = "",
    *,
    variables: Mapping[str, object] | None = None,
    catalog: Catalog | None = None,
    text: str = "",
) -> Pools:
    """The pools of data that has been parsed; `text` is used for line numbers in errors alone."""
    find_line = hcl_line_of if name.endswith((".tf", ".hcl")) else line_of
    faults = Faults(file=name, line_of=(lambda path: find_line(text, path)) if text else (lambda _path: None))
    machines = catalog or default_catalog()
    result = _read(_detect(data, name), data, faults, machines, variables or {})
    faults.check()
    names = [pool.name for pool in result.pools]
    for twice in sorted({n for n in names if names.count(n) > 1} if len(set(names)) < len(names) else ()):
        faults.add(f'two pools are named "{twice}"', "", "pool names tell pools apart")
    faults.check()
    return replace(result, source=name)


def _detect(data: object, name: str = "") -> str:
    """Which of FORMATS `data` is; raises SpecError when it is none."""
    if isinstance(data, list):
        first = data[0] if data and isinstance(data[0], dict) else {}
        if "guestCpus" in first:
            return "machine-types"
        return "kubernetes" if "kind" in first and "metadata" in first else "gcloud-pools"
    if isinstance(data, dict):
        for keys, kind in (
            (("planned_values",), "terraform-plan"),
            (("values", "format_version"), "terraform-state"),
            (("resources", "terraform_version"), "tfstate"),
            (("resource",), "terraform"),
            (("nodePools",), "gcloud-cluster"),
            (("guestCpus",), "machine-types"),
            (("kind", "apiVersion"), "kubernetes"),
            (("pools",), "pools"),
            (("config", "name"), "gcloud-pools"),
        ):
            if all(key in data for key in keys):
                return kind
    raise SpecError.one(
        "this file describes no node pools",
        at=name,
        next="a Terraform file, plan or state, gcloud's or kubectl's JSON, or a pools.yaml; see docs/placement.md",
    )


def merge(several: Iterable[Pools]) -> Pools:
    """Pools of several files as one: live nodes of a pool that another file describes join it, with its maximum."""
    merged: dict[str, Pool] = {}
    notes: list[str] = []
    sources: list[str] = []
    catalog = default_catalog()
    for pools in several:
        sources.append(pools.source)
        notes += pools.notes
        catalog = pools.catalog if pools.catalog.origin != "shipped" else catalog
        for pool in pools.pools:
            merged[pool.name] = _join(merged[pool.name], pool) if pool.name in merged else pool
    return Pools(pools=tuple(merged.values()), source=" + ".join(sources), catalog=catalog, notes=tuple(notes))


def _join(one: Pool, other: Pool) -> Pool:
    live, planned = (one, other) if one.nodes else (other, one)
    if not live.nodes:
        return other
    return replace(
        live,
        min_nodes=planned.min_nodes,
        max_nodes=max(planned.max_nodes, len(live.nodes)),
        zones=planned.zones or live.zones,
        source=f"{planned.source} + {live.source}",
    )


def _parse(text: str, name: str) -> object:
    """JSON or YAML; JSON goes through the fast parser, and both end in a SpecError with the place."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            json_error = str(error)
        try:
            return load(text)
        except ValueError:
            raise SpecError.one(f"no valid JSON: {json_error}", at=name) from None
    try:
        return load(text)
    except SpecError as error:
        raise SpecError(error.problems, at=name) from error


def _read(kind: str, data: object, faults: Faults, catalog: Catalog, variables: Mapping[str, object]) -> Pools:
    if kind == "kubernetes":
        return _kubernetes(data, faults, catalog)
    if kind == "machine-types":
        items = data if isinstance(data, list) else [data]
        machines = read_machine_types((Fields.of(x, f"[{i}]", faults) for i, x in enumerate(items)), catalog)
        return Pools(catalog=catalog.extended(machines, faults.file or "gcloud"))
    if kind == "gcloud-pools":
        listed = data if isinstance(data, list) else [data]
        fields = [Fields.of(x, f"[{i}]" if isinstance(data, list) else "", faults) for i, x in enumerate(listed)]
        node_pools = [read_node_pool(item, catalog) for item in fields]
        return Pools(pools=tuple(pool for pool in node_pools if pool is not None), catalog=catalog)
    top = {str(key): value for key, value in data.items()} if isinstance(data, dict) else {}
    if kind == "terraform":
        pools = read_config(top, faults, catalog, variables)
    elif kind in ("terraform-plan", "terraform-state"):
        pools = read_show(top, faults, catalog)
    elif kind == "tfstate":
        pools = read_state(top, faults, catalog)
    elif kind == "gcloud-cluster":
        pools = read_cluster(Fields.of(top, "", faults), catalog)
    else:
        pools = read_plain(Fields.of(top, "", faults), catalog)
    return Pools(pools=tuple(pools), catalog=catalog)


def _kubernetes(data: object, faults: Faults, catalog: Catalog) -> Pools:
    """Nodes (with pods and DaemonSets), compute classes and machine configurations, in any mixture."""
    items = _items(data, "", faults)
    kinds = {item.text("kind") for item in items}
    configs = [item for item in items if item.text("kind") == "MachineConfig"]
    if configs:
        catalog = catalog.extended(read_machine_configs(configs, catalog), faults.file or "MachineConfig")
    pools: list[Pool] = []
    for item in items:
        if item.text("kind") == "ComputeClass":
            pools += read_compute_class(item, catalog)
    if "Node" in kinds:
        wanted = [item for item in items if item.text("kind") in ("Node", "Pod", "DaemonSet")]
        pools += read_nodes(wanted, faults, catalog)
    if not kinds & {"Node", "ComputeClass", "MachineConfig"}:
        faults.add(f"no Node, ComputeClass or MachineConfig among {', '.join(sorted(kinds)) or 'nothing'}", "")
    return Pools(pools=tuple(pools), catalog=catalog)


def _items(data: object, path: str, faults: Faults) -> list[Fields]:
    if isinstance(data, list):
        return [item for index, entry in enumerate(data) for item in _items(entry, f"{path}[{index}]", faults)]
    fields = Fields.of(data, path, faults)
    listed = fields.data.get("items")
    if isinstance(listed, list):
        kind = fields.text("kind").removesuffix("List")
        items = _items(listed, fields.at("items"), faults)
        if kind:
            for item in items:
                item.data.setdefault("kind", kind)
        return items
    return [fields]
