"""`SymphonyParser`: the command line that `symph` is, and that projects extend with verbs of their own.

class MyProject(SymphonyParser):
    def create_cluster(self):
        return Cluster.new("kubernetes")

    def setup(self):
        super().setup()
        self.add_subparser("create").add_argument("name")

    def action_create(self, args):
        '''Start an experiment.'''
        self.cluster.launch(build(args.name))

MyProject().main()
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any, Protocol

from symphony_charts.cli import arguments, defaults, output, plugins
from symphony_charts.cli import options as cli_options
from symphony_charts.cli.failures import status_of
from symphony_charts.cli.plugins import Plugin, symphonys_names
from symphony_charts.cli.verbs import DESCRIPTION, HIDDEN, VERBS, Verb, find_verb
from symphony_charts.system.launching import Launcher, launching
from symphony_charts.version import __version__

Action = Callable[[argparse.Namespace], Any]


class Backend(Protocol):
    """The part of a cluster that the parser needs; verbs use the full protocol of `symphony_charts.clusters`."""

    def fuzzy_match_experiment(self, name: str) -> tuple[Sequence[str], bool]:
        """Return the experiments that `name` may mean, best first, and True if it is an exact match."""


def _method_name(verb: str) -> str:
    return "action_" + verb.replace("-", "_")


class _Lazily:
    """Import modules of this package at first use, because most verbs need only their arguments.

    An import finder, without the base class, which takes 8 ms to import. Verb modules import modules instead of names
    (`from symphony_charts.cli import specs`), because importing a name loads its module.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module, with a loader that waits for the first use."""
        if not name.startswith(("symphony_charts.", "msgspec")):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile, nor later among what is there: imports make none, and the search takes 20 ms."""
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
        gc.enable()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the imports are done.

    CPython drops an exception that is raised while an import statement loads a lazy module, which then stays half
    empty. Source: CPython, Python/import.c, import_ensure_initialized.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _function_of(verb: Verb, name: str) -> Any:
    """Return `configure` or `run` of a verb. Verb modules are imported only here."""
    how = _Lazily() if name == "configure" else _without_collections()
    with how, _uninterrupted():
        module = import_module(f"symphony_charts.cli.{verb.module}")
        if name == "run":
            _load_imports(module)
        suffix = verb.name.strip("_").replace("-", "_")
        return getattr(module, f"{name}_{suffix}", None) or getattr(module, name)


def _load_imports(module: ModuleType) -> None:
    """Load the lazy modules that `module` imports: before Python 3.12.2 two threads must not do so at the same time.

    Those in its `LATE` wait for their first use, because not every command line needs them.
    """
    late = vars(module).get("LATE", ())
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType) and type(value) is not ModuleType and value not in late:
            _load_imports(value)


def _action_of(verb: Verb) -> Callable[[SymphonyParser, argparse.Namespace], int]:
    """Return the method ``action_<verb>``; scripts call it from their own verbs, with their own arguments."""

    def action(self: SymphonyParser, args: argparse.Namespace) -> int:
        arguments.fill_defaults(self.get_subparser(verb.name), args)
        status: int = _function_of(verb, "run")(args)
        if getattr(args, "dry_run", False):
            output.note("nothing was changed (--dry-run)")
        return status

    action.__doc__ = verb.summary
    return action


# A method ``action_<verb>`` for each name of each verb: projects override them or call them from their own verbs.
_VerbMethods: Any = type(
    "VerbMethods", (), {_method_name(name): _action_of(verb) for verb in (*VERBS, *HIDDEN) for name in verb.names}
)


class SymphonyParser(_VerbMethods):  # type: ignore[misc]  # its methods are made from the table of verbs
    """Symphony's verbs, and those that a project adds in `setup`.

    Override `create_cluster` to choose where experiments run, and `setup` to add verbs and settings. Attributes:
    `master_parser` and `subparsers` are argparse's objects, `cluster` is created at first use.
    """

    prog: str | None = None
    description = DESCRIPTION

    def __init__(self) -> None:
        self._parsers: dict[str, argparse.ArgumentParser] = {}
        self._own: list[Verb] = []
        self._plugins: list[Plugin] = []
        prog = self.prog or sys.argv[0].rpartition("/")[2] or "symph"
        self.master_parser: argparse.ArgumentParser = arguments.MasterParser(
            prog=prog, description=self.description, verbs=lambda: plugins.with_plugins(self._all_verbs())
        )
        cli_options.add_global_options(self.master_parser)
        self.master_parser.add_argument("--version", action="store_true", dest="show_version", help="print the version")
        self.subparsers: argparse._SubParsersAction[argparse.ArgumentParser] = self.master_parser.add_subparsers(
            dest="action", metavar="VERB", parser_class=arguments.Parser
        )
        self._cluster: Backend | None = None
        self._args = argparse.Namespace()
        # Help is printed even if variables or settings are invalid.
        self._is_help = False
        self.setup()

    # Methods that users override

    def create_cluster(self) -> Backend:
        """Return the cluster of this command line; called once, when a verb first needs it."""
        return _new_cluster(cli_options.backend_of(self._args))

    def setup(self) -> None:
        """Add verbs with `add_subparser` and set configuration; Symphony's verbs are already defined."""

    # Methods that users call

    @property
    def cluster(self) -> Backend:
        """The cluster, created by `create_cluster` at first use, so that `--help` needs none."""
        if self._cluster is None:
            self._cluster = self.create_cluster()
        return self._cluster

    @cluster.setter
    def cluster(self, cluster: Backend) -> None:
        self._cluster = cluster

    def add_subparser(self, name: str, aliases: Sequence[str] | None = None, **kw: Any) -> argparse.ArgumentParser:
        """Add a verb and return its parser, to which you add arguments.

        `symph NAME` calls the method ``action_<name>`` (``_`` for ``-``) with the parsed arguments; its docstring is
        the help. It may return an exit status. Raises ValueError if there is no such method.
        """
        action: Action | None = getattr(self, _method_name(name), None)
        if action is None:
            raise ValueError(f'verb "{name}" needs a method {_method_name(name)}(self, args)')
        text = " ".join((action.__doc__ or "").split())
        kw.setdefault("help", text)
        kw.setdefault("description", text)
        self._own.append(Verb(name, tuple(aliases or ()), str(kw["help"])))
        return self._add(name, tuple(aliases or ()), action, kw)

    def get_subparser(self, name: str) -> argparse.ArgumentParser:
        """Return the parser of a verb, to which you may add arguments and defaults. Raises KeyError if unknown."""
        verb = find_verb(name, self._all_verbs())
        if verb is None:
            raise KeyError(name)
        if verb.name not in self._parsers:
            self._load(verb)
        return self._parsers[verb.name]

    def add_dry_run(self, parser: argparse.ArgumentParser) -> None:
        cli_options.add_dry_run_like_symphony(parser)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run one command line and return its exit status; never raises for errors of the user or of programs.

        Without `argv` use the process's arguments and leave through SystemExit on failure, so that scripts that end in
        a bare ``MyProject().main()`` return the status, too.
        """
        words = sys.argv[1:] if argv is None else list(argv)
        status = status_of(lambda: self._run(words), lambda: self._args)
        if argv is None and status:
            raise SystemExit(status)
        return status

    def _add_experiment_name(
        self, parser: argparse.ArgumentParser, required: bool = True, positional: bool = True
    ) -> None:
        cli_options.add_experiment(parser, required=required and positional, positional=positional)

    def _add_component_arg(self, parser: argparse.ArgumentParser) -> None:
        cli_options.add_component(parser)

    def _get_experiment(self, args: argparse.Namespace) -> str | None:
        """Return the experiment that `args.experiment_name` loosely matches; None if it was not given.

        Raises NotFound if nothing fits, UsageError if several do and there is no terminal to ask on.
        """
        name = args.experiment_name
        if not name:
            return None
        matches, is_exact = self.cluster_for(args).fuzzy_match_experiment(name)
        return matches[0] if is_exact and matches else output.choose(matches, name, "experiment")

    @property
    def has_own_cluster(self) -> bool:
        """True if the project overrides `create_cluster`."""
        return type(self).create_cluster is not SymphonyParser.create_cluster

    def cluster_for(self, args: argparse.Namespace) -> Backend:
        """Return `cluster`, unless `--on` names another backend than the project's."""
        on = defaults.typed(args, "on")
        if on and self.has_own_cluster:
            return _new_cluster(on)
        self._args = args
        return self.cluster

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse one command line. Raises UsageError.

        Arguments after a lone ``--`` are args.remainder; args.has_remainder is True if there was one.
        """
        arguments.refuse_bytes(words)
        ours, remainder, has_remainder = arguments.split_remainder(words)
        self._is_help = not {"-h", "--help"}.isdisjoint(ours)
        self._prepare(ours)
        args = self.master_parser.parse_args(ours)
        self._args = args
        args.remainder, args.has_remainder, args.symphony = remainder, has_remainder, self
        output.set_up(is_quiet=args.quiet, color=args.color)
        return args

    def load_all(self) -> None:
        """Import every verb, for completion scripts and tests."""
        for verb in VERBS:
            self.get_subparser(verb.name)

    # From a command line to a call

    def _all_verbs(self) -> tuple[Verb, ...]:
        """Return the project's verbs, then the built-in ones without names that the project took, then plugins."""
        taken = {name for verb in self._own for name in verb.names}
        ours = (verb.without(taken) for verb in (*VERBS, *HIDDEN) if verb.name not in taken)
        return (*self._own, *ours, *self._plugins)

    def _add(
        self, name: str, aliases: tuple[str, ...], action: Action, options: dict[str, Any]
    ) -> argparse.ArgumentParser:
        parser = self.subparsers.add_parser(name, aliases=list(aliases), **options)
        cli_options.add_global_options(parser, is_verb=True)
        parser.set_defaults(func=action)
        self._parsers[name] = parser
        return parser

    def _load(self, verb: Verb) -> None:
        if isinstance(verb, Plugin):
            self._load_plugin(verb)
            return
        options = {"help": verb.summary, "description": f"{verb.summary[:1].upper()}{verb.summary[1:]}."}
        parser = self._add(verb.name, verb.aliases, self._action_for(verb), options)
        with _Lazily(), _uninterrupted():
            _function_of(verb, "configure")(parser)
        defaults.name_variables(parser)
        if not self._is_help:
            defaults.fill_in(parser, _configured)

    def _load_plugin(self, verb: Plugin) -> None:
        assert verb.entry is not None  # noqa: S101 - programs have no parser
        module: Any = verb.entry.load()
        text = " ".join((module.__doc__ or verb.summary).split())
        parser = self._add(verb.name, (), module.run, {"help": text, "description": text})
        module.configure(parser)

    def _action_for(self, verb: Verb) -> Action:
        """Return the method of a verb: a project's override under any of the verb's names, else the built-in one."""
        for name in map(_method_name, verb.names):
            if getattr(type(self), name) is not getattr(SymphonyParser, name):
                break
        else:
            name = _method_name(verb.name)
        action: Action = getattr(self, name)
        return action

    def _run(self, words: list[str]) -> int:
        is_other = bool(words) and find_verb(words[0], self._all_verbs()) is None
        if is_other and plugins.find_plugin(words[0]) is None and (program := plugins.find_program(words[0])):
            plugins.become(program, words[1:])
        args = self.parse(words)
        if args.show_version:
            sys.stdout.write(f"symphony-charts {__version__}\n")
            return 0
        if args.action is None:
            self.master_parser.print_help(sys.stderr)
            return 2
        given = tuple(args.remainder) if args.has_remainder else None
        with launching(Launcher(around=symphonys_names, words=given, tell=output.note)):
            status = args.func(args)
        return status if isinstance(status, int) else 0

    def _prepare(self, words: list[str]) -> None:
        """Load only the verb that was typed; refuse an unknown one."""
        verbs = self._all_verbs()
        plain = arguments.plain_words(words)
        if plain and find_verb(plain[0], verbs) is None:
            if plugin := plugins.find_plugin(plain[0]):
                self._plugins.append(plugin)
            elif plain[0] == words[0]:
                arguments.refuse_verb(self.master_parser.prog, plain[0], verbs)
        verb = next((word for word in plain if find_verb(word, self._all_verbs())), None)
        if verb is not None:
            self.get_subparser(verb)


class Symph(SymphonyParser):
    """The installed command: SymphonyParser under the fixed name `symph`."""

    prog = "symph"


def _configured() -> Mapping[str, defaults.Default]:
    """Return the options that settings files set. The files are read only if an option is set in one."""
    if not import_module("symphony_charts.settings.places").says_defaults():
        return {}
    said: Mapping[str, tuple[str, str]] = import_module("symphony_charts.settings.project").default_options()
    return {option: defaults.Default(value, file) for option, (value, file) in said.items()}


def _new_cluster(backend: str) -> Backend:
    cluster: Backend = import_module("symphony_charts.clusters.base").Cluster.new(backend)
    return cluster
