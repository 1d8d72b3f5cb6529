"""Attacks on the remover, each on its own home beside a canary; print the state of both as JSON.

Run it in private mount and pid namespaces (`tests.namespace`); it refuses to run elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from symphony_charts.errors import SymphError
from symphony_charts.system import remover

ATTACKS: dict[str, Callable[[Path], object]] = {}


def attack(function: Callable[[Path], object]) -> Callable[[Path], object]:
    """Register `function`, which gets a folder with a canary in it, under its name."""
    ATTACKS[function.__name__] = function
    return function


def made(top: Path) -> Path:
    """Create a run with a few files in it."""
    run = remover.make(top / "local", "rl", "1")
    (run / "p" / "0").mkdir(parents=True)
    (run / "p" / "0" / "log").write_text("x")
    (run / "state.json").write_text("{}")
    return run


def removed(top: Path) -> object:
    return remover.remove(top / "local", "rl", "1")


def mount(source: Path, target: Path) -> None:
    subprocess.run(["mount", "--bind", str(source), str(target)], check=True)


@attack
def plain(top: Path) -> object:
    """Links, a pipe and nested folders inside."""
    run = made(top)
    (run / "link").symlink_to(top / "canary")
    (run / "p" / "link").symlink_to(top / "canary" / "keep")
    os.mkfifo(run / "born")
    return removed(top)


@attack
def another_stays(top: Path) -> object:
    """A second run of the experiment is kept."""
    made(top)
    other = remover.make(top / "local", "rl", "2")
    left = removed(top)
    return [left, (other / remover.MARKER).exists()]


@attack
def no_marker(top: Path) -> object:
    """A foreign folder in our home."""
    run = made(top)
    (run / remover.MARKER).unlink()
    return removed(top)


@attack
def copied_marker(top: Path) -> object:
    """`cp -r` of a run."""
    run = made(top)
    remover.make(top / "local", "rl", "2")
    (top / "local" / "rl" / "2" / remover.MARKER).replace(run / remover.MARKER)
    return removed(top)


@attack
def empty_marker(top: Path) -> object:
    """An empty marker, as after a power loss."""
    (made(top) / remover.MARKER).write_text("")
    return removed(top)


@attack
def linked_marker(top: Path) -> object:
    """The marker is a link to a valid one."""
    marker = made(top) / remover.MARKER
    marker.rename(top / "marker")
    marker.symlink_to(top / "marker")
    return removed(top)


@attack
def hard_linked_marker(top: Path) -> object:
    """The marker has a second name."""
    os.link(made(top) / remover.MARKER, top / "marker")
    return removed(top)


@attack
def piped_marker(top: Path) -> object:
    """The marker is a pipe, on which a reader would block forever."""
    marker = made(top) / remover.MARKER
    marker.unlink()
    os.mkfifo(marker)
    return removed(top)


@attack
def run_is_a_link(top: Path) -> object:
    """The folder of the run is a link, even to a marked one."""
    run = made(top)
    run.rename(top / "canary" / "run")
    run.symlink_to(top / "canary" / "run")
    return [str_of(lambda: removed(top)), (top / "canary" / "run" / "state.json").exists()]


@attack
def experiment_is_a_link(top: Path) -> object:
    run = made(top)
    run.parent.rename(top / "canary" / "rl")
    run.parent.symlink_to(top / "canary" / "rl")
    return [str_of(lambda: removed(top)), (top / "canary" / "rl" / "1" / "state.json").exists()]


@attack
def home_is_a_link(top: Path) -> object:
    made(top)
    (top / "local").rename(top / "canary" / "local")
    (top / "local").symlink_to(top / "canary" / "local")
    return removed(top)


@attack
def names_that_lead_out(top: Path) -> object:
    made(top)
    names = (("..", "canary"), ("rl", ".."), ("rl", "1/../../../canary"), ("rl", "."), ("", "1"), ("rl", ""))
    return [str_of(lambda pair=pair: remover.remove(top / "local", *pair)) for pair in names]  # type: ignore[misc]  # a lambda with a default


@attack
def group_writable(top: Path) -> object:
    """Other users could replace its content at any moment."""
    made(top).parent.chmod(0o770)
    return removed(top)


@attack
def somebody_elses(top: Path) -> object:
    """The folder belongs to another user."""
    os.chown(made(top), 12345, 12345)
    return removed(top)


@attack
def mounted_inside(top: Path) -> object:
    """A bind mount of the same file system, which has the same device."""
    folder = made(top) / "volumes" / "x"
    folder.mkdir(parents=True)
    mount(top / "canary", folder)
    assert folder.stat().st_dev == folder.parent.stat().st_dev
    return removed(top)


@attack
def mounted_inside_unseen(top: Path) -> object:
    """Parts of a run are removed while something is mounted below, as at its end."""
    folder = made(top) / "volumes" / "x" / "y"
    folder.mkdir(parents=True)
    (folder.parent / "file").write_text("x")
    mount(top / "canary", folder)
    return remover.remove_parts(top / "local", ("rl", "1"), ["volumes"])


@attack
def mounted_and_closed(top: Path) -> object:
    """The mounted folder may not be entered, and its mode is kept."""
    folder = made(top) / "volumes"
    folder.mkdir()
    mount(top / "canary", folder)
    (top / "canary").chmod(0o500)
    left = remover.remove_parts(top / "local", ("rl", "1"), ["volumes"])
    mode = (top / "canary").stat().st_mode & 0o777
    (top / "canary").chmod(0o755)
    return [left, mode]


@attack
def mounted_over(top: Path) -> object:
    """The folder of the run is a mount point of a folder with a valid marker."""
    run = made(top)
    other = top / "canary" / "other"
    other.mkdir()
    (other / remover.MARKER).write_bytes((run / remover.MARKER).read_bytes())
    mount(other, run)
    return removed(top)


@attack
def parts_through_a_link(top: Path) -> object:
    """`p/0` has become a link to a folder with files of the same names."""
    run = made(top)
    (top / "canary" / "start").write_text("mine")
    (run / "p" / "0" / "log").unlink()
    (run / "p" / "0").rmdir()
    (run / "p" / "0").symlink_to(top / "canary")
    (run / "files").symlink_to(top / "canary")
    left = remover.remove_parts(top / "local", ("rl", "1"), ["files", "p/0/start", "p/7/start"])
    return [len(left), (top / "canary" / "start").exists(), (run / "files").is_symlink()]


@attack
def somebody_elses_home(top: Path) -> object:
    """`local` contains foreign files."""
    (top / "local" / "lib").mkdir(parents=True)
    return str_of(lambda: made(top)) + " " + str_of(lambda: remover.remove(top / "local", "lib"))


@attack
def empty_home_becomes_ours(top: Path) -> object:
    (top / "local").mkdir()
    made(top)
    return removed(top)


@attack
def closed_folders(top: Path) -> object:
    """Folders that not even their owner may write or enter, as module caches have them."""
    uid = 61001 if os.geteuid() == 0 else os.geteuid()
    top.chmod(0o777)
    child = os.fork()
    if child == 0:
        os.setuid(uid)
        folder = made(top) / "volumes"
        for name, mode in (("ro/sub", 0o555), ("no/sub", 0)):
            (folder / name).mkdir(parents=True)
            (folder / name / "file").write_text("x")
            (folder / name).chmod(mode)
            (folder / name).parent.chmod(mode)
        os._exit(len(removed(top)))  # type: ignore[arg-type]  # a list
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@attack
def maker_died(top: Path) -> object:
    """A folder without a marker and without any other content."""
    made(top)
    (top / "local" / "rl" / "3").mkdir()
    remover.check(top / "local", "rl", "3")
    return [remover.remove(top / "local", "rl", "3"), (top / "local" / "rl" / "3").exists()]


@attack
def remover_died(top: Path) -> object:
    """A removal that stopped half way is completed by the next: its marker is the last file to go."""
    run = made(top)
    (run / "state.json").unlink()
    (run / "p" / "0").rename(run / ".1234.0")
    return removed(top)


def str_of(do: Callable[[], object]) -> str:
    """Return the result of `do` or its error as text."""
    try:
        return str(do())
    except SymphError as error:
        return f"{type(error).__name__}: {error.what}"


def main(folder: Path) -> None:
    assert os.getpid() < 10, "only in a pid namespace of its own"
    told = {}
    for name, function in ATTACKS.items():
        top = folder / name
        (top / "canary" / "deep").mkdir(parents=True)
        (top / "canary" / "keep").write_text("k")
        (top / "canary" / "deep" / "keep").write_text("k")
        try:
            said: object = function(top)
        except SymphError as error:
            said = f"{type(error).__name__}: {error.what}"
        canary = sorted(path.name for path in (top / "canary").rglob("keep"))
        told[name] = {"said": said, "canary": len(canary), "run": (top / "local" / "rl" / "1").exists()}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
