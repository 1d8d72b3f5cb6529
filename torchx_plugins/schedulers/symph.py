"""The schedulers ``symph`` and ``kubernetes_mcad`` for TorchX's plugin namespace, which releases after 0.7.0 search.

Those releases look at entry points too, and warn of a name that stands in both places. So this module registers only
where entry points are not looked at: with ``TORCHX_PLUGINS_SOURCE=1``, and once TorchX has dropped them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchx.plugins import register

if TYPE_CHECKING:
    from torchx.schedulers.api import Scheduler

    from symphony_charts.torchx_scheduler.scheduler import SymphScheduler


def symph(session_name: str, **kwargs: object) -> SymphScheduler:
    """The scheduler for one session of TorchX; what it needs is imported only now."""
    from symphony_charts.torchx_scheduler.scheduler import create_scheduler

    return create_scheduler(session_name, **kwargs)


def kubernetes_mcad(session_name: str, **kwargs: object) -> Scheduler:
    """The scheduler that these releases no longer have, for one session of TorchX."""
    from symphony_charts.torchx_scheduler.kubernetes_mcad import create_scheduler

    return create_scheduler(session_name, **kwargs)


def _entry_points_count() -> bool:
    """Whether this TorchX, as it is set up, finds the entry point of the same name."""
    try:
        from torchx.plugins._registry import PluginSource
    except ImportError:
        return False  # better two registrations and a warning than none
    entry_points = int(getattr(PluginSource, "ENTRYPOINT", 0))
    return bool(int(os.environ.get("TORCHX_PLUGINS_SOURCE", entry_points)) & entry_points)


if not _entry_points_count():
    register.scheduler()(symph)
    register.scheduler()(kubernetes_mcad)
