"""A machine of canaries for tests of mounts: its own root, so that nothing on the real machine can change.

`python -m tests.local.mounts.canary_machine FOLDER MODULE WORDS...`, started in a mount and pid namespace of its own,
builds the machine in an empty FOLDER and runs the function `main` of MODULE there. `ORDINARY` is a user with a home,
some folders and disks; /root can be entered.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

ORDINARY = 61001
_ROOT = Path(__file__).resolve().parents[3]
_REMOVE = "import sys; from symphony_charts.local.mounts.mount_points import remove_points as r; print(*r(sys.argv[1]))"
_SCRIPT = r"""
set -e
machine=$1; shift
mount -t tmpfs -o mode=0755 canary "$machine"; cd "$machine"
mkdir usr; mount --rbind /usr usr; mount -o remount,bind,ro usr
for link in bin sbin lib lib32 lib64 libx32; do if [ -L /$link ]; then cp -P /$link $link; fi; done
mkdir -p proc sys dev tmp root opt home/me/exp home/me/data home/other mnt/disk/set scratch srv/ro etc run var/tmp
chmod 1777 tmp var/tmp
mount --rbind /proc proc; mount --rbind /dev dev
for file in passwd group hosts nsswitch.conf ld.so.cache ld.so.conf ld.so.conf.d localtime; do
    if [ -e /etc/$file ]; then cp -a /etc/$file etc/; fi
done
for number in 0 1 2 3 4 5 6 7 8 9; do echo $number >etc/file$number; done
for place do
    mkdir -p ".$place"; mount --rbind "$place" ".$place"; mount -o remount,bind,ro ".$place"
done
mount -t tmpfs disk mnt/disk; mkdir mnt/disk/set; echo disk >mnt/disk/set/x; chmod 755 mnt/disk
mount -t tmpfs -o nosuid,nodev scratch scratch; chmod 1777 scratch
mount -t tmpfs data home/me/data; echo data >home/me/data/f
echo old >home/me/exp/old.txt; mkdir home/me/full; echo mine >home/me/full/mine; mkdir home/me/real
ln -s /home/me/real home/me/link; ln -s /home/me/nowhere/q home/me/dangling; ln -s loop home/me/loop
mkdir srv/sub srv/sub/below; mount -t tmpfs below srv/sub/below; echo below >srv/sub/below/s
chmod 777 srv/sub srv/sub/below
chown -R -h ORDINARY:ORDINARY home/me; echo o >home/other/f; chmod 755 root
mkdir old; pivot_root . old; cd /; umount -l /old; rmdir /old
"""


def build(machine: str) -> None:
    """Make the machine and enter it. Call this only in a private mount namespace."""
    assert os.getpid() == 1, "the mounts of the real machine are left alone"
    places = {_ROOT, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    needed = sorted(
        str(place) for place in places if not set(place.parents) & places and Path("/usr") not in place.parents
    )
    script = _SCRIPT.replace("ORDINARY", str(ORDINARY))
    # pivot_root changes the root of every process of the namespace that has the old one, this one included.
    subprocess.run(["/bin/sh", "-c", script, "sh", machine, *needed], check=True)
    os.chdir("/")
    os.environ.update({"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home/me"})


def as_ordinary(user: str) -> list[str]:
    """Return the command prefix that starts a program as the ordinary user; empty for root."""
    if user == "root":
        return []
    return ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all", "--"]


def stuck_points(journal: str, user: str = "root") -> str:
    """Remove the unused mount points in a journal; return the failures."""
    argv = [*as_ordinary(user), sys.executable, "-c", _REMOVE, journal]
    return subprocess.run(argv, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.strip()


if __name__ == "__main__":
    # Everything that the module needs must be loaded before the root changes.
    main = importlib.import_module(sys.argv[2]).main
    build(sys.argv[1])
    main(*sys.argv[3:])
