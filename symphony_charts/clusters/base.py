"""`Cluster` is the interface of a place where experiments run, with one subclass for each backend."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from symphony_charts.clusters.symphony_api import Watched
from symphony_charts.errors import SpecError, UsageError
from symphony_charts.formats.names import hint, prefix_owner, sanitize
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.builder import experiment as builder_experiment
from symphony_charts.spec.builder.experiment import ProcessGroupSpec, ProcessSpec
from symphony_charts.spec.builder.keywords import ExperimentKeywords, Unpack
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.environment import joined
from symphony_charts.spec.files import lock_path_of, read_lock, with_files
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.python_files import note_launch
from symphony_charts.spec.variable_names import service_prefix, service_variable
from symphony_charts.system.launching import entry_points

__all__ = [
    "AddressBook",
    "Addresses",
    "Cluster",
    "ExperimentSpec",
    "Launchable",
    "Launched",
    "ProcessGroupSpec",
    "ProcessSpec",
]


# One class serves every backend; Symphony's names per backend are aliases.


class AddressBook:
    """Addresses of services: `entries`, Symphony's `di`, maps a service to its ``host`` and ``port``."""

    def __init__(self, di: Mapping[str, Mapping[str, object]] | None = None) -> None:
        self.entries: dict[str, dict[str, object]] = {name: dict(entry) for name, entry in (di or {}).items()}

    def add_entry(self, name: str, host: str, port: int | str) -> None:
        """Set the address of a service."""
        self.entries[name] = {"host": host, "port": port}

    def format_name(self, name: str) -> str:
        """Return the name in variables: ``replay-server`` -> ``REPLAY_SERVER``."""
        return service_prefix(name).removeprefix("SYMPH_")

    def dump(self) -> dict[str, str]:
        """Return the variables ``SYMPH_<NAME>_HOST``, ``_PORT`` and ``_ADDR`` of every service."""
        environment: dict[str, str] = {}
        for name, entry in self.entries.items():
            environment[service_variable(name, "HOST")] = str(entry["host"])
            environment[service_variable(name, "PORT")] = str(entry["port"])
            environment[service_variable(name, "ADDR")] = joined(str(entry["host"]), str(entry["port"]))
        return environment


def _render(experiment: Experiment, pod: str) -> dict[str, object]:
    # Chart code takes 130 ms to load; only pod_yml needs it, tmux does not.
    from symphony_charts.clusters.kubernetes import render_pod

    return render_pod(experiment, pod)


class ExperimentSpec(builder_experiment.ExperimentSpec):
    """An experiment being described; its owner is `SymphonyConfig().username` unless `owner` is given.

    `address_book` has the addresses of its services as its processes see them; it is empty before the launch.
    """

    renderer = staticmethod(_render)

    def __init__(self, name: str, **fields: Unpack[ExperimentKeywords]) -> None:
        if fields.get("owner") is None:
            fields["owner"] = SymphonyConfig().username
        super().__init__(name, **fields)
        # Addresses are unknown until `Cluster.launch` sets them.
        self.address_book = AddressBook()


Launchable = builder_experiment.ExperimentSpec | Experiment
Addresses = Mapping[str, Mapping[str, object]]
"""``host`` and ``port`` of each service."""
_ALIASES = {"kubernetes": "kube", "k8s": "kube"}
_MODULES = {"gitops": "gitops", "kube": "kubernetes", "tmux": "tmux"}


class Launched(NamedTuple):
    """The input of `Cluster.start`, and the result `started`, None in a dry run."""

    started: object
    experiment: Experiment
    folder: Path
    pins: Mapping[str, int]


class Cluster(Watched, ABC):
    """A place where experiments run. ``Cluster.new('<name>')`` creates a subclass called ``<Name>Cluster``.

    `preamble_cmds` are shell lines that local processes of the experiments created here run first.
    """

    _registry: ClassVar[dict[str, type[Cluster]]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__name__.endswith("Cluster"):
            Cluster._registry[cls.__name__.removesuffix("Cluster").lower()] = cls

    def __init__(self, *, preamble_cmds: str | Iterable[str] | None = None) -> None:
        self._preamble_cmds = preamble_cmds

    @classmethod
    def new(cls, backend: str, **keywords: Any) -> Cluster:
        """Return the cluster of `backend`: ``tmux``, ``kubernetes`` (``kube``), ``gitops`` or a plugin's."""
        key = backend.lower()
        key = _ALIASES.get(key, key)
        if key not in cls._registry and key in _MODULES:
            import_module(f"symphony_charts.clusters.{_MODULES[key]}")
        added = entry_points("symph.backends")
        if key not in cls._registry and key in added:
            added[key].load()
        if key not in cls._registry:
            backends = sorted({*cls._registry, *_MODULES, *_ALIASES, *added})
            next_step = hint(key, backends, f"there are: {', '.join(backends)}")
            raise UsageError(f'unknown cluster backend "{backend}"', next=next_step)
        return cls._registry[key](**keywords)

    def new_experiment(self, name: str, **fields: Unpack[ExperimentKeywords]) -> ExperimentSpec:
        """Return a new experiment; arguments are those of `ExperimentSpec` (`secrets`, `port_range`...)."""
        if self._preamble_cmds is not None:
            fields.setdefault("preamble_cmds", self._preamble_cmds)
        return ExperimentSpec(name, **fields)

    def launch(self, exp: Launchable, force: bool = False, dry_run: bool = False, **options: Any) -> object:
        """Start an experiment; with `dry_run` only print the plan.

        Save it first if an experiment folder is configured; `force` replaces a saved one of the same name. While
        `symph` reads the calling script as a spec file, nothing is started: the experiment is the content of the spec.
        """
        if note_launch(exp):
            return None
        folder, pins = _beside_script()
        experiment = with_files(_finished(exp), folder)
        started = self.start(experiment, folder=folder, pins=pins, force=force, dry_run=dry_run, **options)
        if isinstance(exp, ExperimentSpec):
            exp.address_book = AddressBook(self.addresses(Launched(started, experiment, folder, pins)))
        return started

    def launch_batch(self, exps: Iterable[Launchable], **options: Any) -> list[object]:
        """Start several experiments, in order."""
        return [self.launch(exp, **options) for exp in exps]

    @abstractmethod
    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Start a finished experiment whose files are read; `pins` are the ports that its services keep.

        Relative paths of processes (`cwd`) are relative to `folder`.
        """

    def addresses(self, _launched: Launched, /) -> Addresses:
        """Return the addresses of its services as its processes see them; none by default."""
        return {}

    def prefix_username(self, name: str) -> str:
        """Return `name` with the prefix of the configured user."""
        username = SymphonyConfig().username
        return prefix_owner(sanitize(name), sanitize(username) if username else None)


def _finished(exp: Launchable) -> Experiment:
    if isinstance(exp, builder_experiment.ExperimentSpec):
        return exp.finish()
    if isinstance(exp, Experiment):
        return finish(exp)
    raise SpecError.one(f"{type(exp).__name__} is not an experiment", next="launch what new_experiment returned")


def _beside_script() -> tuple[Path, Mapping[str, int]]:
    """Return the folder of the running script, and the ports that the lock file beside it pins.

    Without a script (a notebook, a console), return the current folder and no ports.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return Path.cwd(), {}
    return Path(script).absolute().parent, read_lock(lock_path_of(Path(script))).ports
