"""`symph import`: jobs of other tools as experiments, with a report of what did not come over."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from symphony_charts.cli import output
from symphony_charts.errors import CheckFailed, SpecError, UsageError
from symphony_charts.formats.yaml_text import dump
from symphony_charts.importers.common.hardening import of_our_defaults
from symphony_charts.importers.common.input_file import Source, from_data, read
from symphony_charts.importers.common.report import Imported
from symphony_charts.spec.data import to_data, to_json, to_yaml
from symphony_charts.system.files import write_file

__all__ = ["run"]

_STRICT = "change the input, or go without --strict"


def run(args: argparse.Namespace) -> int:
    """Read the input, print or write the experiment, and report on stderr; a loss under `--strict` writes nothing."""
    importer = args.importer
    if hasattr(importer, "main"):
        return int(importer.main(args))
    source = _source(args, importer)
    try:
        document = importer.document(source, args) if hasattr(importer, "document") else None
        if document is not None:
            sys.stdout.write(json.dumps(document, indent=2) + "\n" if args.output == "json" else dump(document))
            return 0
        imported: Imported = importer.run(source, args)
    except SpecError as error:
        raise source.with_location(error) from error
    report = source.located(imported.report)
    report = replace(report, notes=(*report.notes, *of_our_defaults(imported.experiment)))
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


def _source(args: argparse.Namespace, importer: Any) -> Source:
    words = list(getattr(args, "remainder", None) or [])
    data = importer.made_data(args, words) if hasattr(importer, "made_data") else None
    if data is not None:
        return from_data(data, args.source)
    if words:
        raise UsageError("arguments after `--` are for TorchX components", next="drop them")
    return _read(args.source, has_python_tags=getattr(importer, "HAS_PYTHON_TAGS", False))


def _read(name: str, *, has_python_tags: bool) -> Source:
    if name == "-":
        return read(sys.stdin.buffer.read(), "stdin", python_tags=has_python_tags)
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise SpecError.one(
            f"cannot read {name}: {error.strerror or error}", name, "give a file that is there"
        ) from error
    return read(content, name, python_tags=has_python_tags)


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
