"""Run the program as an ordinary user, who may mount only in a namespace of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# "nobody" on Debian and Red Hat, who owns no files.
_UID = 65534
_ROOT = Path(__file__).resolve().parents[2]
_MAIN = "import sys; from symphony_charts.cli.main import main; sys.exit(main(sys.argv[1:]))"
# In a namespace whose limit is 0 the kernel refuses further ones, as it does if a sysctl forbids them.
_REFUSING = 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"'
# Rebuilds a folder that only root may enter, in a private mount namespace: it contains the given places, and every user
# may enter.
_OPENING = """
closed=$1 stage=$2; shift 2
mount -t tmpfs -o mode=755 none "$stage" || exit 125
count=0
for place do
    [ "$place" = -- ] && break
    count=$((count + 1)); mkdir "$stage/$count" && mount --rbind "$place" "$stage/$count" || exit 125
done
mount -t tmpfs -o mode=755 none "$closed" || exit 125
number=0
while [ "$1" != -- ]; do
    number=$((number + 1)); mkdir -p "$1" && mount --rbind "$stage/$number" "$1" || exit 125; shift
done
shift; umount -l "$stage"; exec "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user with a home in `folder`; `prefix` is the command that runs a program as this user."""

    folder: Path
    prefix: Sequence[str]
    python: str
    path: str
    env: dict[str, str] = field(default_factory=dict)

    @property
    def has_namespaces(self) -> bool:
        """True if the kernel lets the user mount in a namespace of their own."""
        return self.run("unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "true").returncode == 0

    def run(self, *argv: str, refusing: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a program as the user; with `refusing`, on a kernel that refuses user namespaces."""
        inside = ["unshare", "--user", "--map-current-user", "--keep-caps", "/bin/sh", "-c", _REFUSING, "sh"]
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "PYTHONPATH": self.path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "SYMPH_STATE_DIR": str(self.folder / "state"),
            "SYMPH_RUNTIME_DIR": str(self.folder / "run"),
        }
        return subprocess.run(
            [*self.prefix, *(inside if refusing and self.has_namespaces else ()), *argv],
            env=env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def symph(self, *words: str, refusing: bool = False) -> subprocess.CompletedProcess[str]:
        return self.run(self.python, "-c", _MAIN, *words, refusing=refusing)


def find_person(folder: Path, fail: Callable[[str], None]) -> Person:
    """Return the current user, or nobody if that is root; call `fail` with the reason if there is no such user."""
    path = os.pathsep.join([str(_ROOT), *(place for place in sys.path if place.endswith("site-packages"))])
    if os.geteuid() != 0:
        return Person(folder=folder, prefix=(), python=sys.executable, path=path)
    prefix = (*_opening(folder), "setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups")
    os.chown(folder, _UID, _UID)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin") or ""):
        person = Person(folder=folder, prefix=prefix, python=python, path=path)
        # It starts itself again, as a run starts its supervisor.
        again = "import os, sys, symphony_charts, msgspec, yaml; os.execv(sys.executable, [sys.executable, '-c', ''])"
        if python and person.run(python, "-c", again).returncode == 0:
            return person
    fail(f"an ordinary user can start no {version} with the packages of the tests")
    raise AssertionError


def _opening(folder: Path) -> Sequence[str]:
    """Return the command that opens the folders of the interpreter and the checkout; empty if they are open."""
    places = {_ROOT, Path(sys.prefix), Path(sys.base_prefix)}
    closed = {top for place in places if (top := _closed(place))}
    if not closed:
        return ()
    (top,) = closed
    inner = {place for place in places if place.is_relative_to(top)}
    outermost = sorted(str(place) for place in inner if not inner & set(place.parents))
    stage = folder / "stage"
    stage.mkdir()
    unshare = ("unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", _OPENING, "sh")
    return (*unshare, str(top), str(stage), *outermost, "--")


def _closed(place: Path) -> Path | None:
    """Return the uppermost folder above `place` that other users may not enter."""
    return next((above for above in (*reversed(place.parents), place) if not above.stat().st_mode & 1), None)
