"""`file_system_of` says on which kind of file system a path is, by the kernel's own table of mounts. Linux only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileSystem", "file_system_of"]

# One kernel alone has such a file system at a time; of any other kind two machines may have the same files.
_LOCAL = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A mounted file system: its type (``ext4``, ``nfs4``), and the options of the mount and of the file system."""

    type: str
    options: frozenset[str]

    @property
    def is_local(self) -> bool:
        """True if no other machine can have these files mounted now."""
        return self.type in _LOCAL


def file_system_of(path: Path) -> FileSystem:
    """Return the file system that `path` is on; of an unknown type where the kernel does not tell. Raises OSError."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    finally:
        os.close(descriptor)
    number = next((line.split()[1] for line in facts.splitlines() if line.startswith("mnt_id:")), "")
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        # ID parent device root point options [optional...] - type source options; proc_pid_mountinfo(5).
        fields = line.split(" ")
        if fields[0] == number:
            kind, _, more = fields[fields.index("-", 6) + 1 :][:3]
            return FileSystem(type=kind, options=frozenset([*fields[5].split(","), *more.split(",")]))
    return FileSystem(type="", options=frozenset())
