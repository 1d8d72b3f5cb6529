"""Apply operations to a checkout: write the edits into a work tree, for a manual commit."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.gitops.base import Change, Operation
from symphony_charts.gitops.snapshot import FILE, FOLDER, SYMLINK, Edits, Entry, Snapshot, file_entry, tree_id
from symphony_charts.system.files import write_file
from symphony_charts.system.git.program import read_checkout


def preview_in_checkout(
    checkout: Path, operations: Sequence[Operation], root: str = ""
) -> tuple[Snapshot, tuple[Change, ...]]:
    """Return the work tree `checkout` below the folder `root`, and the changes of the operations there.

    Raises NotFound if there is no checkout, Conflict for links.
    """
    if not (checkout / ".git").exists():
        raise NotFound(f"{checkout} is not a checkout of a Git repository", next="give the folder that contains .git")
    snapshot = Snapshot(commit="checkout", root=root, source=_Checkout(checkout / root))
    return snapshot, tuple(operation.change(snapshot) for operation in operations)


@dataclass(frozen=True, slots=True)
class _Checkout:
    """The source of a snapshot of a work tree."""

    top: Path

    def folders(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Entry]]:
        # The folder in a larger repository may not exist yet.
        found: dict[str, Mapping[str, Entry]] = {"": {}} if "" in paths else {}
        for path in paths:
            folder = self.top / path
            if folder.is_dir() and not folder.is_symlink():
                with os.scandir(folder) as entries:
                    # Only the ids of chart versions, in charts/<team>/<experiment>, are compared.
                    with_id = path.startswith("charts/") and path.count("/") == 2
                    found[path] = {item.name: _entry(item, with_id) for item in entries if item.name != ".git"}
        return found

    def files(self, entries: Mapping[str, Entry]) -> Mapping[str, bytes]:
        return {path: (self.top / path).read_bytes() for path in entries}


def apply_to_checkout(checkout: Path, edits: Edits) -> None:
    """Write `edits` into `checkout`.

    Raises Conflict if a symbolic link would lead out of the checkout, ToolFailed if the disk refuses.
    """
    try:
        # Removals first: other edits may add files below a removed folder.
        for path, content in sorted(edits.items(), key=lambda item: item[1] is not None):
            _check_place(checkout, path)
            place = checkout / path
            if content is not None:
                write_file(place, content)
            elif place.exists():
                shutil.rmtree(place) if place.is_dir() else place.unlink()
                # Git has no empty folders.
                with contextlib.suppress(OSError):
                    os.removedirs(place.parent)
    except OSError as error:
        raise ToolFailed(f"cannot write into {checkout}: {error.strerror}", at=str(error.filename)) from error


def _entry(item: os.DirEntry[str], with_id: bool) -> Entry:
    if item.is_symlink():
        return Entry(mode=SYMLINK, oid="")
    if item.is_dir():
        return Entry(mode=FOLDER, oid=tree_id(read_checkout(Path(item.path))[0]) if with_id else "")
    return file_entry(Path(item.path).read_bytes()) if with_id else Entry(mode=FILE, oid="")


def _check_place(checkout: Path, path: str) -> None:
    parts = path.split("/")
    links = [count for count in range(1, len(parts) + 1) if (checkout / "/".join(parts[:count])).is_symlink()]
    if links:
        at = "/".join(parts[: links[0]])
        step = "remove it: symph writes charts and pointers there"
        raise Conflict(f"{at} is a symbolic link in the checkout", next=step)
