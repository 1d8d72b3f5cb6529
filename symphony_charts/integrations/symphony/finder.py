"""Provide Symphony's import names and backends to a script while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import UsageError
from symphony_charts.integrations.symphony.kube import REPORTED, KubeBackend
from symphony_charts.integrations.symphony.subproc import SubprocBackend
from symphony_charts.integrations.symphony.tmux import TmuxBackend

__all__ = ["MODULES", "DockerCluster", "names"]

_TOP = "symphony"
# Symphony's modules, and the modules of this package with the same names.
MODULES = {
    "": "symphony_charts.integrations.symphony.exports",
    "addons": "symphony_charts.integrations.symphony.addons",
    "commandline": "symphony_charts.integrations.symphony.exports",
    "engine": "symphony_charts.engine",
    "errors": "symphony_charts.integrations.symphony.errors",
    "kube": "symphony_charts.integrations.symphony.kube",
    "spec": "symphony_charts.integrations.symphony.spec",
    "subproc": "symphony_charts.integrations.symphony.subproc",
    "tmux": "symphony_charts.integrations.symphony.tmux",
}
_NO_DOCKER = "this package has no docker backend"
_INSTEAD_OF_DOCKER = "use Cluster.new('tmux') or Cluster.new('kube')"


class DockerCluster(TmuxBackend):
    """Symphony's docker backend, which was removed; a subclass only because the registry takes concrete classes."""

    def __init__(self, **_: object) -> None:
        raise UsageError(_NO_DOCKER, next=_INSTEAD_OF_DOCKER)


class _Loader(Loader):
    """Fill a module of Symphony with the names of a module of this package."""

    def __init__(self, home: str) -> None:
        self._home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None: use the default kind of module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        home = import_module(self._home)
        module.__doc__ = home.__doc__
        module.__dict__.update({name: getattr(home, name) for name in home.__all__}, __all__=list(home.__all__))


class _Finder(MetaPathFinder):
    """Find `symphony` and its submodules."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the module's spec, or None for an unknown module, whose import then fails as usual."""
        top, _, rest = fullname.partition(".")
        if (top, rest) == (_TOP, "docker"):
            raise ModuleNotFoundError(f"{_NO_DOCKER}: {_INSTEAD_OF_DOCKER}", name=fullname)
        if top != _TOP or rest not in MODULES:
            return None
        return ModuleSpec(fullname, _Loader(MODULES[rest]), is_package=not rest)


@contextmanager
def names() -> Iterator[None]:
    """Map `import symphony` to this package and `Cluster.new` to Symphony's backends, inside the context only.

    Modules of another distribution called `symphony` that were imported before are restored afterwards.
    """
    finder = _Finder()
    hidden = {name: sys.modules.pop(name) for name in _loaded()}
    sys.meta_path.insert(0, finder)
    REPORTED.clear()
    try:
        with _backends():
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in _loaded():
            del sys.modules[name]
        sys.modules.update(hidden)


def _loaded() -> list[str]:
    return [name for name in sys.modules if name == _TOP or name.startswith(f"{_TOP}.")]


@contextmanager
def _backends() -> Iterator[None]:
    """Register `kube`, `tmux` and `subproc` as Symphony's backends; afterwards also remove those that scripts added."""
    before = dict(Cluster._registry)
    Cluster._registry.update(kube=KubeBackend, tmux=TmuxBackend, subproc=SubprocBackend, docker=DockerCluster)
    try:
        yield
    finally:
        Cluster._registry.clear()
        Cluster._registry.update(before)
