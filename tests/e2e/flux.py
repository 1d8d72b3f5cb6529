"""Flux's source and kustomize controllers on the test cluster, as processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.programs import Programs
from tests.e2e.rig.process import Daemon, free_ports, start
from tests.e2e.tools.build import find_tool
from tests.e2e.tools.modules import HELM_CONTROLLER, KUSTOMIZE_CONTROLLER, SOURCE_CONTROLLER
from tests.waiting import eventually

NAMESPACE = "flux-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flux:
    """Running controllers with their objects in `NAMESPACE`."""

    programs: Programs
    parts: tuple[Daemon, ...]

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.programs.get("-n", NAMESPACE, kind, name)

    def ready(self, kind: str, name: str) -> tuple[str, str]:
        found = self.get(kind, name)
        conditions = found.get("status", {}).get("conditions", [])
        of_now = found.get("status", {}).get("observedGeneration") == found.get("metadata", {}).get("generation")
        item: dict[str, str] = next((each for each in conditions if each["type"] == "Ready"), {})
        return (str(item.get("status", "")) if of_now else "", str(item.get("message", "")))

    def look(self) -> None:
        stamp = f"reconcile.fluxcd.io/requestedAt={os.urandom(6).hex()}"
        self.programs.kubectl("-n", NAMESPACE, "annotate", "--overwrite", "gitrepository", "ml-charts", stamp)

    def describe(self) -> str:
        states = [f"{kind}: {self.ready(kind, name)}" for kind, name in (("gitrepository", "ml-charts"),)]
        return "\n".join([*states, *(f"--- {part.name}\n{part.last_words(12)}" for part in self.parts)])


@contextmanager
def flux(folder: Path, programs: Programs) -> Iterator[Flux]:
    """Run both controllers for the cluster of `programs`, until the block ends."""
    folder.mkdir()
    for module in (SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER, HELM_CONTROLLER):
        programs.define(module, "config/crd/bases/*.yaml")
    storage, source, kustomize = (f"127.0.0.1:{port}" for port in free_ports(3))
    usual = ["--metrics-addr=127.0.0.1:0", "--enable-leader-election=false", "--events-addr="]
    env = {
        **programs.environment(),
        "KUBECONFIG": str(programs.kubeconfig),
        "RUNTIME_NAMESPACE": NAMESPACE,
        "TMPDIR": str(folder),
        "PATH": os.environ["PATH"],
    }
    store = [f"--storage-path={folder / 'store'}", f"--storage-addr={storage}", f"--storage-adv-addr={storage}"]
    (folder / "store").mkdir()
    lines = {
        "source-controller": [*store, f"--health-addr={source}"],
        "kustomize-controller": [f"--health-addr={kustomize}", "--requeue-dependency=2s"],
    }
    parts: list[Daemon] = []
    try:
        for name, arguments in lines.items():
            argv = [str(find_tool(name)), *usual, *arguments]
            parts.append(start(folder, name, argv, dies_with_us=True, env=env))
        running = Flux(programs=programs, parts=tuple(parts))
        eventually(lambda: all(part.is_alive for part in parts), 10, running.describe)
        yield running
    finally:
        for part in reversed(parts):
            part.stop()
