"""`pools_of_spec` says on which node pools an experiment is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path

from symphony_charts.placement.pools.pool import Pools

__all__ = ["pools_of_spec"]


def pools_of_spec(
    spec: Path,
    named: str | None,
    given: Sequence[str] = (),
    *,
    variables: Mapping[str, object] | None = None,
    system: str | None = None,
) -> Pools | None:
    """Return the pools an experiment is planned on: the files given, else its `placement.pools` beside the spec file.

    None when neither says any.
    """
    if not given and named is None:
        return None
    # What reads all formats of pools takes 10 ms to import, which experiments without pools do not spend.
    from symphony_charts.placement.pools.files import read_pool_files, read_pools_file, with_system

    if given:
        return with_system(read_pool_files(given, variables=variables), system)
    path = Path(named or "").expanduser()
    # normpath, not resolve: errors and plans name the file as the user would, not where a link leads.
    return with_system(read_pools_file(normpath(spec.parent / path), variables=variables), system)
