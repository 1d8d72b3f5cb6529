"""Node pools are read from files on disk, with the user's own machine list over the shipped catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.placement.machines.catalog import Catalog, Machine, default_catalog
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import merge, read_pools, resolve_references
from symphony_charts.placement.pools.system_option import with_system_amounts, with_system_objects
from symphony_charts.system.user_folders import state_dir

__all__ = [
    "read_pool_files",
    "read_pools_file",
    "user_catalog",
    "user_catalog_path",
    "with_system",
]


def user_catalog_path() -> Path:
    """Return the file in which `symph catalog refresh` keeps the user's machine types."""
    return state_dir() / "machines.json"


@lru_cache(maxsize=4)
def _read_catalog(path: Path, _changed: int) -> Catalog:
    try:
        machines = msgspec.json.decode(path.read_bytes(), type=tuple[Machine, ...])
    except msgspec.MsgspecError as error:
        hint = "write it again with `symph catalog refresh FILE`, or delete it"
        raise SpecError.one(f"the machine list is damaged: {error}", at=str(path), next=hint) from error
    return default_catalog().extended(machines, str(path))


def user_catalog() -> Catalog:
    """Return the shipped catalogue with the user's own machine types over it, if there are any."""
    path = user_catalog_path()
    return _read_catalog(path, path.stat().st_mtime_ns) if path.is_file() else default_catalog()


def read_pools_file(path: str | Path, *, variables: Mapping[str, object] | None = None) -> Pools:
    """Return the pools of one file, in any of the formats of `symphony_charts.placement.pools`; ``~`` expands.

    `variables` are Terraform's. Raises SpecError for a file that is not there, and for faults, each with its line.
    """
    return resolve_references(_read(path, variables))


def _read(path: str | Path, variables: Mapping[str, object] | None) -> Pools:
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise SpecError.one(f"no cluster file {path}", next="give the file that describes your node pools") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the cluster file: {error}", at=str(path)) from error
    return read_pools(text, str(path), variables=variables, catalog=user_catalog())


def read_pool_files(paths: Sequence[str | Path], *, variables: Mapping[str, object] | None = None) -> Pools:
    """Return the pools of several files as one cluster: machine lists first, live nodes join the pool of their name."""
    read = [_read(path, variables) for path in paths]
    return resolve_references(read[0] if len(read) == 1 else merge(read))


def with_system(pools: Pools, said: str | None) -> Pools:
    """`pools` with what `--system` says: amounts, ``elsewhere``, or a file of DaemonSets and Deployments."""
    if said is None or "=" in said or not Path(said).expanduser().is_file():
        return pools if said is None else with_system_amounts(pools, said)
    return with_system_objects(pools, load(Path(said).expanduser().read_text(encoding="utf-8-sig")), said)
