"""`symph config` and `symph use`: the settings and the experiment that verbs use."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from symphony_charts.backend import protocol
from symphony_charts.cli import experiments, options, output
from symphony_charts.cli.defaults import VARIABLES
from symphony_charts.errors import NotFound
from symphony_charts.settings import places, project, user
from symphony_charts.system import user_folders


def configure_config(parser: argparse.ArgumentParser) -> None:
    text = "only this setting, and those below it: team, defaults.namespace, environments.dev"
    parser.add_argument("key", metavar="KEY", nargs="?", default="", help=text)
    options.add_output(parser)
    options.add_examples(parser, "symph config", "symph config environments.dev", "symph config defaults -o json")


Row = dict[str, object]
_BUILT_IN = "built-in"


def run_config(args: argparse.Namespace) -> int:
    """Print the settings by name. Raises NotFound for a key that nothing sets."""
    folder = Path.cwd()
    every = {str(row["name"]): row for row in _rows(folder)}
    rows = [row for name, row in every.items() if not args.key or f"{name}.".startswith(f"{args.key}.")]
    if args.key and not rows:
        raise NotFound(f'nothing sets "{args.key}"', next=f"what is set: {', '.join(every)}")
    columns = [output.Column("SETTING", "name"), output.Column("VALUE", "value"), output.Column("FROM", _short)]
    output.print_items(args, "Setting", rows, columns)
    own = places.user_file()
    if not args.key and own is not None and not own.is_file():
        output.note(f"your own settings would be in {own}")
    return 0


def _short(row: Mapping[str, object]) -> str:
    source = str(row["source"])
    for folder, name in ((Path.cwd(), ""), (Path("~").expanduser(), "~/")):
        if Path(source).is_absolute() and Path(source).is_relative_to(folder):
            return f"{name}{Path(source).relative_to(folder)}"
    return source


def _rows(folder: Path) -> Iterator[Row]:
    """Yield a row per setting that has a value; later rows override earlier ones."""
    yield _row("defaults.on", "tmux", _BUILT_IN)
    yield _row("defaults.output", "table", _BUILT_IN)
    layers = project.settings_files(folder)
    together = project.find_settings(folder)
    for key in project.Settings.__struct_fields__:
        value = msgspec.to_builtins(getattr(together, key)) if key != "path" else None
        owner = next((layer for layer in layers if getattr(layer, key) != getattr(project.Settings(), key)), None)
        if owner is not None and key not in ("path", "defaults"):
            yield from _flat(key, value, str(owner.path))
    for layer in reversed(layers):
        yield from _flat("defaults", layer.defaults.given, str(layer.path))
    for option, variable in VARIABLES.items():
        if os.environ.get(variable):
            yield from _of_environment(option, os.environ[variable], variable)
    yield from _of_symphony()
    for name, path in (("state_dir", user_folders.state_dir()), ("runtime_dir", user_folders.runtime_dir())):
        variable = f"SYMPH_{name.upper()}"
        yield _row(name, str(path), f"${variable}" if os.environ.get(variable) else _BUILT_IN)


def _of_environment(option: str, value: str, variable: str) -> Iterator[Row]:
    if option != "repo":
        yield _row(f"defaults.{option}", value, f"${variable}")
        return
    url, _, branch = value.partition("#")
    # Repository refuses a URL with a password, so that it is not printed.
    yield _row("repository.url", project.Repository(url=url).url, f"${variable}")
    yield _row("repository.branch", branch or "main", f"${variable}")


def _of_symphony() -> Iterator[Row]:
    file = user.find_config_file()
    config = user.SymphonyConfig()
    for name in ("username", "experiment_folder"):
        value = getattr(config, name)
        if value is not None and file is not None:
            yield _row(name, str(value), str(file))


def _flat(name: str, value: object, source: str) -> Iterator[Row]:
    """Yield the leaves of a value, each under its path; skip empty ones."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _flat(f"{name}.{key}", below, source)
    elif value not in (None, "", []):
        yield _row(name, value, source)


def _row(name: str, value: object, source: str) -> Row:
    return {"name": name, "value": value, "source": source}


def configure_use(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_force(parser, "accept the name even if no such experiment runs")
    options.add_backend(parser)
    options.add_examples(parser, "symph use rl", "symph use", "symph use rl --on kube")


def run_use(args: argparse.Namespace) -> int:
    """Set the current experiment, or print it. The kubeconfig is not changed."""
    watcher = experiments.watcher_of(args)
    if args.experiment_name is None:
        output.line(experiments.find_experiment(args, watcher))
        return 0
    name = args.experiment_name if args.force else experiments.find_experiment(args, watcher)
    protocol.set_current(watcher.place, name)
    output.line(name)
    return 0
