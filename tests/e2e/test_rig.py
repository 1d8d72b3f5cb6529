"""The rig itself: its use, and its leftovers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.charts import CHECKOUT
from tests.e2e.rig.control_plane import ControlPlane
from tests.pages.blocks import blocks_of
from tests.tools import kubectl
from tests.waiting import eventually, running_below


def _links() -> set[str]:
    done = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    return {line.split(": ")[1] for line in done.stdout.splitlines()}


def test_the_cluster_for_yourself_works_as_its_page_says_and_leaves_no_process_mount_or_link(tmp_path: Path) -> None:
    links = _links()
    (lines,) = [block.text for block in blocks_of(CHECKOUT / "docs/e2e.md") if block.rest == "tests/e2e/test_rig.py"]
    program = kubectl()
    assert program is not None
    folders = [str(Path(sys.executable).parent), str(program.parent), os.environ["PATH"]]
    places = {name: str(tmp_path / name.lower()) for name in ("HOME", "TMPDIR", "SYMPH_STATE_DIR")}
    for place in places.values():
        Path(place).mkdir()
    env = {"PATH": os.pathsep.join(folders), "LC_ALL": "C.UTF-8", **places}
    done = subprocess.run(
        ["bash", "-e", "-c", lines], cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("export KUBECONFIG=", "pod/ring-p0-", "service/ring-ring-0", "kube-apiserver", "MiB"):
        assert words in done.stdout + done.stderr
    assert not running_below(tmp_path)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert _links() == links


def test_a_killed_owner_takes_its_cluster_along(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    script = (
        "import os, signal; from pathlib import Path; from tests.e2e.rig.control_plane import ControlPlane\n"
        f"ControlPlane(folder=Path({str(folder)!r})).up(dies_with_us=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, timeout=90, check=False)
    assert ControlPlane(folder=folder).daemons()
    eventually(lambda: not any(d.is_alive for d in ControlPlane(folder=folder).daemons()), 60, "they are gone")
