"""`symph import`: jobs of other tools as experiments, with a report of what did not come over."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.commands.study import runopts
from symphony_charts.errors import CheckFailed, SpecError, UsageError
from symphony_charts.formats.yaml_text import dump
from symphony_charts.importers.common.hardening import of_our_defaults
from symphony_charts.importers.common.input_file import Source, from_data, read
from symphony_charts.importers.common.report import Imported, Log
from symphony_charts.importers.compose.importer import ComposeContext, import_compose
from symphony_charts.importers.compose.interpolation import parse_env_file
from symphony_charts.importers.dijob.importer import import_dijob
from symphony_charts.importers.symphony.importer import import_legacy
from symphony_charts.importers.torchx.components import load_appdef
from symphony_charts.importers.torchx.importer import appdef_of, import_torchx
from symphony_charts.importers.torchx.objects import NO_VOLCANO, app_wrapper
from symphony_charts.importers.torchx.options import parse_cfg
from symphony_charts.spec.data import to_data, to_json, to_yaml
from symphony_charts.system.files import write_file

__all__ = ["run"]

# Of what a compose file mounts: enough for configuration, and no data.
_MOST_FILES, _MOST_BYTES = 200, 65_536
_STRICT = "change the input, or go without --strict"


def run(args: argparse.Namespace) -> int:
    """Read the input, print or write the experiment, and report on stderr; a loss under `--strict` writes nothing."""
    if args.format == "runopts":
        return runopts.run(args)
    if args.format == "torchx" and args.compat:
        return _print_objects(args)

    imported = _import(args)
    report = imported.report
    is_refused = args.strict and bool(report.lost)
    if args.output in ("json", "yaml"):
        output.print_record(args, "Import", {"experiment": to_data(imported.experiment), "report": report.data()})
    elif not is_refused:
        _write(args, imported)
    output.note(_title(args, imported))
    output.print_report(report)
    if is_refused:
        raise CheckFailed(f"{len(report.lost)} things of {args.source} are lost, so nothing was written", next=_STRICT)
    if args.file and not args.output and not args.dry_run:
        output.next_step(f"symph up {args.file} (here)", f"symph package {args.file}")
    return 0


def _import(args: argparse.Namespace) -> Imported:
    """What was imported, its notes with file and line."""
    source = _source(args)
    try:
        imported = _dispatch(args, source)
    except SpecError as error:
        raise source.with_location(error) from error
    report = source.located(imported.report)
    return imported.with_report(replace(report, notes=(*report.notes, *of_our_defaults(imported.experiment))))


def _print_objects(args: argparse.Namespace) -> int:
    """Print the objects that TorchX itself would make."""
    if not args.app_id:
        raise UsageError("TorchX's objects carry an app id, which it makes at random", next="give --app-id ID")
    if args.kind not in ("", "appwrapper"):
        raise UsageError(f"--compat torchx makes AppWrappers, not objects of kind {args.kind}", next=NO_VOLCANO)
    source, log = _source(args), Log()
    try:
        app, options = appdef_of(source, log)
        options = parse_cfg(args.cfg, log) if args.cfg else options
        log.raise_faults()
        rendered = app_wrapper(app, options, args.app_id)
    except SpecError as error:
        raise source.with_location(error) from error
    if args.output == "json":
        sys.stdout.write(json.dumps(rendered, indent=2) + "\n")
    else:
        sys.stdout.write(dump(rendered))
    return 0


def _source(args: argparse.Namespace) -> Source:
    """The input, read."""
    component = args.format == "torchx" and _is_component(args.source)
    if component:
        return from_data(load_appdef(args.source, _remainder(args)), args.source)
    if _remainder(args):
        raise UsageError("arguments after `--` are for TorchX components", next="drop them")
    return _read(args.source, is_legacy=args.format == "symphony")


def _dispatch(args: argparse.Namespace, source: Source) -> Imported:
    if hasattr(args, "importer"):
        imported: Imported = args.importer.run(source, args)
        return imported
    if args.format == "torchx":
        return import_torchx(source, args.cfg, args.kind)
    if args.format == "dijob":
        return import_dijob(source, args.job, args.kind or "dijob")
    if args.format == "compose":
        return _compose(args, source)

    return import_legacy(source)


def _compose(args: argparse.Namespace, source: Source) -> Imported:
    folder = Path.cwd() if args.source == "-" else Path(args.source).absolute().parent

    def read_text(name: str) -> str | None:
        try:
            return (folder / Path(name).expanduser()).read_text("utf-8")
        except (OSError, UnicodeError, ValueError, RuntimeError):
            return None  # the importer says which name could not be read, and where it stands

    def texts_below(name: str) -> list[str]:
        try:
            found = islice((path for path in (folder / name).rglob("*") if path.is_file()), _MOST_FILES)
            paths = [folder / name] if (folder / name).is_file() else sorted(found)
            small = [str(path) for path in paths if path.stat().st_size <= _MOST_BYTES]
        except (OSError, ValueError):
            return []
        return [text for path in small if (text := read_text(path)) is not None]

    texts = [_read_text(name) for name in args.env_file] or [read_text(".env") or ""]
    variables = {name: value for text in texts for name, value in parse_env_file(text).items()}
    context = ComposeContext(
        name=args.name or folder.name or "compose",
        folder=str(folder),
        variables=variables,
        profiles=args.profile,
        images=_images(args.image),
        read_text=read_text,
        texts_below=texts_below,
        is_there=os.path.lexists,
        home=os.path.expanduser("~"),  # noqa: PTH111 - Path.home raises where there is none
    )
    return import_compose(source, context)


def _images(given: list[str]) -> dict[str, str]:
    """The images by service."""
    images: dict[str, str] = {}
    for text in given:
        service, equals, image = text.partition("=")
        if not (service and equals and image):
            raise UsageError(f'--image takes SERVICE=IMAGE, got "{text}"', next="for example: --image web=host/web:1")
        images[service] = image
    return images


def _read_text(name: str) -> str:
    try:
        return Path(name).read_text("utf-8")
    except OSError as error:
        raise SpecError.one(
            f"cannot read {name}: {error.strerror or error}", name, "give a file that is there"
        ) from error
    except UnicodeError as error:
        raise SpecError.one(f"{name} is not UTF-8 text", next="save it as UTF-8") from error


def _is_component(text: str) -> bool:
    """Whether `text` names a TorchX component rather than a file."""
    return text != "-" and not Path(text).is_file() and not text.endswith((".json", ".yaml", ".yml"))


def _remainder(args: argparse.Namespace) -> list[str]:
    return list(getattr(args, "remainder", None) or [])


def _read(name: str, *, is_legacy: bool) -> Source:
    if name == "-":
        return read(sys.stdin.buffer.read(), "stdin", python_tags=is_legacy)
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise SpecError.one(
            f"cannot read {name}: {error.strerror or error}", name, "give a file that is there"
        ) from error
    return read(content, name, python_tags=is_legacy)


def _write(args: argparse.Namespace, imported: Imported) -> None:
    """Write the experiment to the file that was named, or to stdout; nothing in a dry run."""
    if args.dry_run:
        if args.file:
            output.note(f"would write {args.file}")
        return
    text = to_json(imported.experiment) if args.file.endswith(".json") else to_yaml(imported.experiment)
    if not args.file:
        output.line(text.rstrip("\n"))
        return
    has_changed = write_file(Path(args.file), text.encode())
    output.note(f"{'wrote' if has_changed else 'unchanged:'} {args.file}")


def _title(args: argparse.Namespace, imported: Imported) -> str:
    """What was made, and of what."""
    experiment = imported.experiment
    pods = sum(one.replicas for one in (*experiment.processes.values(), *experiment.groups.values()))
    count = len(experiment.processes) + sum(len(group.processes) for group in experiment.groups.values())
    configs = output.counted(len(experiment.configs), "config")
    holds = f"{output.counted(count, 'process')} in {output.counted(pods, 'pod')}, {configs}"
    return f"{experiment.name}   {holds}   from {args.source}"
