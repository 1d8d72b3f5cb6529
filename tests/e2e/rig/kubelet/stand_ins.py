"""A kubelet without cluster, root or processes, for tests of how it bears what fails around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.rig.api import Object
from tests.e2e.rig.kubelet import agent as agents
from tests.e2e.rig.kubelet import container, pod
from tests.e2e.rig.kubelet.channel import Exit

__all__ = ["StandInServer", "make_agent", "make_pod", "until", "write_kubeconfig"]


class StandInServer:
    """Stands for the client of an API server: what is asked below `part` raises `errors` in turn, then works."""

    def __init__(self, part: str = "", *errors: Exception) -> None:
        self.asked: list[tuple[str, Object]] = []
        self._part, self._errors = part, list(errors)

    def about(self, part: str) -> list[Object]:
        """The bodies of what was asked about paths that have `part` in them."""
        return [body for path, body in self.asked if part in path]

    def phases(self) -> list[str]:
        """What was told of the phase of pods."""
        return [body["status"]["phase"] for body in self.about("/status")]

    def _answer(self, path: str, body: Object | None = None, **_: object) -> Object:
        # As over the network: what becomes of the body later changes nothing.
        self.asked.append((path, json.loads(json.dumps(body))))
        if self._errors and self._part in path:
            raise self._errors.pop(0)
        return {"metadata": {}, "data": {"A": "1"}}

    find = create = merge = delete = _answer


class _Sleeper:
    """Stands for a command that no signal ends."""

    launcher_pid = pid = 1
    is_running = True

    async def wait(self) -> Exit:
        await asyncio.Event().wait()
        return Exit(code=0)

    def send(self, signal_name: str) -> None:
        """Nothing happens."""

    async def release(self) -> None:
        """Nothing was held."""


class _NoNetwork:
    """Stands for the network of the pods."""

    def pod_sysctls(self) -> dict[str, str]:
        return {}

    async def attach(self, pid: int) -> str:
        return "10.244.0.2"


def write_kubeconfig(folder: Path, server: str) -> Path:
    """The kubeconfig in `folder` of the cluster at `server`, which asks nobody who they are."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def make_pod(**spec: Any) -> Object:
    """A pod of one container, with what `spec` adds."""
    main = {"name": "main", "image": "none:1", "command": ["true"], "envFrom": [{"configMapRef": {"name": "c"}}]}
    meta = {"namespace": "default", "name": "p", "uid": "12345678-1"}
    return {"metadata": meta, "spec": {"nodeName": "node", "containers": [main], **spec}, "status": {}}


def make_agent(folder: Path, server: StandInServer, monkeypatch: pytest.MonkeyPatch) -> agents.Agent:
    """The agent of the node ``node``, with its files in `folder`; made in a running loop."""

    async def launch(_: Object) -> _Sleeper:
        return _Sleeper()

    monkeypatch.setattr(pod, "launch", launch)
    monkeypatch.setattr(container, "launch", launch)
    for module, name in ((agents, "_RETRY_S"), (pod, "_MOUNT_RETRY_S"), (container, "_CONFIG_RETRY_S")):
        monkeypatch.setattr(module, name, 0.01)
    config = write_kubeconfig(folder, "http://127.0.0.1:9")
    images = Path(__file__).with_name("images.yaml")
    agent = agents.Agent(agents.Settings(state=folder, kubeconfig=config, pools=(), port=1, images=images))
    monkeypatch.setattr(agent, "api", server)
    monkeypatch.setattr(agent, "_network", _NoNetwork(), raising=False)
    monkeypatch.setattr(agent, "_machine", agent._make_machine(folder), raising=False)
    monkeypatch.setattr(agent, "_nodes", {"node"})
    return agent


async def until(holds: Callable[[], object]) -> None:
    """Return when `holds` is true; fails after ten seconds."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come")
