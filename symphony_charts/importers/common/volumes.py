"""The volumes of an experiment that is being imported: one per content, each with a valid name of its own."""

from __future__ import annotations

from symphony_charts.importers.common.names import UniqueNames

__all__ = ["Volumes"]


class Volumes:
    """Declares volumes; the same content asked for under the same name is the same volume."""

    def __init__(self) -> None:
        self.declared: dict[str, object] = {}

    def declare(self, name: str, volume: dict[str, object]) -> str:
        """The name under which `volume` is declared: `name` if it is free, or a numbered one."""
        clean = UniqueNames.label(name, 50)
        unique, count = clean, 2
        while self.declared.setdefault(unique, volume) != volume:
            unique, count = f"{clean}-{count}", count + 1
        return unique

    def find(self, volume: dict[str, object], name: str) -> str:
        """The name of a volume with this content, declared as `name` if there is none yet."""
        for known, content in self.declared.items():
            if content == volume:
                return known
        return self.declare(name, volume)
