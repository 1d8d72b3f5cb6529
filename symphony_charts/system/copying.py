"""Folders are copied over what stands there, and archives are unpacked, without following any link."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Any

from symphony_charts.errors import Conflict


def copy_over(source: Path, target: Path) -> list[str]:
    """Copy a file or folder over what stands at `target`; what was left out, being no file, folder or link.

    Links stay links. A link or file of `target` that has the name of what comes is replaced, whatever it leads to.
    Raises OSError where it cannot be written.
    """
    if source.is_dir() and not source.is_symlink():
        if target.is_symlink():
            target.unlink()
        target.mkdir(exist_ok=True)
        left = [name for entry in sorted(source.iterdir()) for name in copy_over(entry, target / entry.name)]
        shutil.copystat(source, target)
        return left
    if not source.is_symlink() and not source.is_file():
        return [source.name]
    if target.is_symlink() or (target.is_file() and source.is_symlink()):
        target.unlink()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    shutil.copy2(source, target, follow_symlinks=False)
    return []


def unpack(archive: IO[bytes], folder: Path) -> list[str]:
    """Unpack what another machine sent, all of it below `folder`; what was left out, being no file, folder or link.

    Links come last, and none below another, so that nothing is written through one. Raises OSError where it cannot be
    written.
    """
    left: list[str] = []
    links: dict[PurePosixPath, str] = {}
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        for member in tar:
            path, also = PurePosixPath(member.name), PurePosixPath(member.linkname)
            if not _is_below(path) or (member.islnk() and not _is_below(also)):
                left.append(member.name)
            elif member.issym():
                links[path] = member.linkname
            elif member.islnk() and also in links:
                links[path] = links[also]
            elif member.islnk():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(folder / also, folder / path)
            elif member.isfile() or member.isdir():
                member.mode = (member.mode & 0o777) | 0o600
                tar.extract(member, folder, set_attrs=not member.isdir(), **_FILTER)
            else:
                left.append(member.name)
    for path, to in links.items():
        if any(parent in links for parent in path.parents):
            left.append(str(path))
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(to, folder / path)  # noqa: PTH211 - the text as it is
    return left


def refused(target: object, error: OSError) -> Conflict:
    """Return the error of a copy that could not be written."""
    what = f"cannot copy to {target}: {error.strerror or os.strerror(error.errno or 0)}"
    return Conflict(what, next="choose another place")


def refuse_left(what: str, left: list[str]) -> None:
    """Raise Conflict, after all else is copied, where something was left out."""
    if left:
        names = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        raise Conflict(f"{what} was copied but for {names}", next="only files, folders and links are copied")


def _is_below(path: PurePosixPath) -> bool:
    return not path.is_absolute() and ".." not in path.parts


# Pythons that know filters warn without one.
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
