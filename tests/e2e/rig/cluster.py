"""The whole test cluster: the control plane, its nodes, and the process kubelet that acts as their agents."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.rig.api import Api
from tests.e2e.rig.control_plane import ControlPlane
from tests.e2e.rig.nodes import DEFAULT_POOLS
from tests.e2e.rig.process import free_ports, start, wait_for
from tests.e2e.tools.build import cache_folder
from tests.tools import TOOLS

_CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(ControlPlane):
    """A control plane with nodes, in the state folder `folder`, running or not."""

    def up(self, *, dies_with_us: bool = False, gangs: bool = False, pools: Path = DEFAULT_POOLS) -> None:
        """Start everything; return when every node is ready.

        Raises Conflict if it runs already, ToolMissing without a needed program, ToolFailed if a part does not start.
        """
        ControlPlane.up(self, dies_with_us=dies_with_us, gangs=gangs)
        try:
            self._start_kubelet(pools, dies_with_us)
        except BaseException:
            self.down()
            raise

    def _start_kubelet(self, pools: Path, dies_with_us: bool) -> None:
        (port,) = free_ports(1)
        argv = [sys.executable, "-m", "tests.e2e.rig.kubelet", f"--state={self.folder}", f"--pools={pools.resolve()}"]
        argv.append(f"--port={port}")
        # The kubelet's children must get neither our shell's settings nor a half-set Python.
        env = {"PATH": _path(), "PYTHONPATH": str(_CHECKOUT), "LC_ALL": "C.UTF-8", "HOME": "/root"}
        env["XDG_CACHE_HOME"] = str(cache_folder().parents[1])
        kubelet = start(self.folder, "kubelet", argv, dies_with_us=dies_with_us, env=env)
        with self.api() as api:
            wait_for(kubelet, lambda: _all_ready(api), 60)


def _path() -> str:
    """Return the search path of containers: this interpreter's folder first, then our tools' and the system's."""
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return f"{Path(sys.executable).parent}:{TOOLS}:{system}"


def _all_ready(api: Api) -> bool:
    nodes = api.get("/api/v1/nodes")["items"]
    return bool(nodes) and not any(node["spec"].get("taints") and _is_untouched(node) for node in nodes)


def _is_untouched(node: dict[str, object]) -> bool:
    """Return True if the node still has the taint that admission puts on a new one."""
    return "node.kubernetes.io/not-ready" in str(node["spec"])
