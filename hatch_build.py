"""Keeps the entry points of TorchX schedulers in the order of pyproject.toml; the build backend sorts them by name.

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
    """Marks the names of the group with their places."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling before it reads the entry points."""
        groups = metadata.get("entry-points", {})
        if GROUP in groups:
            groups[GROUP] = {_placed(name, place): groups[GROUP][name] for place, name in enumerate(groups[GROUP])}


def _placed(name: str, place: int) -> Place:
    made = Place(name)
    made.place = place
    return made
