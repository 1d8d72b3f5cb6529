"""Scripts that are read as spec files may import `symphony`, which means this package while they run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from symphony_charts.system.entry_points import entry_points

__all__ = ["symphonys_names"]


class _AtFirstImport:
    """Lends the names when `symphony` is first imported: they take 300 ms, which most spec files do not need.

    A MetaPathFinder, but by its interface alone: the module of that class takes 8 ms to import.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - part of the interface
        target: ModuleType | None = None,  # noqa: ARG002 - part of the interface
    ) -> ModuleSpec | None:
        """Return the spec of the module in the integration of that name."""
        if fullname.partition(".")[0] != "symphony":
            return None
        sys.meta_path.remove(self)
        names: Any = entry_points("symph.names")["symphony"].load()
        self._stack.enter_context(names())
        return find_spec(fullname)


@contextmanager
def symphonys_names() -> Iterator[None]:
    """Inside, `import symphony` gives this package's names, whatever else is installed under that one."""
    with ExitStack() as stack:
        finder = _AtFirstImport(stack)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
