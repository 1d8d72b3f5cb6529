"""The schedulers ``symph`` and ``kubernetes_mcad`` for TorchX's plugin namespace, which releases after 0.7.0 search.

Those releases put plugins before their own schedulers, and run on the first one unless told otherwise. So their own
are registered here, too, before ours: the default stays. A name that is also an entry point is left to that, since
TorchX warns of a name in both places.
"""

from __future__ import annotations

import os
from importlib import import_module, metadata
from typing import TYPE_CHECKING

from torchx.plugins import register
from torchx.schedulers import DEFAULT_SCHEDULER_MODULES

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchx.schedulers.api import Scheduler

_OURS = {
    "kubernetes_mcad": "symphony_charts.integrations.torchx.kubernetes_mcad",
    "symph": "symphony_charts.integrations.torchx.scheduler",
}


def _factory_in(module: str) -> Callable[..., Scheduler]:
    """Return a factory that imports its module when TorchX calls it."""

    def create(session_name: str, **kwargs: object) -> Scheduler:
        return import_module(module).create_scheduler(session_name, **kwargs)

    create.__module__ = __name__
    return create


def _entry_points() -> set[str]:
    """Return the names of schedulers that this TorchX, as it is set up, finds as entry points."""
    try:
        from torchx.plugins._registry import PluginSource
    except ImportError:
        return set()  # two registrations and a warning are better than none
    source = int(getattr(PluginSource, "ENTRYPOINT", 0))
    if not int(os.environ.get("TORCHX_PLUGINS_SOURCE", source)) & source:
        return set()
    return metadata.entry_points(group="torchx.schedulers").names


for _place, (_name, _module) in enumerate({**DEFAULT_SCHEDULER_MODULES, **_OURS}.items()):
    if _name not in _entry_points():
        # TorchX reads the names of this module in alphabetical order.
        globals()[f"scheduler_{_place:03}"] = register.scheduler(_name)(_factory_in(_module))
