"""`symph import` and its DIJob options."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

from symphony_charts.cli import options, output
from symphony_charts.errors import CheckFailed, SpecError, UsageError
from symphony_charts.formats import yaml_write
from symphony_charts.importers.common import hardening, input_file
from symphony_charts.importers.common import report as import_report
from symphony_charts.importers.compose import importer, interpolation
from symphony_charts.importers.dijob import importer as dijob_importer
from symphony_charts.importers.symphony import importer as symphony_importer
from symphony_charts.importers.torchx import components, objects, option_table
from symphony_charts.importers.torchx import importer as torchx_importer
from symphony_charts.importers.torchx import options as torchx_options
from symphony_charts.spec import data
from symphony_charts.system import files
from symphony_charts.system.entry_points import entry_points


def configure_runopts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scheduler",
        nargs="?",
        metavar="SCHEDULER",
        choices=("kubernetes_mcad", "kubernetes", "symph"),
        help="only the options of this one (kubernetes_mcad, kubernetes, symph)",
    )
    options.add_output(parser)
    options.add_examples(
        parser,
        "symph import runopts",
        "symph import runopts kubernetes_mcad -o wide",
        "symph import torchx app.json --cfg namespace=ml,coscheduler_name=gang,priority=5",
    )


def configure(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name, (add_options, summary, examples) in FORMATS.items():
        one = formats.add_parser(name, help=summary, description=f"Import {summary}.")
        _add_source(one)
        add_options(one)
        options.add_examples(one, *examples)
    for name, added in entry_points("symph.importers").items():
        module = added.load()
        text = " ".join((module.__doc__ or f"by {added.package}").split())
        one = formats.add_parser(name, help=text, description=text)
        _add_source(one)
        one.set_defaults(importer=module)
        if hasattr(module, "configure"):
            module.configure(one)
    listed = formats.add_parser("runopts", help="list TorchX's run options and what they become; import nothing")
    configure_runopts(listed)
    options.add_examples(parser, *(example for _, _, examples in FORMATS.values() for example in examples[:1]))


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the file; `-` is stdin")
    parser.add_argument(
        "--to", dest="file", metavar="FILE", default="", help="write the experiment to it, not to stdout"
    )
    parser.add_argument(
        "-o", "--output", choices=("json", "yaml"), default="", help="print the experiment with the report"
    )
    parser.add_argument("--strict", action="store_true", help="fail (1) and write nothing if anything is lost")
    options.add_dry_run(parser, "report what would be written and write nothing")


def _add_torchx(parser: argparse.ArgumentParser) -> None:
    source = next(action for action in parser._actions if action.dest == "source")
    source.help = "the file (`-` is stdin), module:component, or a component's name"
    parser.add_argument("--cfg", default="", metavar="K=V,...", help="run options, as `torchx run -cfg`")
    _add_kind(parser)
    group = parser.add_argument_group("TorchX's own objects")
    group.add_argument("--compat", choices=("torchx",), help="print the AppWrapper that its scheduler makes")
    group.add_argument("--app-id", default="", metavar="ID", help="the app id of those objects")


def _add_dijob(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", default="", metavar="NAME", help="the one to import out of several")
    _add_kind(parser)


def _add_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", default="", metavar="KIND", help="workload kind of the result")


def _add_compose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", action="append", default=[], metavar="NAME", help="include this profile")
    parser.add_argument("--env-file", action="append", default=[], metavar="FILE", help="variables (default: .env)")
    parser.add_argument("--name", default="", help="name of the experiment (default: the file's, or its folder)")
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="SERVICE=IMAGE",
        help="the image of a service, as of one that is built; may be repeated",
    )


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """A recording of Symphony says all by itself."""


# What stands in front of each format: what adds the options that it alone has, one line of help, and examples.
FORMATS = {
    "torchx": (
        _add_torchx,
        "a TorchX AppDef or component",
        (
            "symph import torchx app.json --to experiment.yaml --cfg namespace=ml,queue=batch",
            "symph import torchx my.components:trainer -- --nodes 4",
        ),
    ),
    "dijob": (_add_dijob, "a DIJob", ("symph import dijob dijob-qbert.yaml --kind jobset > experiment.yaml",)),
    "compose": (
        _add_compose,
        "a docker compose file",
        (
            "symph import compose compose.yaml --profile train",
            "symph import compose compose.yaml --image web=registry.example.org/web:1 --to experiment.yaml",
        ),
    ),
    "symphony": (
        _add_nothing,
        "an experiment that Symphony saved",
        ("symph import symphony experiment.yml --to experiment.yaml",),
    ),
}


def run_runopts(args: argparse.Namespace) -> int:
    """Print the options as a table."""
    every = (*option_table.SCHEDULER_OPTIONS, *option_table.OPTIONS)
    chosen = [option for option in every if args.scheduler in (None, "symph", *option.schedulers)]
    items = [
        {
            "name": option.name,
            "type": option.type,
            "default": option.default,
            "becomes": option.becomes,
            "schedulers": list(option.schedulers),
            "help": option.help,
        }
        for option in chosen
    ]
    columns = (
        output.Column("OPTION", "name"),
        output.Column("TYPE", "type"),
        output.Column("DEFAULT", "default"),
        output.Column("BECOMES", "becomes"),
        output.Column("TORCHX SCHEDULERS", lambda item: ", ".join(output.texts(item["schedulers"])), is_wide=True),
        output.Column("MEANING", "help"),
    )
    output.print_items(args, "RunOption", items, columns)
    return 0


# Of what a compose file mounts: enough for configuration, and no data.
_MOST_FILES, _MOST_BYTES = 200, 65_536
_STRICT = "change the input, or go without --strict"


def run(args: argparse.Namespace) -> int:
    """Read the input, print or write the experiment, and report on stderr; a loss under `--strict` writes nothing."""
    if args.format == "runopts":
        return run_runopts(args)
    if args.format == "torchx" and args.compat:
        return _print_objects(args)

    imported = _import(args)
    report = imported.report
    is_refused = args.strict and bool(report.lost)
    if args.output in ("json", "yaml"):
        output.print_record(args, "Import", {"experiment": data.to_data(imported.experiment), "report": report.data()})
    elif not is_refused:
        _write(args, imported)
    output.note(_title(args, imported))
    output.print_report(report)
    if is_refused:
        raise CheckFailed(f"{len(report.lost)} things of {args.source} are lost, so nothing was written", next=_STRICT)
    if args.file and not args.output and not args.dry_run:
        output.next_step(f"symph up {args.file} (here)", f"symph package {args.file}")
    return 0


def _import(args: argparse.Namespace) -> import_report.Imported:
    source = _source(args)
    try:
        imported = _dispatch(args, source)
    except SpecError as error:
        raise source.with_location(error) from error
    report = source.located(imported.report)
    return imported.with_report(replace(report, notes=(*report.notes, *hardening.of_our_defaults(imported.experiment))))


def _print_objects(args: argparse.Namespace) -> int:
    """Print the objects that TorchX itself would make."""
    if not args.app_id:
        raise UsageError("TorchX's objects carry an app id, which it makes at random", next="give --app-id ID")
    if args.kind not in ("", "appwrapper"):
        raise UsageError(f"--compat torchx makes AppWrappers, not objects of kind {args.kind}", next=objects.NO_VOLCANO)
    source, log = _source(args), import_report.Log()
    try:
        app, options = torchx_importer.appdef_of(source, log)
        options = torchx_options.parse_cfg(args.cfg, log) if args.cfg else options
        log.raise_faults()
        rendered = objects.app_wrapper(app, options, args.app_id)
    except SpecError as error:
        raise source.with_location(error) from error
    if args.output == "json":
        sys.stdout.write(json.dumps(rendered, indent=2) + "\n")
    else:
        sys.stdout.write(yaml_write.dump(rendered))
    return 0


def _source(args: argparse.Namespace) -> input_file.Source:
    component = args.format == "torchx" and _is_component(args.source)
    if component:
        return input_file.from_data(components.load_appdef(args.source, _remainder(args)), args.source)
    if _remainder(args):
        raise UsageError("arguments after `--` are for TorchX components", next="drop them")
    return _read(args.source, is_legacy=args.format == "symphony")


def _dispatch(args: argparse.Namespace, source: input_file.Source) -> import_report.Imported:
    if hasattr(args, "importer"):
        imported: import_report.Imported = args.importer.run(source, args)
        return imported
    if args.format == "torchx":
        return torchx_importer.import_torchx(source, args.cfg, args.kind)
    if args.format == "dijob":
        return dijob_importer.import_dijob(source, args.job, args.kind or "dijob")
    if args.format == "compose":
        return _compose(args, source)

    return symphony_importer.import_legacy(source)


def _compose(args: argparse.Namespace, source: input_file.Source) -> import_report.Imported:
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
    variables = {name: value for text in texts for name, value in interpolation.parse_env_file(text).items()}
    context = importer.ComposeContext(
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
    return importer.import_compose(source, context)


def _images(given: list[str]) -> dict[str, str]:
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
    return text != "-" and not Path(text).is_file() and not text.endswith((".json", ".yaml", ".yml"))


def _remainder(args: argparse.Namespace) -> list[str]:
    return list(getattr(args, "remainder", None) or [])


def _read(name: str, *, is_legacy: bool) -> input_file.Source:
    if name == "-":
        return input_file.read(sys.stdin.buffer.read(), "stdin", python_tags=is_legacy)
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise SpecError.one(
            f"cannot read {name}: {error.strerror or error}", name, "give a file that is there"
        ) from error
    return input_file.read(content, name, python_tags=is_legacy)


def _write(args: argparse.Namespace, imported: import_report.Imported) -> None:
    if args.dry_run:
        if args.file:
            output.note(f"would write {args.file}")
        return
    text = data.to_json(imported.experiment) if args.file.endswith(".json") else data.to_yaml(imported.experiment)
    if not args.file:
        output.line(text.rstrip("\n"))
        return
    has_changed = files.write_file(Path(args.file), text.encode())
    output.note(f"{'wrote' if has_changed else 'unchanged:'} {args.file}")


def _title(args: argparse.Namespace, imported: import_report.Imported) -> str:
    experiment = imported.experiment
    pods = sum(one.replicas for one in (*experiment.processes.values(), *experiment.groups.values()))
    count = len(experiment.processes) + sum(len(group.processes) for group in experiment.groups.values())
    configs = output.counted(len(experiment.configs), "config")
    holds = f"{output.counted(count, 'process')} in {output.counted(pods, 'pod')}, {configs}"
    return f"{experiment.name}   {holds}   from {args.source}"
