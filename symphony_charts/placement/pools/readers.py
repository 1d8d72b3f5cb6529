"""Read node pools from files of any format; the content determines the format.

Cloudwise and other Terraform configuration in JSON, `terraform show -json` of a plan or a state, `gcloud container
node-pools list|describe` and `clusters describe` (JSON or YAML), `kubectl get nodes -o json` (with pods and DaemonSets,
if given), machine types of gcloud, and our own pools.yaml.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.formats.yaml_read import line_of, load
from symphony_charts.placement.catalog import Catalog, Machine, default_catalog
from symphony_charts.placement.pools.gcloud import read_cluster, read_machine_types, read_node_pool
from symphony_charts.placement.pools.nodes import pending_pods, read_nodes, with_system_amounts, with_system_objects
from symphony_charts.placement.pools.plain import read_plain
from symphony_charts.placement.pools.pool import ELSEWHERE, Pool, Pools
from symphony_charts.placement.pools.terraform import read_show
from symphony_charts.placement.pools.terraform_config import read_config
from symphony_charts.system.records import decode_json
from symphony_charts.system.user_folders import state_dir

# Advice for configuration with unresolved ``${...}``, which Terraform replaces.
_UNRESOLVED = "give the output of `terraform show -json PLAN` instead, or --var KEY=VALUE (a list in JSON)"
_INSTEAD = "run `terraform show -json > cluster.json` in Terraform's folder, and give cluster.json"


def read_pools(
    text: str, name: str = "", *, variables: Mapping[str, object] | None = None, catalog: Catalog | None = None
) -> Pools:
    """Return the pools in the `text` of one file; `name` is its path.

    `variables` are the user's values of Terraform variables. Raises SpecError with all faults at once, each with its
    line.
    """
    if name.endswith((".tf", ".hcl")):
        raise SpecError.one("symph does not read Terraform's language HCL", at=name, next=_INSTEAD)
    documents = _documents(text)
    read = [_parse(document, name) for document in documents]

    def line(path: str) -> int | None:
        if len(documents) == 1:
            return line_of(documents[0], path)
        number, _, rest = path.removeprefix("[").partition("]")
        return line_of(documents[int(number)], rest.removeprefix(".")) if number.isdecimal() else None

    data, faults = read[0] if len(read) == 1 else read, Faults(file=name, line_of=line)
    return _pools(data, faults, variables or {}, catalog or default_catalog())


def _documents(text: str) -> list[str]:
    """Return the non-empty YAML documents, padded so that line numbers match the file."""
    if text.lstrip()[:1] in ("{", "["):
        return [text]
    documents: list[list[str]] = [[]]
    for number, line in enumerate(text.splitlines()):
        if line.rstrip() == "---" or line.startswith("--- "):
            documents.append([""] * (number + 1))
        else:
            documents[-1].append(line)
    filled = [lines for lines in documents if any(line.strip() and not line.lstrip().startswith("#") for line in lines)]
    return ["\n".join(lines) + "\n" for lines in filled] or [text]


def pools_of_data(
    data: object, name: str = "", *, variables: Mapping[str, object] | None = None, catalog: Catalog | None = None
) -> Pools:
    """Return the pools in parsed data."""
    return _pools(data, Faults(file=name), variables or {}, catalog or default_catalog())


def _pools(data: object, faults: Faults, variables: Mapping[str, object], catalog: Catalog) -> Pools:
    reader = _reader_of(data, faults.file)
    faults.unresolved = _UNRESOLVED if reader is _read_terraform else ""
    result = reader(data, faults, catalog, variables)
    faults.check()
    for twice in sorted(n for n, count in Counter(pool.name for pool in result.pools).items() if count > 1):
        faults.add(f'two pools are named "{twice}"', "", "give each pool its own name")
    faults.check()
    return replace(
        result, source=faults.file, catalog=catalog if result.catalog.origin == "shipped" else result.catalog
    )


def _reader_of(data: object, name: str) -> _Reader:
    """Return the reader for `data`. Raises SpecError if none matches."""
    if isinstance(data, list):
        first = data[0] if data and isinstance(data[0], dict) else {}
        if "guestCpus" in first:
            return _read_machine_types
        if any(isinstance(item, dict) and "kind" in item and "metadata" in item for item in data):
            return _read_kubernetes
        if not first or "config" in first:
            return _read_node_pools
        raise SpecError.one("this is not a list of GKE node pools", at=name, next=ELSEWHERE)
    if isinstance(data, dict):
        for keys, kind in _REMOVED:
            if all(key in data for key in keys):
                raise SpecError.one(f"symph does not read {kind}", at=name, next=_INSTEAD)
        for keys, reader in _READERS:
            if all(key in data for key in keys):
                return reader
        if name.endswith(".tf.json"):
            return _read_terraform
    raise SpecError.one(
        "this file describes no node pools",
        at=name,
        next="give a Terraform plan or state, gcloud's or kubectl's JSON, or a pools.yaml (symph init)",
    )


def merge(several: Iterable[Pools]) -> Pools:
    """Merge the pools of several files; live nodes join the pool that another file describes, with its maximum."""
    merged = Pools()
    pools: dict[str, Pool] = {}
    for each in several:
        for pool in each.pools:
            pools[pool.name] = _join(pools[pool.name], pool) if pool.name in pools else pool
        merged = Pools(
            autoscaled=merged.autoscaled + each.autoscaled,
            workloads=merged.workloads if each.workloads is None else each.workloads,
            pending=merged.pending + each.pending,
            limits=merged.limits + each.limits,
            source=" + ".join(filter(None, (merged.source, each.source))),
            catalog=merged.catalog if each.catalog.origin == "shipped" else each.catalog,
        )
    return replace(merged, pools=tuple(pools.values()))


def _join(one: Pool, other: Pool) -> Pool:
    live, planned = (one, other) if one.nodes else (other, one)
    if not live.nodes:
        return other
    # The live nodes show what each node offers; the other file sets how many there may be.
    growing = tuple(uncertainty for uncertainty in planned.uncertainties if uncertainty.may_grow)
    return replace(
        live,
        min_nodes=planned.min_nodes,
        max_nodes=max(planned.max_nodes, len(live.nodes)),
        zones=planned.zones or live.zones,
        uncertainties=live.uncertainties + growing,
        local_ssds=planned.local_ssds,
        source=f"{planned.source} + {live.source}",
    )


def _parse(text: str, name: str) -> object:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise SpecError.one(f"the file is not valid JSON: {error}", at=name) from error
    try:
        return load(text)
    except SpecError as error:
        raise SpecError(error.problems, at=name) from error


def _read_terraform(data: object, faults: Faults, catalog: Catalog, variables: Mapping[str, object]) -> Pools:
    return read_config(Fields.of(data, "", faults).data, faults, catalog, variables)


def _reader(read: Callable[[Fields, Catalog], Pools]) -> _Reader:
    """Return the reader of a file that holds one map."""
    return lambda data, faults, catalog, _: read(Fields.of(data, "", faults), catalog)


def _read_node_pools(data: object, faults: Faults, catalog: Catalog, _: Mapping[str, object]) -> Pools:
    return Pools(pools=tuple(filter(None, (read_node_pool(item, catalog) for item in _listed(data, faults)))))


def _read_machine_types(data: object, faults: Faults, catalog: Catalog, _: Mapping[str, object]) -> Pools:
    machines = read_machine_types(_listed(data, faults), catalog)
    return Pools(catalog=catalog.extended(machines, faults.file or "gcloud"))


def _read_kubernetes(data: object, faults: Faults, catalog: Catalog, _: Mapping[str, object]) -> Pools:
    """Read nodes, with the pods and DaemonSets beside them."""
    items = _items(data, "", faults)
    kinds = {item.text("kind") for item in items}
    if "NodePool" in kinds:
        faults.add("Karpenter chooses the machines of a NodePool itself, so its nodes are unknown", "", ELSEWHERE)
    elif "Node" not in kinds:
        faults.add(f"the file has no Node, only {', '.join(sorted(kinds)) or 'an empty list'}", "", ELSEWHERE)
    live = [item for item in items if item.text("kind") in ("Node", "Pod", "DaemonSet")]
    pools = read_nodes(live, faults, catalog)
    limits = [
        (item.block("metadata").text("namespace"), f"{item.text('kind')} {item.block('metadata').text('name')}")
        for item in items
        if item.text("kind") in ("ResourceQuota", "LimitRange")
    ]
    return Pools(pools=tuple(pools), pending=tuple(pod.data for pod in pending_pods(items)), limits=tuple(limits))


_Reader = Callable[[object, Faults, Catalog, Mapping[str, object]], Pools]
# The reader of a file with all these keys at its top level; the first match wins.
_READERS: tuple[tuple[tuple[str, ...], _Reader], ...] = (
    (("planned_values",), _reader(read_show)),
    (("values", "format_version"), _reader(read_show)),
    (("resource",), _read_terraform),
    (("nodePools",), _reader(read_cluster)),
    (("guestCpus",), _read_machine_types),
    (("kind", "apiVersion"), _read_kubernetes),
    (("pools",), _reader(read_plain)),
    (("config", "name"), _read_node_pools),
    (("module",), _read_terraform),
)


_REMOVED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("deployment_groups",), "a blueprint of the Cluster Toolkit"),
    (("resources", "terraform_version"), "a raw Terraform state"),
)


def _listed(data: object, faults: Faults) -> list[Fields]:
    """Return the objects of a list; a single object gets the empty path."""
    if not isinstance(data, list):
        return [Fields.of(data, "", faults)]
    return [Fields.of(item, f"[{index}]", faults) for index, item in enumerate(data)]


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


def user_catalog_path() -> Path:
    """Return the file in which `symph catalog refresh` keeps the user's machine types."""
    return state_dir() / "machines.json"


def user_catalog() -> Catalog:
    """Return the shipped catalogue, extended by the user's own machine types if there are any."""
    path = user_catalog_path()
    if not path.is_file():
        return default_catalog()
    try:
        machines = decode_json(path.read_bytes(), tuple[Machine, ...])
    except msgspec.MsgspecError as error:
        hint = "write it again: symph catalog refresh FILE, or delete it"
        raise SpecError.one(f"the machine list is damaged: {error}", at=str(path), next=hint) from error
    return default_catalog().extended(machines, str(path))


def read_pools_file(path: str | Path, *, variables: Mapping[str, object] | None = None) -> Pools:
    """Return the pools of one file in any of the formats of `symphony_charts.placement.pools`; ``~`` expands.

    `variables` are Terraform's. Raises SpecError for a missing file, and for faults, each with its line.
    """
    return read_pools(_text_of(path), str(path), variables=variables, catalog=user_catalog())


def _text_of(path: str | Path) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise SpecError.one(f"{path} does not exist", next="give a file that describes your node pools") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the file: {error}", at=str(path)) from error


def read_pool_files(paths: Sequence[str | Path], *, variables: Mapping[str, object] | None = None) -> Pools:
    """Return the pools of several files as one cluster: machine lists first, live nodes join the pool of their name."""
    read = [read_pools_file(path, variables=variables) for path in paths]
    return read[0] if len(read) == 1 else merge(read)


def apply_system_option(pools: Pools, system: str | None) -> Pools:
    """Return `pools` with the `--system` option applied: amounts, ``elsewhere``, or a file of workloads."""
    if system is None:
        return pools
    if "=" in system or not Path(system).expanduser().is_file():
        return with_system_amounts(pools, system)
    faults = Faults(file=system)
    return with_system_objects(pools, _items(_parse(_text_of(system), system), "", faults), faults)
