"""Write files atomically, copy folders and unpack archives without following links."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from symphony_charts.errors import Conflict, ToolFailed


def write_file(path: Path, data: bytes, *, mode: int = 0o644) -> bool:
    """Write `data` to `path` and make its folders; return False, without a write, if it is already the content.

    The file is written beside its place and renamed, so that readers see either the old or the new content. Raises
    ToolFailed if the file system refuses.
    """
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if path.stat().st_size == len(data) and path.read_bytes() == data:
                return False
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, mode)
    except OSError as error:
        raise ToolFailed(f"cannot write {path}: {error.strerror or error}", at=str(path)) from error
    return True


def write_tree(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write `files` (relative POSIX path -> content) below `folder`; return the changed paths, in order.

    Other files in the folder remain. Raises ValueError for a path that leads out of the folder.
    """
    for name in files:
        if not PurePosixPath(name).parts or not _is_below(PurePosixPath(name)):
            raise ValueError(f"{name!r} does not stay inside the folder")
    return [name for name, data in files.items() if write_file(folder / name, data)]


def replace_file(path: Path, data: bytes, mode: int = 0o600, *, is_safe: bool = False) -> None:
    """Write a file beside `path` and rename it. Raises OSError; the old content then remains.

    With `is_safe` readers see the old or the new content after a power loss, too, which costs a write to the disk.
    """
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if is_safe:
                os.fsync(handle)
        Path(beside).chmod(mode)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    if is_safe:
        flush_folder(path.parent)


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of a `with`."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Flush the names in `folder` to the disk; a file system that does not support this has none to lose."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with closing(opened), contextlib.suppress(OSError):
        os.fsync(opened)


# The minimum free space for useful work, and for the files and the first output of a new run, in bytes.
_LEAST, _FOR_A_RUN = 1 << 16, 1 << 20


def existing(folder: Path) -> Path:
    """Return the folder, or its first existing parent."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def full_disk(folder: Path, least: int = _LEAST) -> str:
    """Return what the disk of `folder` lacks; empty if it has room for `least` bytes and a new file.

    `folder` may not exist yet.
    """
    try:
        facts = os.statvfs(existing(folder))
    except OSError:
        return ""
    blocks, files = (facts.f_bfree, facts.f_ffree) if os.geteuid() == 0 else (facts.f_bavail, facts.f_favail)
    if (free := blocks * facts.f_frsize) < least:
        return "no space left" if free < _LEAST else f"only {free >> 10} KiB left"
    # Some file systems have no inode table and report 0 files.
    return "no inodes left" if facts.f_files and not files else ""


def refuse_full_disk(folder: Path) -> None:
    """Raise ToolFailed if the disk of `folder` has no room for a new run."""
    why = full_disk(folder, _FOR_A_RUN)
    if why:
        step = f"free space with symph local gc or by hand (df -h {folder}), or set SYMPH_STATE_DIR to another disk"
        raise ToolFailed(f"the disk is full: {why}", str(folder), step)


# File systems used by one kernel at a time; with any other type two machines may share files.
_LOCAL = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A mounted file system: the number and path of the mount, its type (``ext4``, ``nfs4``), and all its options."""

    number: int = 0
    path: str = ""
    type: str
    options: frozenset[str]

    @property
    def is_local(self) -> bool:
        """True if no other machine can have these files mounted now."""
        return self.type in _LOCAL


def mounted(pid: int | str = "self") -> Iterator[FileSystem]:
    """Yield the file systems that `pid` sees. Raises OSError. Format: proc_pid_mountinfo(5)."""
    with Path(f"/proc/{pid}/mountinfo").open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            # ID parent device root point options [optional...] - type source options
            fields = line.rstrip("\n").split(" ")
            kind, _, more = fields[fields.index("-", 6) + 1 :][:3]
            # Blanks and the like are octal numbers.
            path = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
            options = frozenset([*fields[5].split(","), *more.split(",")])
            yield FileSystem(number=int(fields[0]), path=path, type=kind, options=options)


def mount_of(descriptor: int) -> int:
    """Return the mount number of a descriptor; device numbers do not distinguish bind mounts of a file system."""
    facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    for line in facts.splitlines():
        if line.startswith("mnt_id:"):
            return int(line.split()[1])
    raise OSError(errno.ENOSYS, "this kernel does not report mount IDs")


def file_system_of(path: Path) -> FileSystem:
    """Return the file system of `path`, with an empty type if it is not among the mounts. Raises OSError."""
    with closing(os.open(path, os.O_PATH | os.O_CLOEXEC)) as descriptor:
        number = mount_of(descriptor)
    return next((one for one in mounted() if one.number == number), FileSystem(type="", options=frozenset()))


def copy_over(source: Path, target: Path) -> list[str]:
    """Copy a file or folder over `target`; return the entries left out, which are no files, folders or links.

    Links remain links. A link or file in `target` with the name of a copied entry is replaced, whatever its
    destination. Raises OSError if it cannot be written.
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
    """Unpack an archive of another machine below `folder`; return the entries left out: no files, folders or links.

    Links come last, and none below another, so that nothing is written through one. Raises OSError if it cannot be
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
    return Conflict(what, next="copy to another path")


def refuse_left(what: str, left: list[str]) -> None:
    """Raise Conflict, after everything else is copied, if entries were left out."""
    if left:
        names = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        step = "copy these by hand: symph copies only files, folders and links"
        raise Conflict(f"{what} was copied without {names}", next=step)


def _is_below(path: PurePosixPath) -> bool:
    return not path.is_absolute() and ".." not in path.parts


# Python versions with filters warn if none is set.
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
