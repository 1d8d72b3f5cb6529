"""Registers the TorchX schedulers of pyproject.toml in their order; the build backend sorts entry points by name.

TorchX runs on the first one that it finds unless told otherwise, and release 0.7.0 knows its own schedulers only as
long as nobody registers one. So its own are registered along with ours, in its own order, and nothing changes for
those who do not say ``-s symph``.
"""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

GROUP = "torchx.schedulers"


class Place(str):
    """A text that sorts by its place in the file, not by its letters."""

    place: int

    def __lt__(self, other: str) -> bool:
        return self.place < getattr(other, "place", -1)


class InOrder(MetadataHookInterface):
    """Adds the group, which is a dynamic field so that a wheel built from the sdist has it in order, too."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling before it reads the entry points."""
        named: dict[str, str] = self.config[GROUP]
        metadata["entry-points"] = {GROUP: {_placed(name, place): named[name] for place, name in enumerate(named)}}


def _placed(name: str, place: int) -> Place:
    made = Place(name)
    made.place = place
    return made
