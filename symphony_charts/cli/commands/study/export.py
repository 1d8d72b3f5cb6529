"""`symph export`: an experiment in the format of another tool, printed or written."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.commands.study.export_formats import Exported, exported
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.formats.yaml_text import dump_all
from symphony_charts.importers.common.report import Report
from symphony_charts.spec import files as specfile
from symphony_charts.system.files import write_file, write_tree

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print or write the experiment in the chosen format, and say on stderr what did not come over as it is."""
    made = exported(args.format, specfile.read(args.spec, args.spec_set), args)
    report = Report(notes=made.notes)
    is_refused = args.strict and bool(report.lost)
    if not is_refused and made.files:
        _write_folder(args, made)
    elif not is_refused:
        _write_objects(args, made)
    output.print_report(report)
    if is_refused:
        what = f"{len(report.lost)} things of {args.spec} are lost, so nothing was written"
        raise CheckFailed(what, next="change the experiment, or go without --strict")
    return 0


def _write_objects(args: argparse.Namespace, made: Exported) -> None:
    text = _text(args.output, made)
    if args.dry_run:
        output.note(f"would write {len(made.objects)} objects" + ("" if args.file == "-" else f" to {args.file}"))
    elif args.file == "-":
        sys.stdout.write(text)
    else:
        has_changed = write_file(Path(args.file), text.encode())
        output.note(f"{'wrote' if has_changed else 'unchanged:'} {args.file}")


def _text(form: str, made: Exported) -> str:
    if form == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": list(made.objects)}
        return json.dumps(made.objects[0] if len(made.objects) == 1 else document, indent=2) + "\n"

    return dump_all(made.objects)


def _write_folder(args: argparse.Namespace, made: Exported) -> None:
    if args.file == "-":
        raise UsageError(f"{args.format} is a folder of {len(made.files)} files", next="give one: -f FOLDER")
    if args.dry_run:
        output.note(f"would write {len(made.files)} files below {args.file}")
        return
    changed = write_tree(Path(args.file), made.files)
    output.note(f"wrote {len(changed)} of {len(made.files)} files below {args.file}; the others are unchanged")
