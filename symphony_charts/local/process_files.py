"""The files that a process sees: paths and links count from its own root, in both directions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.system.copying import copy_over, refuse_left, refused

if TYPE_CHECKING:
    from symphony_charts.local.plan.records import Bind

__all__ = ["ProcessFiles"]

# As many links as the kernel follows in one path.
_MOST_LINKS = 40


class ProcessFiles:
    """The files that the process `name` sees: `root` is its root on this machine, `cwd` its folder.

    `shown` has for paths of a process that has ended the places of this machine that were shown there.
    """

    def __init__(self, name: str, root: str, cwd: str, shown: Mapping[str, str]) -> None:
        self._name, self._root, self._cwd, self._shown = name, root, cwd, shown

    @classmethod
    def of_pid(cls, name: str, pid: int) -> ProcessFiles:
        """Return the files of a running process. Raises OSError if it is gone."""
        return cls(name, f"/proc/{pid}/root", str(Path(f"/proc/{pid}/cwd").readlink()), {})

    @classmethod
    def of_ended(cls, name: str, cwd: str, binds: Iterable[Bind]) -> ProcessFiles:
        """Return the files that an ended process leaves: this machine's, and its volumes that still exist."""
        shown = {bind.target.rstrip("/"): bind.source for bind in binds}
        return cls(name, "", cwd, shown)

    def copy_out(self, path: str, to: Path) -> None:
        """Copy what is at `path`. Raises NotFound, and Conflict where it cannot be written."""
        source = self.place_of(path)
        if not source.exists():
            raise NotFound(f'"{self._name}" has no {path}')
        target = to / (PurePosixPath(path).name or "root") if to.is_dir() else to
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            left = copy_over(source, target)
        except OSError as error:
            raise refused(target, error) from error
        refuse_left(f"{self._name}:{path}", left)

    def copy_in(self, source: Path, to: str) -> None:
        """Copy a file or folder of this machine to `to`. Raises NotFound, and Conflict where it cannot be written."""
        if not source.exists():
            raise NotFound(f"there is no {source}")
        try:
            self._copy_in(source, f"{to}/{source.name}" if self.place_of(to).is_dir() else to)
        except OSError as error:
            raise refused(to, error) from error

    def _copy_in(self, source: Path, to: str) -> None:
        # Each path anew: what stands there already may be a link, which leads elsewhere for the process than for us.
        target = self.place_of(to)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_dir():
            shutil.copy2(source, target)
            return
        target.mkdir(exist_ok=True)
        for entry in sorted(source.iterdir()):
            if entry.is_symlink():
                (target / entry.name).symlink_to(entry.readlink())
            else:
                self._copy_in(entry, f"{to}/{entry.name}")
        shutil.copystat(source, target)

    def place_of(self, path: str) -> Path:
        """Return the place of this machine, without any link, that the process calls `path`."""
        names, done, links = (
            [*reversed(f"{self._cwd}/{path}".split("/") if path[:1] != "/" else path.split("/"))],
            "",
            0,
        )
        while names:
            name = names.pop()
            if name == "..":
                done = os.path.dirname(done)  # noqa: PTH120 - of the text: the path stands in another root
            elif name not in ("", "."):
                try:
                    link = os.readlink(self._here(f"{done}/{name}"))  # noqa: PTH115 - for each name of each path
                except OSError:
                    done = f"{done}/{name}"
                    continue
                links += 1
                if links > _MOST_LINKS:
                    raise Conflict(f'"{self._name}" has a link without end at {path}', next="look at it: symph exec")
                done = "" if link.startswith("/") else done
                names += reversed(link.split("/"))
        return Path(self._here(done or "/"))

    def _here(self, path: str) -> str:
        holding = [target for target in self._shown if path == target or path.startswith(f"{target}/")]
        if holding:
            target = max(holding, key=len)
            return self._shown[target] + path[len(target) :]
        return self._root + path
