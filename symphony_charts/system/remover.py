"""Remove only our own folders: each has a marker, and nothing outside of it is touched.

Folders are opened step by step through descriptors, so that neither links nor replaced folders redirect a removal.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.system.files import closing, mount_of, mounted

# Open folders without following links.
if sys.platform != "win32":
    FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
else:
    FOLDER = -1  # refuse to open, and so to remove, where links could be followed


def remove_entries(folder: int, names: Iterable[str]) -> list[str]:
    """Remove these files and folders with everything in them; return the failures as text.

    Moves the contents of their subfolders up into `folder` first. This avoids recursion at any depth, and the kernel
    refuses to move mount points.
    """
    mount, token, numbers = mount_of(folder), os.urandom(4).hex(), count()
    origins = {name: name for name in names}
    left: list[str] = []
    while origins:
        name, origin = origins.popitem()
        before = len(left)
        try:
            if _is_gone(folder, name):
                continue
            with _unlocked(folder, name, mount) as subfolder:
                for child in os.listdir(subfolder):
                    path = f"{origin}/{child}"
                    try:
                        if not _is_gone(subfolder, child):
                            lifted = f".{token}.{next(numbers)}"
                            _lift(subfolder, child, folder, lifted, mount)
                            origins[lifted] = path
                    except OSError as error:
                        left.append(f"{path}: {error.strerror}")
            if len(left) == before:
                os.rmdir(name, dir_fd=folder)
        except OSError as error:
            left.append(f"{origin}: {error.strerror}")
    return sorted(left)


def _is_gone(above: int, name: str) -> bool:
    """Remove a file or an empty folder; return False for a folder with entries."""
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
    return True


def _lift(above: int, name: str, to: int, lifted: str, mount: int) -> None:
    """Move a folder, which must be writable, since its ``..`` changes."""
    try:
        os.rename(name, lifted, src_dir_fd=above, dst_dir_fd=to)
    except PermissionError:
        with _unlocked(above, name, mount):
            os.rename(name, lifted, src_dir_fd=above, dst_dir_fd=to)


@contextlib.contextmanager
def _unlocked(above: int, name: str, mount: int) -> Iterator[int]:
    """Open a folder of the given mount, with all rights for its owner; links are not followed."""
    with closing(os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)) as place:
        if mount_of(place) != mount:
            raise OSError(errno.EBUSY, "something is mounted there")
        facts = os.fstat(place)
        if facts.st_mode & 0o700 != 0o700 and facts.st_uid == os.geteuid():
            # The path through the descriptor follows no link that has replaced the folder.
            os.chmod(f"/proc/self/fd/{place}", 0o700)
        folder = os.open(".", FOLDER, dir_fd=place)
    with closing(folder):
        yield folder


MARKER = ".symph.json"


class NotOurs(NotFound):
    """A folder that this program did not make, or of which it cannot be sure; nothing was touched."""


def make(home: Path, *names: str, exist_ok: bool = False) -> Path:
    """Return the folder `home`/`names`, created for its owner alone, with its marker as its first file.

    Raises NotOurs if one of the folders above is not ours or `home` has foreign content, Conflict if the folder exists,
    ToolFailed if the file system refuses. With `exist_ok` the folder may exist if it has its marker.
    """
    try:
        home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_home(home)
        with _reached(home, names[:-1], is_making=True) as folders:
            try:
                os.mkdir(names[-1], 0o700, dir_fd=folders[-1])
            except FileExistsError:
                if not exist_ok:
                    raise Conflict("the folder already exists", str(home.joinpath(*names))) from None
            with _entered(folders[-1], names[-1]) as folder:
                if exist_ok and os.listdir(folder):
                    _check_marker(folder, home.name, names)
                else:
                    try:
                        _mark(folder, home.name, names)
                    except OSError:
                        os.rmdir(names[-1], dir_fd=folders[-1])
                        raise
    except OSError as error:
        raise ToolFailed(f"cannot create the folder: {error.strerror}", str(home.joinpath(*names))) from error
    return home.joinpath(*names)


def check(home: Path, *names: str) -> None:
    """Raise the errors of `remove` without removing: NotOurs, or Conflict if something is mounted there."""
    with _reached(home, names) as folders:
        if os.listdir(folders[-1]):
            _check_removable(folders, home.name, names)


def remove(home: Path, *names: str) -> list[str]:
    """Remove the folder `home`/`names` with everything in it, and folders above it that are empty then.

    Returns the failures as text; with any, the marker remains, so that it can be called again. The caller ensures that
    the folder is unused. Raises NotOurs and Conflict before anything is touched.
    """
    with _reached(home, names) as folders:
        if not os.listdir(folders[-1]):
            # Its creator was killed before it wrote a marker.
            os.rmdir(names[-1], dir_fd=folders[-2])
        else:
            _check_removable(folders, home.name, names)
            left = remove_entries(folders[-1], [name for name in os.listdir(folders[-1]) if name != MARKER])
            if left:
                return left
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(MARKER, dir_fd=folders[-1])
                os.rmdir(names[-1], dir_fd=folders[-2])
            except OSError as error:
                return [f"{names[-1]}: {error.strerror}"]
        for above, name in reversed(list(zip(folders, names[:-1], strict=False))):
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=above)
    return []


def remove_parts(home: Path, names: Sequence[str], parts: Sequence[str]) -> list[str]:
    """Remove only these files and folders, by their paths in the folder; return the failures as text."""
    left = []
    with _reached(home, names) as folders:
        _check_marker(folders[-1], home.name, names)
        for above, paths in groupby(map(Path, parts), lambda path: path.parent):
            try:
                with contextlib.ExitStack() as stack:
                    folder = folders[-1]
                    for name in above.parts:
                        folder = stack.enter_context(_entered(folder, name))
                    left += [str(above / entry) for entry in remove_entries(folder, [path.name for path in paths])]
            except NotOurs as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    left.append(f"{error.at}: {error.what}")
    return left


# Markers


def _text_of_marker(kind: str, names: Sequence[str]) -> bytes:
    return json.dumps({"symph": kind, "names": list(names)}).encode()


def _mark(folder: int, kind: str, names: Sequence[str]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with closing(os.open(MARKER, flags, 0o600, dir_fd=folder)) as marker:
        try:
            os.write(marker, _text_of_marker(kind, names))
            os.fsync(marker)
            os.fsync(folder)
        except OSError:
            os.unlink(MARKER, dir_fd=folder)
            raise


def _check_marker(folder: int, kind: str, names: Sequence[str]) -> None:
    """Raise NotOurs unless we wrote the marker of the folder for these names."""
    try:
        marker = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        is_home = Path(_path_of(folder)).name == kind
        step = "set SYMPH_STATE_DIR to a folder for symph alone" if is_home else "move or remove it by hand"
        raise NotOurs(f"symph may not have made this folder: it has no {MARKER}", _path_of(folder), step) from error
    with open(marker, "rb") as file:
        facts = os.fstat(marker)
        is_ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1
        if not is_ours or file.read(4096) != _text_of_marker(kind, names):
            step = "check the folder and remove it by hand"
            raise NotOurs(f"its {MARKER} is damaged or belongs to another folder", _path_of(folder), step)


# Opening folders


def _opened(path: Path) -> contextlib.AbstractContextManager[int]:
    try:
        return closing(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError as error:
        raise NotOurs(f"cannot open the folder: {error.strerror}", str(path)) from error


@contextlib.contextmanager
def _entered(above: int, name: str) -> Iterator[int]:
    """Open the folder `name` in `above`. Raises NotOurs for links, mount points and folders that others may write."""
    if not name or "/" in name or name in (".", ".."):
        raise NotOurs(f"{name!r} is not a folder name", _path_of(above))
    try:
        folder = os.open(name, FOLDER, dir_fd=above)
    except OSError as error:
        is_other = error.errno in (errno.ELOOP, errno.ENOTDIR)
        what = "it is a link or not a folder" if is_other else f"cannot open it: {error.strerror}"
        raise NotOurs(what, f"{_path_of(above)}/{name}") from error
    with closing(folder):
        facts = os.fstat(folder)
        if mount_of(folder) != mount_of(above):
            step = "unmount it, or set SYMPH_STATE_DIR to a folder of the mounted disk"
            raise NotOurs("something is mounted there", _path_of(folder), step)
        if facts.st_uid != os.geteuid():
            raise NotOurs(f"it belongs to user {facts.st_uid}", _path_of(folder))
        if facts.st_mode & 0o022:
            raise NotOurs("other users may write there", _path_of(folder), f"chmod go-w {_path_of(folder)}")
        yield folder


@contextlib.contextmanager
def _reached(home: Path, names: Sequence[str], *, is_making: bool = False) -> Iterator[list[int]]:
    """Open `home`, which must have its marker, and each folder below it along `names`."""
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(_opened(home.parent))
        folders = [stack.enter_context(_entered(top, home.name))]
        _check_marker(folders[0], home.name, ())
        for name in names:
            if is_making:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folders[-1])
            folders.append(stack.enter_context(_entered(folders[-1], name)))
        yield folders


def _make_home(home: Path) -> None:
    """Put a folder with its marker in place of `home`, which is missing or empty."""
    beside = f".{home.name}.{os.urandom(4).hex()}"
    with _opened(home.parent) as top:
        with contextlib.suppress(NotOurs), _entered(top, home.name) as folder:
            if os.listdir(folder):
                return
        os.mkdir(beside, 0o700, dir_fd=top)
        with _entered(top, beside) as folder:
            _mark(folder, home.name, ())
            try:
                # Folder and marker appear together, since other processes may do the same now.
                os.rename(beside, home.name, src_dir_fd=top, dst_dir_fd=top)
            except OSError:
                # Another folder is in the way: its next user reports the problem.
                os.unlink(MARKER, dir_fd=folder)
                os.rmdir(beside, dir_fd=top)


def _path_of(folder: int) -> str:
    return os.readlink(f"/proc/self/fd/{folder}")


def _check_removable(folders: Sequence[int], kind: str, names: Sequence[str]) -> None:
    _check_marker(folders[-1], kind, names)
    path = _path_of(folders[-1])
    if inside := sorted(one.path for one in mounted() if one.path.startswith(f"{path}/")):
        raise Conflict("something is mounted in the folder", path, f"umount {' '.join(inside)}")
