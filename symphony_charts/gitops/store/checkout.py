"""Apply operations to a checkout: write the edits into a work tree, for a manual commit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.gitops.base import Change, Operation
from symphony_charts.gitops.snapshot import FILE, FOLDER, SYMLINK, Edits, Entry, Snapshot, file_entry, tree_id
from symphony_charts.system.files import write_file


def preview_in_checkout(checkout: Path, operations: Sequence[Operation], root: str = "") -> tuple[Change, ...]:
    """Return the changes of the operations below the folder `root` of the work tree `checkout`.

    Raises NotFound if there is no checkout, Conflict for links.
    """
    if not (checkout / ".git").exists():
        raise NotFound(f"{checkout} is no checkout of a Git repository", next="give the folder that holds .git")
    snapshot = Snapshot(commit="checkout", root=root, source=_Checkout(checkout / root))
    return tuple(operation.change(snapshot) for operation in operations)


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


def apply_to_checkout(checkout: Path, edits: Edits) -> int:
    """Write `edits` into `checkout`, new files before any removal; return the number of changed paths.

    Raises Conflict if a symbolic link would lead out of the checkout, ToolFailed if the disk refuses.
    """
    touched = 0
    try:
        for path, content in edits.items():
            if content is not None:
                _check_place(checkout, path)
                touched += write_file(checkout / path, content)
        for path, content in edits.items():
            if content is None:
                _check_place(checkout, path)
                touched += _remove(checkout, checkout / path, edits)
    except OSError as error:
        raise ToolFailed(f"cannot write into {checkout}: {error.strerror}", at=str(error.filename)) from error
    return touched


def _entry(item: os.DirEntry[str], with_id: bool) -> Entry:
    if item.is_symlink():
        return Entry(mode=SYMLINK, oid="")
    if item.is_dir():
        return Entry(mode=FOLDER, oid=tree_id(_tree(Path(item.path))) if with_id else "")
    return file_entry(Path(item.path).read_bytes()) if with_id else Entry(mode=FILE, oid="")


def _tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _check_place(checkout: Path, path: str) -> None:
    parts = path.split("/")
    links = [count for count in range(1, len(parts) + 1) if (checkout / "/".join(parts[:count])).is_symlink()]
    if links:
        at = "/".join(parts[: links[0]])
        raise Conflict(
            f"{at} is a symbolic link in the checkout", next="remove it: charts and pointers are written there"
        )


def _remove(checkout: Path, path: Path, edits: Edits) -> int:
    if path.is_dir():
        kept = {checkout / other for other, content in edits.items() if content is not None}
        gone = [file for file in path.rglob("*") if file.is_file() and file not in kept]
        if len(gone) == sum(1 for file in path.rglob("*") if file.is_file()):
            shutil.rmtree(path)
            return 1
        for file in gone:
            file.unlink()
        return 1
    if not path.exists():
        return 0
    path.unlink()
    # Git has no empty folders.
    for parent in path.parents:
        if parent == checkout or any(parent.iterdir()):
            break
        parent.rmdir()
    return 1
