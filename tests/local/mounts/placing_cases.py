"""Try every case of `CASES` on a machine of canaries; print what a process saw and the state of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from symphony_charts.local.mounts.helper import helper_command
from tests.local.mounts.canary_machine import ORDINARY, as_ordinary, stuck_points

# Sources (a folder, a file, a folder with another mount in it) and targets; with "ro" read-only.
CASES: dict[str, list[tuple[str, str, str]]] = {
    "at_the_root": [("folder", "/data", "rw")],
    "in_etc": [("folder", "/etc/secrets", "ro"), ("folder", "/etc/symph/config", "ro")],
    "in_an_image": [("folder", "/home/ray/work", "rw")],
    "two_below_mnt": [("folder", "/mnt/x/y", "rw")],
    "below_opt": [("folder", "/opt/x", "rw")],
    "below_the_cwd": [("folder", "/home/me/exp/out", "rw")],
    "below_home": [("folder", "/home/me/work", "rw")],
    "below_tmp": [("folder", "/tmp/x", "rw")],
    "below_the_state": [("folder", "/scratch/state/zz", "rw")],
    "above_the_state": [("folder", "/scratch", "rw")],
    "at_a_link": [("folder", "/home/me/link", "rw")],
    "at_a_dangling_link": [("folder", "/home/me/dangling", "rw")],
    "at_a_loop": [("folder", "/home/me/loop", "rw")],
    "file_on_file": [("file", "/home/me/exp/old.txt", "rw")],
    "folder_on_file": [("folder", "/home/me/exp/old.txt", "rw")],
    "file_on_folder": [("file", "/home/me/real", "rw")],
    "new_file": [("file", "/home/me/exp/new.txt", "rw")],
    "new_file_in_etc": [("file", "/etc/my.conf", "ro")],
    "full_folder": [("folder", "/home/me/full", "rw")],
    "nested": [("folder", "/mnt/a/b/c", "rw"), ("folder", "/mnt/a/b", "rw")],
    "nested_read_only": [("folder", "/mnt/a/b/c", "rw"), ("folder", "/mnt/a/b", "ro")],
    "below_a_disk": [("folder", "/mnt/disk/new", "rw")],
    "mounts_in_the_source": [("mounts", "/data", "rw")],
    "mounts_in_the_source_read_only": [("mounts", "/data", "ro")],
    "source_without_devices_read_only": [("folder", "/data", "ro")],
    "the_root_itself": [("folder", "/", "rw")],
    "in_proc": [("folder", "/proc/x", "rw")],
    "no_source": [("missing", "/data", "rw")],
    "two_faults_at_once": [("folder", "/", "rw"), ("missing", "/data", "rw")],
    "sub_path": [("sub", "/data", "rw")],
    "sub_path_that_leads_out": [("out", "/data", "rw")],
}
# Looks around as a process would, tries to write, and reports the results.
_LOOK = r"""
import json, os, sys
targets, seen = json.loads(sys.argv[1]), {}
def attempt(path):
    try:
        with open(path, 'a') as file:
            file.write('written')
        return True
    except OSError as error:
        return error.strerror
def read(path):
    try:
        return open(path).read().strip()
    except OSError as error:
        return error.strerror
for at in targets:
    if os.path.isdir(at):
        seen[at] = [sorted(os.listdir(at)), attempt(at + '/wrote')]
    else:
        seen[at] = [read(at), attempt(at)]
seen['cwd'] = attempt('here.txt')
seen['home'] = attempt('/home/me/top.txt')
seen['disk'] = read('/mnt/disk/set/x')
seen['data'] = read('/home/me/data/f')
seen['below'] = [read('/data/below/s'), attempt('/data/below/w')]
seen['etc'] = [read('/etc/file3'), attempt('/etc/new')]
seen['root'] = attempt('/new')
seen['user'] = [os.getuid(), [line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')][0]]
seen['mounts'] = len(open('/proc/self/mountinfo').readlines())
print(json.dumps(seen))
"""
_TREE = ("/", "/etc", "/home", "/home/me", "/home/me/exp", "/home/me/full", "/mnt", "/opt", "/tmp", "/home/me/real")
# Files that the process itself leaves there.
_OWN = {"/home/me/exp/here.txt", "/home/me/top.txt", "/etc/new", "/new"}


def main(user: str) -> None:
    """Try all cases as `user` (``root`` or ``ordinary``)."""
    print(json.dumps({name: _case(name, user) for name in CASES}))  # noqa: T201


def _case(name: str, user: str) -> dict[str, Any]:
    state = Path("/scratch/state") / name
    state.mkdir(parents=True)
    rows = [_row(state / str(number), *case) for number, case in enumerate(CASES[name])]
    plan = {
        "scratch": str(state / "scratch"),
        "journal": str(state / "mount-points"),
        "targets": rows,
        "prepare": [],
    }
    (state / "plan").write_text(json.dumps(plan))
    subprocess.run(["chown", "-R", "-h", f"{ORDINARY}:{ORDINARY}", "/scratch/state"], check=True)
    for path in _OWN:
        Path(path).unlink(missing_ok=True)
    before = _tree()
    look = [sys.executable, "-I", "-S", "-c", _LOOK, json.dumps([row["at"] for row in rows])]
    namespace = ["unshare", "--mount", "--propagation", "slave"]
    if user != "root":
        namespace[1:1] = ["--user", "--map-current-user", "--keep-caps"]
        look = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--", *look]
    argv = [*as_ordinary(user), *namespace, *helper_command(state / "plan")]
    # The program has the folder of its experiment, which the helper may have covered.
    done = subprocess.run(
        [*argv, "/bin/sh", "-c", 'cd /home/me/exp && exec "$@"', "sh", *look],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    made = sorted(_tree() - before - _OWN)
    stuck = stuck_points(str(state / "mount-points"), user)
    return {
        "status": done.returncode,
        "seen": json.loads(done.stdout) if done.returncode == 0 else None,
        "said": [row["what"] for row in json.loads(done.stderr)] if done.stderr.startswith("[") else done.stderr,
        "made": made,
        "left": sorted(_tree() - before - _OWN),
        "lost": sorted(before - _tree()),
        "stuck": stuck,
        "volumes": [_content(Path(str(row["source"]))) for row in rows],
        "full": sorted(os.listdir("/home/me/full")),  # noqa: PTH208 - names only
    }


def _row(place: Path, kind: str, at: str, mode: str) -> dict[str, object]:
    row: dict[str, object] = {"source": str(place), "at": at, "read_only": mode == "ro"}
    if kind == "file":
        place.write_text("content\n")
    elif kind == "mounts":
        row["source"] = "/srv/sub"
    elif kind != "missing":
        place.mkdir()
        (place / "of-volume").write_text("")
    if kind == "sub":
        row["sub_path"] = "a/b"
    if kind == "out":
        (place / "a").symlink_to("/home/me")
        row["sub_path"] = "a/exp"
    return row


def _tree() -> set[str]:
    return {f"{folder.rstrip('/')}/{name}" for folder in _TREE for name in os.listdir(folder)}  # noqa: PTH208 - likewise


def _content(place: Path) -> object:
    if place.is_dir():
        return sorted(str(path.relative_to(place)) for path in place.rglob("*") if not path.is_symlink())
    return place.read_text() if place.exists() else None
