"""The scheduler of scheduler-plugins beside Kubernetes' own, as in clusters whose users name a coscheduler."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.programs import Programs
from tests.e2e.rig.process import Daemon, answers, free_ports, start, wait_for
from tests.e2e.tools.build import find_tool
from tests.e2e.tools.modules import SCHEDULER_PLUGINS

NAME = "coscheduler"
"""Its `schedulerName` in pods."""

_PATIENCE_S = 5
"""The time for which it reserves room for pods whose gang lacks others."""


def start_coscheduler(folder: Path, programs: Programs) -> Daemon:
    """Start the scheduler, wait for its pod groups, and return it; its state is below `folder`."""
    programs.define(SCHEDULER_PLUGINS, "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml")
    (port,) = free_ports(1)
    config = folder / f"{NAME}.yaml"
    config.write_text(json.dumps(_configuration(programs.kubeconfig)))
    kubeconfigs = [f"--{use}-kubeconfig={programs.kubeconfig}" for use in ("authentication", "authorization")]
    listens = ["--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={folder / 'pki' / NAME}"]
    argv = [str(find_tool(NAME)), f"--config={config}", *kubeconfigs, *listens]
    daemon = start(folder, NAME, argv, dies_with_us=True, env=programs.environment())
    wait_for(daemon, lambda: answers(f"https://127.0.0.1:{port}/healthz"), 60)
    return daemon


def _configuration(kubeconfig: Path) -> dict[str, object]:
    """Return the settings: its only plugin beyond Kubernetes' own is in every step, and orders the pods."""
    plugin = [{"name": "Coscheduling"}]
    plugins = {"multiPoint": {"enabled": plugin}, "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]}}
    arguments = [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": _PATIENCE_S}}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": [{"schedulerName": NAME, "plugins": plugins, "pluginConfig": arguments}],
    }
