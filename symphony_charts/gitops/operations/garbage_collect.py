"""Garbage collection takes away chart versions that nothing needs any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.base import Change
from symphony_charts.gitops.operations.pointer import parse_pointer
from symphony_charts.gitops.operations.publish_version import version_key
from symphony_charts.gitops.operations.snapshot import Snapshot

__all__ = ["Tidy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidy:
    """Remove all versions of `experiments` (team, name) but the newest `keep` and those that a pointer names.

    A pointer needs what it runs and what its history can be rolled back to. `pointers` are the paths of all pointers
    of the repository; one that came since is seen all the same, because its folder is looked at again.
    """

    keep: int
    experiments: tuple[tuple[str, str], ...]
    pointer_folders: tuple[str, ...]

    def folders(self) -> Iterable[str]:
        return [*(layout.versions_path(*each) for each in self.experiments), *self.pointer_folders]

    def files(self, tip: Snapshot) -> Iterable[str]:
        paths = [f"{folder}/{name}" for folder in self.pointer_folders for name in tip.folder(folder)]
        return [path for path in paths if layout.pointer_name(path) is not None]

    def change(self, tip: Snapshot) -> Change:
        needed = set()
        for path in self.files(tip):
            pointer = parse_pointer(tip.read(path) or b"", path)
            parent = pointer.chart.rpartition("/")[0]
            needed |= {pointer.chart, *(f"{parent}/{entry.version}" for entry in pointer.history)}
        removed = []
        for team, name in self.experiments:
            folder = layout.versions_path(team, name)
            versions = sorted(tip.folder(folder), key=version_key, reverse=True)
            removed += [f"{folder}/{each}" for each in versions[self.keep :] if f"{folder}/{each}" not in needed]
        return Change(
            subject=f"gc: {len(removed)} chart versions that nothing needs",
            edits=dict.fromkeys(removed),
            trailers=(("Symph-Op", "gc"),),
            facts={"removed": removed, "needed": len(needed)},
        )
