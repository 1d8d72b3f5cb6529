"""`symph export`: an experiment in the format of another tool.

A format is one module of this package with two functions: ``configure(parser)`` adds the options that it alone has, and
``export(spec, args)`` gives what it makes of the experiment. To add a format, write the module and add one row.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from typing import cast

from symphony_charts.cli import output
from symphony_charts.cli.options import common

__all__ = ["FORMATS", "configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.cli.commands.write.exported import Exported

# format -> its module below `symphony_charts.cli`, one line of help
FORMATS: dict[str, tuple[str, str]] = {
    "appwrapper": ("export_appwrapper", "one AppWrapper with all that runs, for kubectl and CodeFlare"),
    "dijob": ("export_dijob", "a DIJob with its configuration, for kubectl and DI-orchestrator"),
    "kustomize": ("export_kustomize", "a folder that kubectl kustomize builds to the chart's objects"),
    "manifests": ("export_manifests", "the chart's objects as one stream, for kubectl apply"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph export`."""
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name, (module, summary) in FORMATS.items():
        one = formats.add_parser(name, help=summary, description=f"Export {summary}.")
        common.add_specs(one, many=False)
        one.add_argument(
            "--to",
            "--file",
            dest="file",
            metavar="FILE|-",
            default="-",
            help="where it goes; a folder for several files (-: stdout)",
        )
        common.add_output(one, ("yaml", "json"), default="yaml", headers=False)
        one.add_argument("--strict", action="store_true", help="fail (1) if anything does not come over as it is")
        common.add_dry_run(one, "say what would be written and write nothing")
        import_module(f"symphony_charts.cli.commands.write.{module}").configure(one)
    common.add_examples(
        parser,
        "symph export appwrapper experiment.yaml --to appwrapper.yaml",
        "symph export manifests experiment.yaml -n rl | kubectl apply -f -",
        "symph export kustomize experiment.yaml --to base/",
        "symph export dijob experiment.yaml --operator v1.1 | kubectl create -f -",
        "symph export appwrapper experiment.yaml --set groups.agent.replicas=32 | kubectl apply -f -",
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the experiment in the chosen format, and say on stderr what did not come over as it is."""
    from symphony_charts.spec import files as specfile

    module = import_module(f"symphony_charts.cli.commands.write.{FORMATS[args.format][0]}")
    exported = cast("Exported", module.export(specfile.read(args.spec), args))
    if exported.files:
        _write_folder(args, exported)
    else:
        _write_objects(args, exported)
    for note in exported.notes:
        output.note(f"note: {note.what}\n  at:   {note.path}" + (f"\n  next: {note.next}" if note.next else ""))
    return 1 if args.strict and exported.notes else 0


def _write_objects(args: argparse.Namespace, exported: Exported) -> None:
    from pathlib import Path

    from symphony_charts.system.files import write_file

    text = _text(args.output, exported)
    if args.dry_run:
        output.note(f"would write {len(exported.objects)} objects" + ("" if args.file == "-" else f" to {args.file}"))
    elif args.file == "-":
        sys.stdout.write(text)
    else:
        has_changed = write_file(Path(args.file), text.encode())
        output.note(f"{'wrote' if has_changed else 'unchanged:'} {args.file}")


def _text(form: str, exported: Exported) -> str:
    if form == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": list(exported.objects)}
        return json.dumps(exported.objects[0] if len(exported.objects) == 1 else document, indent=2) + "\n"
    from symphony_charts.formats.yaml_text import dump_all

    return dump_all(exported.objects)


def _write_folder(args: argparse.Namespace, exported: Exported) -> None:
    from pathlib import Path

    from symphony_charts.errors import UsageError
    from symphony_charts.system.files import write_tree

    if args.file == "-":
        raise UsageError(f"{args.format} is a folder of {len(exported.files)} files", next="give one: -f FOLDER")
    if args.dry_run:
        output.note(f"would write {len(exported.files)} files below {args.file}")
        return
    changed = write_tree(Path(args.file), exported.files)
    output.note(f"wrote {len(changed)} of {len(exported.files)} files below {args.file}; the others are unchanged")
