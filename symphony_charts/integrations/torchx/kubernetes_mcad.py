"""The scheduler `kubernetes_mcad`: TorchX's own if its release has it, else this one.

It takes that scheduler's options, uses the current context, and submits an AppWrapper of the version that MCAD reads.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping

from torchx.schedulers.api import Scheduler
from torchx.specs import runopts

from symphony_charts.integrations.torchx import request
from symphony_charts.integrations.torchx.options import OPTIONS
from symphony_charts.integrations.torchx.scheduler import RunOpts, SymphScheduler

_OWN = "torchx.schedulers.kubernetes_mcad_scheduler"
_NAMES = frozenset(option.name for option in OPTIONS if "kubernetes_mcad" in option.schedulers)


class McadScheduler(SymphScheduler):
    """Submit AppWrappers v1beta1."""

    NAME = "kubernetes_mcad"

    def _run_opts(self) -> runopts:
        opts = RunOpts()
        request.declare(opts, _NAMES)
        return opts

    def _cfg(self, cfg: Mapping[str, object]) -> dict[str, object]:
        given = super()._cfg(cfg)
        return {
            **given,
            "namespace": given.get("namespace") or "default",
            "on": "kube",
            "appwrapper_version": "v1beta1",
        }


def create_scheduler(session_name: str, **kwargs: object) -> Scheduler:
    """Return the scheduler for one session of TorchX."""
    if importlib.util.find_spec(_OWN) is not None:
        return importlib.import_module(_OWN).create_scheduler(session_name, **kwargs)
    return McadScheduler(session_name)
