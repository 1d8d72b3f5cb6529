"""Fakes of modules that Surreal imports and none of its launchers calls: torch, pyarrow and the like.

Python runs it as `sitecustomize`, before anything else. It imports nothing of this package.
"""

from __future__ import annotations

import sys
from collections.abc import MutableSequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_STANDS_FOR = {
    "caraml",
    "dm_control",
    "gym",
    "imageio",
    "mujoco_py",
    "numpy",
    "pyarrow",
    "robosuite",
    "tensorplex",
    "torch",
    "torchx",
}


class _Anything(type):
    """A class that has every attribute, each such a class."""

    def __getattr__(cls, name: str) -> Any:
        return _anything(name)


class _Module(ModuleType):
    """A module that has every name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: MutableSequence[str] = []

    def __getattr__(self, name: str) -> Any:
        return _anything(name)


def _anything(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Anything(name, (), {})


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        stands = fullname.partition(".")[0] in _STANDS_FOR
        return ModuleSpec(fullname, self, is_package=True) if stands else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module empty."""


# First: Surreal's `torchx` is not the launcher of that name.
sys.meta_path.insert(0, _Finder())
