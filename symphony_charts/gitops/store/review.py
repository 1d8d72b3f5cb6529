"""Branches for a review: update them, and link to the page of the forge.

The branch's changes are applied to the current state, in a commit that merges both; the operation then determines its
changes again. So its files never conflict, and no version number is used twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.errors import Conflict
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.base import Change, Operation
from symphony_charts.gitops.publish import Publish
from symphony_charts.gitops.snapshot import Snapshot
from symphony_charts.gitops.store.store import Store
from symphony_charts.system.git.objects import changed_entries, merge_base, tree_with
from symphony_charts.system.git.remote import fetch_branch_and_base, push


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A branch that lacks commits of the branch it is for; all three are commit ids."""

    tip: str
    base: str
    fork: str


def find_stale(store: Store) -> Stale | None:
    """Return the commits that the branch of `store` lacks; None if there are none, or no such branch yet."""
    with store.cache.locked(60.0):
        store.cache.prepare()
        found = fetch_branch_and_base(store.cache)
        if found is None:
            return None
        tip, base = found
        fork = merge_base(store.cache.repo, tip, base)
        return None if fork == base else Stale(tip=tip, base=base, fork=fork)


def bring_up_to_date(store: Store, operations: Sequence[Operation], stale: Stale, *, now: int) -> None:
    """Push a commit that merges the lacking commits into the branch; `operations` then rewrite their own files.

    Raises Conflict if both sides changed something else, ToolFailed if the server refuses the commit.
    """
    cache = store.cache
    with cache.locked(60.0):
        tree = _merged_tree(store, operations, stale)
        message = f"merge {cache.base} into {cache.branch}\n\nSymph-Op: merge\n"
        commit = store.write_commit(tree, [stale.tip, stale.base], message, now)
        answer = push(cache, commit, stale.tip)
        if not answer.is_done:
            what = f"{cache.url} refused the commit: {answer.text}"
            raise answer.ended.failure(what, f"branch {cache.branch}", answer.next)
        cache.remember_tip(commit)


def preview_up_to_date(
    store: Store, operations: Sequence[Operation], stale: Stale
) -> tuple[Snapshot, tuple[Change, ...]]:
    """Return the files that the branch would have after the merge, and the changes of the operations; push nothing.

    Raises the same Conflict as `bring_up_to_date`.
    """
    with store.cache.locked(60.0):
        tree = _merged_tree(store, operations, stale)
    return store.preview(operations, tree)


def _merged_tree(store: Store, operations: Sequence[Operation], stale: Stale) -> str:
    """Write the tree of the merge to the cache, whose lock the caller holds, and return its id."""
    cache = store.cache
    where = f"branch {cache.branch}"
    step = "use another branch: --branch NAME"
    if not stale.fork:
        raise Conflict(f"the branch shares no history with {cache.base}", where, step)
    ours, theirs = (
        _by_unit(changed_entries(cache.repo, stale.fork, side), store.folder) for side in (stale.tip, stale.base)
    )
    is_rewritten = _written_by(operations, store.folder)
    twice = sorted(unit for unit in ours.keys() & theirs.keys() if ours[unit] != theirs[unit])
    conflicts = [unit for unit in twice if not is_rewritten(unit)]
    if conflicts:
        shown = ", ".join(conflicts[:3]) + ("..." if len(conflicts) > 3 else "")
        # Only its spec can make the change of another experiment again, under the next free version.
        again = ", ".join(sorted({name for unit in conflicts if (name := _experiment_of(unit, store.folder))}))
        step = f"publish {again} again in the same command, or {step}" if again else step
        raise Conflict(f"the branch and {cache.base} both changed {shown}", where, step)
    kept = {path: entry for unit in ours.keys() - theirs.keys() for path, entry in ours[unit].items()}
    return tree_with(cache.repo, stale.base, kept)


def _written_by(operations: Sequence[Operation], root: str) -> Callable[[str], bool]:
    folders = [f"{snapshot.versions_path(each.team, each.name)}/" for each in operations if isinstance(each, Publish)]
    pointers = {path for operation in operations for path in _pointer_paths(operation)}
    inside = f"{root}/" if root else ""
    return lambda path: path.removeprefix(inside) in pointers or path.removeprefix(inside).startswith(tuple(folders))


def _pointer_paths(operation: Operation) -> list[str]:
    team, name = getattr(operation, "team", ""), getattr(operation, "release", "") or getattr(operation, "name", "")
    env = getattr(operation, "after", None) or getattr(operation, "env", None)
    return [snapshot.pointer_path(env, team, name)] if env and name else []


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
