"""Names of other tools become names of an experiment: valid, unique, and as near to the original as can be."""

from __future__ import annotations

import re

from symphony_charts.formats.names import sanitize, shorten
from symphony_charts.importers.report import Log

__all__ = ["LONGEST", "UniqueNames", "Volumes"]

LONGEST = 40
_NOT_LABEL = re.compile(r"[^a-z0-9-]+")
_NOT_VALUE = re.compile(r"[^A-Za-z0-9_.-]+")


class UniqueNames:
    """Hands out names, no name twice; every change is noted in `log`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._taken: set[str] = set()

    def give(self, name: str, path: str, longest: int = LONGEST) -> str:
        """A valid name made of `name` that was not given before."""
        clean = self.clean(name, path, longest)
        free, count = clean, 2
        while free in self._taken:
            free, count = f"{clean}-{count}", count + 1
        self._taken.add(free)
        if free != clean:
            self._log.changed(path, f'"{name}" stands there twice; this one is called "{free}"')
        return free

    def clean(self, name: str, path: str, longest: int = LONGEST) -> str:
        """A valid name made of `name`."""
        clean = self.label(name, longest)
        if clean == sanitize(name):
            return clean
        is_long = len(name) > longest and self.label(name, len(name)) == name
        why = f"has {len(name)} characters, and {longest} fit" if is_long else "is no valid name"
        self._log.changed(path, f'"{name}" {why}; it is called "{clean}"')
        return clean

    @staticmethod
    def label(name: str, longest: int = LONGEST) -> str:
        """A DNS label that begins with a letter, made of any text."""
        label = _NOT_LABEL.sub("-", sanitize(name)).strip("-") or "x"
        if not label[0].isalpha():
            label = f"x{label}"
        return shorten(label, longest)

    @staticmethod
    def label_value(text: str) -> str:
        """A Kubernetes label value (63 characters, alphanumeric ends) made of any text."""
        return shorten(_NOT_VALUE.sub("-", text).strip("-_."), 63)


class Volumes:
    """Declares volumes; the same content asked for under the same name is the same volume."""

    def __init__(self) -> None:
        self.declared: dict[str, object] = {}

    def declare(self, name: str, volume: dict[str, object]) -> str:
        """The name under which `volume` is declared: `name` if it is free, or a numbered one."""
        clean = UniqueNames.label(name, 50)
        free, count = clean, 2
        while self.declared.setdefault(free, volume) != volume:
            free, count = f"{clean}-{count}", count + 1
        return free

    def find(self, volume: dict[str, object], name: str) -> str:
        """The name of a volume with this content, declared as `name` if there is none yet."""
        for declared, content in self.declared.items():
            if content == volume:
                return declared
        return self.declare(name, volume)
