"""`Mounter` shows folders and files at the paths of a pod, in the current mount namespace.

It opens all sources before it covers any path, and mounts the uppermost targets first. A missing mount point is
created where permissions allow and noted in the journal. Otherwise no process could write there anyway: the folder
above is replaced by a skeleton, a read-only tmpfs that shows all of its previous entries. `enter` imports this before
every run and sometimes before a process: keep it light.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from symphony_charts.local.mounts import mount_points
from symphony_charts.local.mounts.mount_points import Journal, opened_beneath

if sys.platform != "win32":
    import fcntl

# Each entry of a skeleton is a mount; folders with thousands of entries (homes of an institute) are too large.
_MOST_ENTRIES = 1000
# Up to this many files are mounted one by one; more become links to one mount of the whole folder.
_FEW_FILES = 8
_OLD_ROOT = "/.symph-root"
_PATIENCE_S = 0.5
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_TMPFS = mount_points.MS_NOSUID | mount_points.MS_NODEV


class RefusedError(Exception):
    """This machine cannot show something at its target; `next_step` is the remedy."""

    def __init__(self, what: str, next_step: str = "mount it at another path") -> None:
        super().__init__(what)
        self.what, self.next_step = what, next_step


class Target(NamedTuple):
    """A mount of `source`, or of its `sub_path`, at the absolute path `at`; `path` is its place in the experiment."""

    source: str
    at: str
    sub_path: str = ""
    read_only: bool = False
    path: str = ""

    @property
    def depth(self) -> int:
        return len([name for name in self.at.split("/") if name])

    @property
    def shown(self) -> str:
        return f"{self.source}/{self.sub_path}".rstrip("/")


class Mounter:
    """Mounts targets. `scratch` is a tmpfs of the run; without a `journal` all mount points must exist."""

    def __init__(self, scratch: str, journal: Journal | None) -> None:
        self._scratch, self._journal = scratch, journal
        self._skeletons: list[str] = []
        self._has_old_root = False
        self._devices: set[int] = set()
        self._known = {(point["dev"], point["ino"]) for point in journal.points()} if journal else set()
        self.refusals: list[dict[str, str]] = []

    def mount_all(self, shown: Sequence[Target], prepared: Sequence[Sequence[Target]]) -> None:
        """Mount the targets in `shown`, and make mount points for the targets that each of `prepared` mounts itself."""
        shown = sorted(shown, key=lambda target: target.depth)
        for targets in (shown, *([*shown, *own] for own in prepared)):
            for target in sorted(targets, key=lambda one: one.depth):
                with self._noting(target):
                    self._prepare_inside(target, targets)
        held = []
        for target in shown:
            with self._noting(target):
                held.append((self._hold(target), target))
        for tree, target in held:
            with self._noting(target):
                is_folder = stat.S_ISDIR(os.fstat(tree).st_mode)
                mount_points.move_mount(tree, self._mount_point(target, is_folder=is_folder))
            os.close(tree)
        points = set()
        for own in prepared:
            for target in own:
                with self._noting(target):
                    is_folder = _is_folder(target)
                    if (target.at, is_folder) not in points and _outer_of(target, own) is None:
                        points.add((target.at, is_folder))
                        self._mount_point(target, is_folder=is_folder)
        self._seal()

    @contextlib.contextmanager
    def _noting(self, target: Target) -> Iterator[None]:
        try:
            yield
        except RefusedError as error:
            self.refusals.append({"what": error.what, "next": error.next_step, "path": target.path})
        except OSError as error:
            why = "a link leads out of the volume" if error.errno in (errno.EXDEV, errno.ELOOP) else error.strerror
            what = f"cannot mount {target.shown} at {target.at}: {why}"
            step = f"mount it at another path, or check both: ls -ld {target.shown} {target.at}"
            self.refusals.append({"what": what, "next": step, "path": target.path})

    def _prepare_inside(self, target: Target, targets: Sequence[Target]) -> None:
        """Make a mount point that lies in another target, in the source folder of that target.

        Later that folder may be read-only. If it cannot be made there, it becomes part of a skeleton.
        """
        outer = _outer_of(target, targets)
        if outer is None or self._journal is None:
            return
        is_folder = _is_folder(target)
        with contextlib.suppress(OSError):
            with opened_beneath(outer.source, outer.sub_path) as top:
                path = os.readlink(f"/proc/self/fd/{top}").rstrip("/") + target.at[len(outer.at.rstrip("/")) :]
            # Links inside of a volume may resolve to other paths at its mount point.
            if os.path.realpath(path) == path:
                self._make(path, is_folder=is_folder)
                self._keep_in_use(path)

    def _hold(self, target: Target) -> int:
        """Return a descriptor of the mounts at the source, which remains valid when its path is covered."""
        with opened_beneath(target.source, target.sub_path) as source:
            tree = mount_points.open_tree(f"/proc/self/fd/{source}")
        if target.read_only:
            mount_points.set_read_only(tree, is_recursive=True)
        return tree

    def _seal(self) -> None:
        """Make the skeletons read-only: their folders were not writable before either."""
        if self._has_old_root:
            mount_points.unmount(_OLD_ROOT, mount_points.MNT_DETACH)
            os.rmdir(_OLD_ROOT)
        for path in self._skeletons:
            folder = os.open(path, os.O_PATH | os.O_DIRECTORY)
            mount_points.set_read_only(folder, is_recursive=False)
            os.close(folder)

    # Mount points

    def _mount_point(self, target: Target, *, is_folder: bool) -> str:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            path = os.path.realpath(target.at)
            above = _existing(path)
            _check_place(target.at, path, above, is_folder=is_folder)
            try:
                if above != path and not self._make(path, is_folder=is_folder):
                    self._lay_skeleton(above, target.at)
                    if not self._make(path, is_folder=is_folder):
                        step = f"create it by hand: mkdir -p {target.at}"
                        raise RefusedError(f"cannot create {target.at} on this machine", step)
                if self._keep_in_use(path):
                    return path
            except FileNotFoundError:
                # Another run has ended and removed its mount points in the meantime.
                pass
            if time.monotonic() > deadline:
                raise RefusedError(f"cannot create {target.at} on this machine: {above} accepts no new entries")
            time.sleep(0.01)

    def _make(self, path: str, *, is_folder: bool) -> bool:
        """Make the missing folders of `path`; return False if that is not allowed."""
        with contextlib.ExitStack() as stack:
            if self._journal:
                # A cleanup must not see a point that is made but not yet noted: its parent would look like foreign
                # content.
                stack.enter_context(self._journal.locked())
            made = _existing(path).rstrip("/")
            names = path[len(made) + 1 :].split("/")
            folder = os.open(made or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            is_ours = os.fstat(folder).st_dev in self._devices
            if not is_ours and self._journal is None:
                return False
            try:
                for number, name in enumerate(names, 1):
                    made += f"/{name}"
                    is_new = self._make_one(name, folder, is_folder=is_folder or number < len(names))
                    folder = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                    stack.callback(os.close, folder)
                    if is_new and not is_ours and self._journal:
                        facts = os.fstat(folder)
                        self._known.add((facts.st_dev, facts.st_ino))
                        self._journal.note(made, facts)
            except OSError as error:
                if error.errno in _NOT_ALLOWED:
                    return False
                if error.errno == errno.ENOENT:
                    raise
                step = f"create it by hand: mkdir -p {path}"
                raise RefusedError(f"cannot create {made}: {error.strerror}", step) from error
            return True

    def _make_one(self, name: str, folder: int, *, is_folder: bool) -> bool:
        try:
            if is_folder:
                os.mkdir(name, 0o755, dir_fd=folder)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(name, flags, 0o644, dir_fd=folder))
        except FileExistsError:
            return False
        return True

    def _keep_in_use(self, path: str) -> bool:
        """Lock a mount point that a run has made, until the program that replaces this one has ended.

        Cleanups skip locked points. An empty one may be of a run with another journal. Return False if the point was
        just removed.
        """
        if self._journal is None:
            # The run holds the lock, and a process must inherit no descriptor.
            return True
        try:
            own = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            return True
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, own)
            facts = os.fstat(own)
            is_made = (facts.st_dev, facts.st_ino) in self._known
            is_file = stat.S_ISREG(facts.st_mode)
            is_empty = not os.listdir(own) if stat.S_ISDIR(facts.st_mode) else is_file and facts.st_size == 0
            if facts.st_dev in self._devices or not (is_made or is_empty):
                return True
            try:
                fcntl.flock(own, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                # A file system without locks: a cleanup fails to lock the point, too, and leaves it.
                return True
            now = os.stat(path)
            if (now.st_dev, now.st_ino) != (facts.st_dev, facts.st_ino):
                return False
            stack.pop_all()
        os.set_inheritable(own, True)
        return True

    # Skeletons

    def _lay_skeleton(self, above: str, wanted: str) -> None:
        """Replace the folder `above` by a tmpfs that shows all its entries."""
        once = f"create it by hand: sudo mkdir -p {wanted}"
        if mount_points.is_automounter(above):
            raise RefusedError(f"cannot create {wanted}: {above} is an automounter's folder", once)
        if above == "/" and self._journal is None:
            raise RefusedError(f"{wanted} is missing on this machine", once)
        old = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            names = os.listdir(above)
        except PermissionError as error:
            raise RefusedError(f"cannot create {wanted}: {above} is not readable", once) from error
        if len(names) > _MOST_ENTRIES:
            raise RefusedError(f"cannot create {wanted}: {above} has {len(names)} entries, too many to mount", once)
        place = f"{self._scratch}/{os.getpid()}.{len(self._skeletons)}"
        os.mkdir(place)
        mode = os.fstat(old).st_mode & 0o7777
        mount_points.mount("symph", place, "tmpfs", _TMPFS, f"mode=0{mode:o},size=256k,nr_inodes=4000")
        # Otherwise the recursive copies of the folders around it would contain it.
        mount_points.mount("", place, flags=mount_points.MS_UNBINDABLE)
        new = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._devices.add(os.fstat(new).st_dev)
        self._fill(old, new, above, names)
        os.close(old)
        os.close(new)
        if above == "/":
            # Keep the old root until the end: sources that are open may lie in it.
            os.mkdir(place + _OLD_ROOT)
            mount_points.pivot_root(place, place + _OLD_ROOT)
            os.chdir("/")
            self._has_old_root = True
        else:
            mount_points.mount(place, above, flags=mount_points.MS_MOVE)
        mount_points.mount("", above, flags=mount_points.MS_PRIVATE)
        self._skeletons.append(above)

    def _fill(self, old: int, new: int, above: str, names: Sequence[str]) -> None:
        kinds = {name: os.lstat(name, dir_fd=old).st_mode for name in names}
        has_many = sum(map(stat.S_ISREG, kinds.values())) > _FEW_FILES
        hidden = ".symph"
        while hidden in kinds:
            hidden += "_"
        if has_many:
            # Mount the whole folder: fewer mounts, and replaced files become visible.
            os.mkdir(hidden, 0o755, dir_fd=new)
            self._copy_mount(above, mount_points.AT_FDCWD, hidden, new)
        for name, mode in kinds.items():
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(name, dir_fd=old), name, dir_fd=new)
            elif stat.S_ISREG(mode) and has_many:
                os.symlink(f"{hidden}/{name}", name, dir_fd=new)
            else:
                self._make_one(name, new, is_folder=stat.S_ISDIR(mode))
                self._copy_mount(name, old, name, new)

    def _copy_mount(self, name: str, old: int, at: str, new: int) -> None:
        flags = mount_points.AT_RECURSIVE | mount_points.AT_SYMLINK_NOFOLLOW | mount_points.AT_NO_AUTOMOUNT
        tree = mount_points.open_tree(name, flags, old)
        mount_points.move_mount(tree, at, new)
        os.close(tree)


def _outer_of(target: Target, targets: Sequence[Target]) -> Target | None:
    outer = [other for other in targets if target.at.startswith(other.at.rstrip("/") + "/") and other.at != target.at]
    return max(outer, key=lambda one: one.depth, default=None)


def _check_place(wanted: str, path: str, above: str, *, is_folder: bool) -> None:
    """Raise RefusedError if `path`, the place of `wanted`, can be no mount point; `above` is its existing part."""
    if path == "/":
        raise RefusedError(f"cannot mount at {wanted}, the root of this machine", "mount it at a path below /")
    if os.path.islink(above):
        raise RefusedError(f"cannot mount at {wanted}: {above} is a broken link", f"check it: ls -l {above}")
    if above == path and os.path.isdir(path) != is_folder:
        kind, other = ("file", "folder") if is_folder else ("folder", "file")
        raise RefusedError(f"{wanted} is a {kind} on this machine, and the volume is a {other}")
    if above != path and not os.path.isdir(above):
        raise RefusedError(f"cannot create {wanted}: {above} is not a folder on this machine")


def _existing(path: str) -> str:
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _is_folder(target: Target) -> bool:
    with opened_beneath(target.source, target.sub_path) as source:
        return stat.S_ISDIR(os.fstat(source).st_mode)


# It is started in a new mount namespace with a PLAN and the PROGRAM's argument list: once for a run, before tmux, and
# for a process whose mounts mount(8) cannot do. PLAN is a JSON file: `targets` lists the mounts; `scratch` is the
# mount that marks the namespace of a run; `journal` records mount points that had to be made (null for a process,
# whose points the run has prepared); `prepare` lists for each process the targets that it will mount itself.
# Unsupported mounts are reported before any is made, as JSON on stderr, with status 125.

# A tmux built with utempter starts this helper twice for each pane, so that `who` shows it as a login.
_UTEMPTER = ("/usr/lib/*/utempter/utempter", "/usr/lib/utempter/utempter", "/usr/libexec/utempter/utempter")


def main() -> None:
    """Mount the targets of the plan and become the program, or print all refusals of this machine."""
    with open(sys.argv[1], encoding="utf-8") as file:
        plan: dict[str, Any] = json.load(file)
    journal = Journal(plan["journal"]) if plan["journal"] else None
    if journal is not None:
        _mark(plan["scratch"])
    mounter = Mounter(plan["scratch"], journal)
    targets, *prepared = [[Target(**row) for row in rows] for rows in (plan["targets"], *plan["prepare"])]
    mounter.mount_all(targets, prepared)
    if mounter.refusals:
        sys.stderr.write(json.dumps(list({(row["what"], row["path"]): row for row in mounter.refusals}.values())))
        raise SystemExit(125)
    # Python itself adds this without a locale; our callers never set it.
    os.environ.pop("LC_CTYPE", None)
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - there is no shell


def _mark(scratch: str) -> None:
    """Mount a tmpfs of the run that identifies every process in this namespace as its member."""
    os.makedirs(scratch, exist_ok=True)
    mount_points.mount("symph", scratch, "tmpfs", options="mode=0755")
    for helper in {path for pattern in _UTEMPTER for path in glob.glob(pattern)}:
        if stat.S_ISREG(os.stat(helper).st_mode):
            mount_points.mount("/dev/null", helper, flags=mount_points.MS_BIND)
