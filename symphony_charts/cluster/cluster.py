"""Where experiments run: one interface, one subclass for each backend."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from symphony_charts.adapters.specfile import lock_path_of, read_lock, with_files
from symphony_charts.adapters.specfile.python import note_launch
from symphony_charts.cluster.config import SymphonyConfig
from symphony_charts.cluster.specs import ExperimentSpec
from symphony_charts.errors import SpecError, SymphError, UsageError
from symphony_charts.spec import builder
from symphony_charts.spec.check import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.names import prefix_owner, sanitize
from symphony_charts.spec.paths import nearest

__all__ = ["Cluster", "Launchable"]

Launchable = builder.ExperimentSpec | Experiment
_ALIASES = {"kubernetes": "kube", "k8s": "kube"}
_MODULES = {"kube": "kube_cluster", "tmux": "tmux_cluster"}


class Cluster(ABC):
    """A place where experiments run. A subclass called ``<Name>Cluster`` is what ``Cluster.new('<name>')`` makes.

    `preamble_cmds` are shell lines that every experiment made here runs before each of its processes locally.
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
        """The cluster of `backend`: ``tmux``, ``kubernetes`` (``kube``), or one that a subclass adds."""
        key = backend.lower()
        key = _ALIASES.get(key, key)
        if key not in cls._registry and key in _MODULES:
            import_module(f"symphony_charts.cluster.{_MODULES[key]}")
        if key not in cls._registry:
            known = sorted({*cls._registry, *_MODULES, *_ALIASES})
            meant = nearest(key, known)
            next_step = f'did you mean "{meant}"?' if meant else f"there are: {', '.join(known)}"
            raise UsageError(f'no cluster backend is called "{backend}"', next=next_step)
        return cls._registry[key](**keywords)

    def new_experiment(self, name: str, **fields: Any) -> ExperimentSpec:
        """A new experiment; arguments are those of `ExperimentSpec` (`secrets`, `port_range`, `preamble_cmds`...)."""
        if self._preamble_cmds is not None:
            fields.setdefault("preamble_cmds", self._preamble_cmds)
        return ExperimentSpec(name, **fields)

    def launch(self, exp: Launchable, force: bool = False, dry_run: bool = False, **options: Any) -> object:
        """Start an experiment; with `dry_run` only print what would be started.

        It is saved first where an experiment folder is configured; `force` replaces one of the same name there.
        While `symph` reads the calling script as a spec file, nothing is started: the experiment is what was read.
        """
        if note_launch(exp):
            return None
        folder, pins = _beside_script()
        experiment = with_files(_finished(exp), folder)
        return self.start(experiment, folder=folder, pins=pins, force=force, dry_run=dry_run, **options)

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

        Paths that processes mean relatively (`cwd`) count from `folder`.
        """

    def delete(self, experiment_name: str) -> None:
        """End an experiment; raises NotFound unless it is one of ours."""
        raise self._not_yet(f'delete "{experiment_name}"')

    def delete_batch(self, experiment_names: Iterable[str]) -> None:
        """End several experiments, in order."""
        for name in experiment_names:
            self.delete(name)

    def get_log(self, experiment_name: str, process_name: str, process_group: str | None = None, **_: Any) -> str:
        """What a process has printed."""
        raise self._not_yet(f'read the log of "{experiment_name}", "{process_group or process_name}"')

    def list_experiments(self) -> list[str]:
        """The names of the experiments that run here and are ours."""
        raise self._not_yet("list experiments")

    def describe_experiment(self, experiment_name: str) -> Mapping[str | None, Mapping[str, Mapping[str, str]]]:
        """The state of an experiment: group (None for lone processes) -> process -> column -> text."""
        raise self._not_yet(f'describe "{experiment_name}"')

    def describe_process_group(
        self, experiment_name: str, process_group: str | None
    ) -> Mapping[str, Mapping[str, str]]:
        """The state of one group, or with None of the lone processes."""
        return self.describe_experiment(experiment_name).get(process_group, {})

    def find_process(self, experiment_name: str, process_name: str) -> list[str | None]:
        """The groups (None for a lone process) that hold a process of this name."""
        state = self.describe_experiment(experiment_name)
        return [group for group, processes in state.items() if process_name in processes]

    def prefix_username(self, name: str) -> str:
        """`name` as experiments of the configured user are called."""
        username = SymphonyConfig().username
        return prefix_owner(sanitize(name), sanitize(username) if username else None)

    def fuzzy_match_experiment(self, name: str) -> tuple[list[str], bool]:
        """The experiments that `name` may mean, best first, and whether it names one exactly."""
        names = sorted(self.list_experiments())
        full = self.prefix_username(name)
        for exact in (full, name):
            if exact in names:
                return [exact], True
        loose = [*_starting(names, full), *_starting(names, name), *(n for n in names if n.endswith(name))]
        return list(dict.fromkeys([*loose, *(n for n in names if name in n)])), False

    def fuzzy_match_process(self, name: str, experiment_name: str) -> tuple[list[tuple[str | None, str]], bool]:
        """The (group, process) pairs that `name` or ``group/name`` may mean, and whether it names them exactly."""
        group, _, process = name.rpartition("/")
        pairs = [
            (here, each)
            for here, processes in self.describe_experiment(experiment_name).items()
            for each in processes
            if group in ("", here)
        ]
        pairs.sort(key=lambda pair: (pair[1], str(pair[0])))
        exact = [pair for pair in pairs if pair[1] == process]
        if exact:
            return exact, True
        loose = [pair for pair in pairs if pair[1].startswith(process)]
        loose += [pair for pair in pairs if pair[1].endswith(process)]
        return list(dict.fromkeys([*loose, *(pair for pair in pairs if process in pair[1])])), False

    def _not_yet(self, what: str) -> SymphError:
        return SymphError(f"{type(self).__name__} cannot {what}", next="this backend has no such operation")


def _finished(exp: Launchable) -> Experiment:
    if isinstance(exp, builder.ExperimentSpec):
        return exp.finish()
    if isinstance(exp, Experiment):
        return finish(exp)
    raise SpecError.one(f"{type(exp).__name__} is no experiment", next="launch what new_experiment returned")


def _beside_script() -> tuple[Path, Mapping[str, int]]:
    """The folder of the running script, and the ports that the lock file beside it pins.

    Without a script (a notebook, a console) it is the current folder, and nothing is pinned.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return Path.cwd(), {}
    return Path(script).absolute().parent, read_lock(lock_path_of(Path(script))).ports


def _starting(names: Sequence[str], start: str) -> list[str]:
    return [name for name in names if name.startswith(start)]
