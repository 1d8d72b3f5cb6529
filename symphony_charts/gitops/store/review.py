"""Branches that wait for a review: find them, update them, and link to the page of the forge.

The branch's changes are applied to the current state, in a commit that merges both; the operation then determines its
changes again. So its files never conflict, and no version number is used twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from symphony_charts.errors import Conflict
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.base import Operation
from symphony_charts.gitops.publish import Publish
from symphony_charts.gitops.store.store import Store
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.objects import changed_entries, merge_base, tree_with
from symphony_charts.system.git.remote import fetch_branch_and_base, fetch_heads, push

_TRAILER = re.compile(r"^Symph-(\w+): (.+)$", re.MULTILINE)
_CHART_NAME = re.compile(r"([^/@]+)/([^/@]+)@([^/@]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A branch that lacks commits of the branch it is for; all three are commit ids."""

    tip: str
    base: str
    fork: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A change of an environment that waits on a `branch`, as in the message of its newest commit."""

    branch: str
    op: str
    env: str
    team: str
    name: str
    version: str


def find_waiting(url: str, base: str, root: Path) -> list[Waiting]:
    """Return the waiting changes on all branches of the repository `url` except `base`; `root` holds the caches.

    Only the newest commit of each branch is read. Raises the errors of fetching.
    """
    cache = Cache(root / "heads", url, base)
    with cache.locked(60.0):
        cache.prepare()
        messages = fetch_heads(cache)
    found = (_waiting(branch, message) for branch, message in sorted(messages.items()) if branch != base)
    return [each for each in found if each is not None]


def is_done(waiting: Waiting, runs: str | None) -> bool:
    """Return True if the environment, which `runs` a version or None, already is in the proposed state."""
    return runs is None if waiting.op == "retire" else runs == waiting.version


def _waiting(branch: str, message: str) -> Waiting | None:
    trailers = dict(_TRAILER.findall(message))
    chart = _CHART_NAME.fullmatch(trailers.get("Chart", ""))
    op = trailers.get("Op", "")
    env = trailers.get("From" if op == "retire" else "To", "")
    if chart is None or not env:
        return None
    return Waiting(branch=branch, op=op, env=env, team=chart[1], name=chart[2], version=chart[3])


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
    where = f"branch {cache.branch}"
    step = "take another branch: --branch NAME"
    with cache.locked(60.0):
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
            raise Conflict(f"the branch and {cache.base} both changed {shown}", where, step)
        kept = {path: entry for unit in ours.keys() - theirs.keys() for path, entry in ours[unit].items()}
        tree = tree_with(cache.repo, stale.base, kept)
        message = f"merge {cache.base} into {cache.branch}\n\nSymph-Op: merge\n"
        commit = store.write_commit(tree, [stale.tip, stale.base], message, now)
        answer = push(cache, commit, stale.tip)
        if not answer.is_done:
            raise answer.ended.failure(f"{cache.url} does not take the commit: {answer.text}", where, answer.next)
        cache.remember_tip(commit)


def _written_by(operations: Sequence[Operation], root: str) -> Callable[[str], bool]:
    folders = [f"{snapshot.versions_path(each.team, each.name)}/" for each in operations if isinstance(each, Publish)]
    pointers = {path for operation in operations for path in _pointer_paths(operation)}
    inside = f"{root}/" if root else ""
    return lambda path: path.removeprefix(inside) in pointers or path.removeprefix(inside).startswith(tuple(folders))


def _pointer_paths(operation: Operation) -> list[str]:
    team, name = getattr(operation, "team", ""), getattr(operation, "release", "") or getattr(operation, "name", "")
    env = getattr(operation, "after", None) or getattr(operation, "env", None)
    return [snapshot.pointer_path(env, team, name), snapshot.flux_path(env, team, name)] if env and name else []


def _by_unit(entries: Mapping[str, str], root: str) -> dict[str, dict[str, str]]:
    """Group changed entries: a chart's version is one unit, since files of two charts must not be mixed."""
    units: defaultdict[str, dict[str, str]] = defaultdict(dict)
    chart = re.compile(rf"{re.escape(f'{root}/' if root else '')}charts/[^/]+/[^/]+/[^/]+(?=/)")
    for path, entry in entries.items():
        match = chart.match(path)
        units[match[0] if match else path][path] = entry
    return dict(units)


FORGES = ("github", "gitlab", "gitea")
_URL = re.compile(r"https?://[^\s<>\"']+")
_ASKS = re.compile(r"pull|merge|review|compare", re.IGNORECASE)
# Forges whose host name contains neither their kind nor their software's name.
_KNOWN = {"codeberg.org": "gitea"}
_ADDRESS = re.compile(r"(?:(?:https?|ssh|git)://)?(?:[^@/]+@)?(?P<host>[\w.-]+)(?P<port>:\d+(?=/))?[:/]/*(?P<path>.+)")


def review_link(url: str, branch: str, base: str, *, heard: Sequence[str] = (), forge: str = "") -> str:
    """Return the page that proposes `branch` of the repository `url` for `base`; empty if unknown.

    `heard` are the server's messages on the push; `forge` is its kind, if its host name does not show it.
    """
    said = [match[0].rstrip(".,)") for line in heard for match in _URL.finditer(line)]
    asking = [link for link in said if _ASKS.search(link)]
    if asking:
        return asking[0]
    match = _ADDRESS.fullmatch(url)
    if match is None or ("://" not in url and ":" not in url) or url.startswith("file:"):
        return ""
    host = match["host"]
    kind = forge or _KNOWN.get(host) or next((each for each in (*FORGES, "forgejo") if each in host), "")
    page = f"https://{host}{_port(url, match)}/{match['path'].rstrip('/').removesuffix('.git')}"
    if kind == "gitlab":
        names = {"merge_request[source_branch]": branch, "merge_request[target_branch]": base}
        return f"{page}/-/merge_requests/new?{urlencode(names)}"
    if kind in ("github", "gitea", "forgejo"):
        end = "?expand=1" if kind == "github" else ""
        return f"{page}/compare/{quote(base)}...{quote(branch)}{end}"
    return ""


def _port(url: str, match: re.Match[str]) -> str:
    return match["port"] or "" if url.startswith("https://") else ""
