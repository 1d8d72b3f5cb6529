"""`scp` uses the paths and links that a process sees, not those of the machine, during its run and afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.backend.status import InstanceStatus
from symphony_charts.errors import Conflict, NotFound
from symphony_charts.local import up as local_run
from symphony_charts.local.backend import LocalWatcher, ProcessFiles
from symphony_charts.local.runs import Run
from tests.local.runs import log_of, python, start, until

# A volume over a folder that also exists on this machine, and in it a link as trainers make them.
_TRAIN = """
import os, sys, time
data = sys.argv[1]
os.mkdir(data + '/ckpt-10'); open(data + '/ckpt-10/m', 'w').write("the process's")
os.symlink(data + '/ckpt-10', data + '/latest')
print('ready', flush=True); time.sleep(300)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder of this machine that the process sees as its volume."""
    folder = tmp_path / "data"
    (folder / "ckpt-10").mkdir(parents=True)
    (folder / "ckpt-10" / "m").write_text("the machine's")
    (folder / "latest").symlink_to("/")
    return folder


def training(folder: Path, data: Path, volume: dict[str, object]) -> tuple[Run, InstanceStatus]:
    process = {**python(_TRAIN, args=[str(data)]), "mounts": [{"volume": "v", "at": str(data)}], "grace_period": 1}
    run = start(folder, volumes={"v": volume}, processes={"a": process})
    until(lambda: "ready" in log_of(run, "a"))
    (instance,) = LocalWatcher().describe("exp").instances
    return run, instance


@pytest.mark.usefixtures("here")
def test_links_are_followed_in_the_root_of_the_process(tmp_path: Path, data: Path) -> None:
    run, instance = training(tmp_path, data, {"type": "claim", "claim": "c"})
    watcher = LocalWatcher()
    watcher.copy_out("exp", instance, f"{data}/latest/m", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "the process's"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "m").write_text("brought")
    watcher.copy_in("exp", instance, tmp_path / "new" / "m", f"{data}/latest")
    # A folder with the name of a link in the volume.
    (tmp_path / "new").rename(tmp_path / "latest")
    (tmp_path / "latest" / "other").write_text("brought, too")
    watcher.copy_in("exp", instance, tmp_path / "latest", str(data))
    local_run.down(run)
    # After the end the claim still exists, and its links lead to the same targets.
    (instance,) = watcher.describe("exp").instances
    watcher.copy_out("exp", instance, f"{data}/latest", tmp_path / "kept")
    brought = {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}
    assert brought == {"m": "brought", "other": "brought, too"}
    assert (data / "ckpt-10" / "m").read_text() == "the machine's"


def test_a_path_never_leads_out_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "up").symlink_to("../../../../a")
    (root / "a" / "etc").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    files = ProcessFiles("p", str(root), "/a", {})
    assert files.place_of("up/up/x") == root / "a" / "x"
    assert files.place_of("../../..") == root
    assert files.place_of("etc/passwd") == root / "etc" / "passwd"
    with pytest.raises(NotFound, match='"p" has no etc/passwd'):
        files.copy_out("etc/passwd", tmp_path / "out")
    with pytest.raises(Conflict, match="loop of symbolic links"):
        files.place_of("/loop/x")
