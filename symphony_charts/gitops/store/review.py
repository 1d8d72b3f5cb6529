"""Branches for a review: update them, and link to the page of the forge.

The branch's changes are applied to the current state, in a commit that merges both; the operation then determines its
changes again. So its files never conflict, and no version number is used twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from symphony_charts.errors import Conflict
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.base import Operation, PointerOperation
from symphony_charts.gitops.operations import Publish
from symphony_charts.gitops.snapshot import below
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.objects import changed_entries, merge_base, tree_with


def merged_tree(cache: Cache, tip: str, base: str, operations: Sequence[Operation], root: str) -> str:
    """Write the tree of the branch `tip` with the commits of `base` that it lacks, and return its id.

    `operations` will rewrite their own files, below the folder `root`; empty if the branch lacks no commit. Raises
    Conflict if both sides changed another file. Needs the lock of the cache.
    """
    fork = merge_base(cache.repo, tip, base) if base else base
    if fork == base:
        return ""
    where = f"branch {cache.branch}"
    step = "use another branch: --branch NAME"
    if not fork:
        raise Conflict(f"the branch shares no history with {cache.base}", where, step)
    ours, theirs = (_by_unit(changed_entries(cache.repo, fork, side), root) for side in (tip, base))
    charts = tuple(f"{below(root, each.charts)}/" for each in operations if isinstance(each, Publish))
    pointers = {below(root, each.pointer_path) for each in operations if isinstance(each, PointerOperation)}
    twice = sorted(unit for unit in ours.keys() & theirs.keys() if ours[unit] != theirs[unit])
    conflicts = [unit for unit in twice if unit not in pointers and not unit.startswith(charts)]
    if conflicts:
        shown = ", ".join(conflicts[:3]) + ("..." if len(conflicts) > 3 else "")
        # Only its spec can make the change of another experiment again, under the next free version.
        again = ", ".join(sorted({name for unit in conflicts if (name := _experiment_of(unit, root))}))
        step = f"publish {again} again in the same command, or {step}" if again else step
        raise Conflict(f"the branch and {cache.base} both changed {shown}", where, step)
    kept = {path: entry for unit in ours.keys() - theirs.keys() for path, entry in ours[unit].items()}
    return tree_with(cache.repo, base, kept)


def _experiment_of(unit: str, root: str) -> str:
    """Return the experiment of a chart's version or of a pointer; empty for other files."""
    parts = unit.removeprefix(f"{root}/" if root else "").split("/")
    if parts[0] == "charts" and len(parts) == 4:
        return parts[2]
    return (snapshot.pointer_name("/".join(parts)) or ("", "", ""))[2]


def _by_unit(entries: Mapping[str, str], root: str) -> dict[str, dict[str, str]]:
    """Group changed entries: a chart's version is one unit, since files of two charts must not be mixed."""
    units: defaultdict[str, dict[str, str]] = defaultdict(dict)
    chart = re.compile(rf"{re.escape(f'{root}/' if root else '')}charts/[^/]+/[^/]+/[^/]+(?=/)")
    for path, entry in entries.items():
        match = chart.match(path)
        units[match[0] if match else path][path] = entry
    return dict(units)


_URL = re.compile(r"https?://[^\s<>\"']+")
_ASKS = re.compile(r"pull|merge|review|compare", re.IGNORECASE)


def review_link(heard: Sequence[str]) -> str:
    """Return the page that proposes the branch, from the server's messages on the push; empty if it named none."""
    links = [match[0].rstrip(".,)") for line in heard for match in _URL.finditer(line)]
    return next((link for link in links if _ASKS.search(link)), "")
