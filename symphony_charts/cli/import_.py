"""`symph import`: convert jobs of other tools into experiments, and report losses."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from symphony_charts.cli import options, output
from symphony_charts.errors import CheckFailed, SpecError, UsageError
from symphony_charts.importers import hardening, input_file
from symphony_charts.importers import report as importers_report
from symphony_charts.local.plan import replicas
from symphony_charts.spec import data as spec_data
from symphony_charts.spec import environment, pods
from symphony_charts.spec import files as spec_files
from symphony_charts.system import files
from symphony_charts.system.launching import entry_points


def configure(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    examples: list[str] = []
    for name, entry in entry_points("symph.importers").items():
        module: Any = entry.load()
        summary = getattr(module, "SUMMARY", "") or " ".join((module.__doc__ or f"by {entry.package}").split())
        text = f"Import {summary}." if hasattr(module, "SUMMARY") else summary
        one = formats.add_parser(name, help=summary, description=None if hasattr(module, "main") else text)
        one.set_defaults(importer=module)
        if not hasattr(module, "main"):
            one.add_argument("source", metavar="SOURCE", help="the file; `-` is stdin")
            text = "write the experiment to it, not to stdout"
            one.add_argument("--to", dest="file", metavar="FILE", default="", help=text)
            text = "print the experiment with the report"
            one.add_argument("-o", "--output", choices=("json", "yaml"), default="", help=text)
            options.add_flag(one, "--strict", help="fail (1) and write nothing if anything is lost")
            options.add_dry_run(one, "report what would be written and write nothing")
        if hasattr(module, "configure"):
            module.configure(one)
        if own := getattr(module, "EXAMPLES", ()):
            options.add_examples(one, *own)
            examples.append(own[0])
    options.add_examples(parser, *examples)


def run(args: argparse.Namespace) -> int:
    """Read the input, print or write the experiment, and report on stderr; with `--strict`, a loss prevents writing."""
    importer = args.importer
    if hasattr(importer, "main"):
        return int(importer.main(args))
    source = _source(args, importer)
    try:
        document = importer.document(source, args) if hasattr(importer, "document") else None
        if document is not None:
            output.print_document(document, args.output or "yaml")
            return 0
        imported: importers_report.Imported = importer.run(source, args)
    except SpecError as error:
        raise _other_format(args, source) or source.with_location(error) from error
    report = source.located(imported.report)
    report = replace(report, notes=(*report.notes, *hardening.of_our_defaults(imported.experiment)))
    is_refused = args.strict and bool(report.lost)
    if args.output in ("json", "yaml"):
        output.print_record(
            args, "Import", {"experiment": spec_data.to_data(imported.experiment), "report": report.data()}
        )
    if not is_refused and (args.file or not args.output):
        _write(args, imported)
    output.note(_title(args, imported))
    output.print_report(report)
    if is_refused:
        what = f"{len(report.lost)} things of {args.source} are lost, so nothing was written"
        raise CheckFailed(what, next="change the input, or go without --strict")
    if args.file and not args.output and not args.dry_run:
        here = [f"symph up {args.file} (here)"] if _runs_here(imported) else []
        output.next_step(*here, f"symph package {args.file}")
    return 0


def _runs_here(imported: importers_report.Imported) -> bool:
    """Return True if every process sets its command, so that it runs without its image."""
    processes = [replicas.local_process(process) for _, process in pods.processes_of(imported.experiment)]
    return all(environment.entry_point(process).command for process in processes)


def _source(args: argparse.Namespace, importer: Any) -> input_file.Source:
    words = list(getattr(args, "remainder", None) or [])
    data = importer.made_data(args, words) if hasattr(importer, "made_data") else None
    if data is not None:
        return input_file.from_data(data, args.source)
    if words:
        raise UsageError("arguments after `--` are for TorchX components", next="drop them")
    name = args.source
    dialect = {
        "python_tags": getattr(importer, "HAS_PYTHON_TAGS", False),
        "is_compose": getattr(importer, "IS_COMPOSE", False),
    }
    if name == "-":
        return input_file.read(sys.stdin.buffer.read(), "stdin", **dialect)
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        what = f"cannot read {name}: {error.strerror or error}"
        raise SpecError.one(what, name, "give a file that exists") from error
    return input_file.read(content, name, **dialect)


def _other_format(args: argparse.Namespace, source: input_file.Source) -> SpecError | None:
    """Return an error if the input has the format of another tool; None otherwise."""
    fault = spec_files.mistaken_for(Path(args.source), source.text)
    is_own = fault is not None and ("a Kubernetes manifest" in fault.what or f"import {args.format} " in fault.next)
    return None if is_own else fault


def _write(args: argparse.Namespace, imported: importers_report.Imported) -> None:
    if args.dry_run:
        if args.file:
            output.note(f"would write {args.file}")
        return
    text = (spec_data.to_json if args.file.endswith(".json") else spec_data.to_yaml)(imported.experiment)
    if not args.file:
        output.line(text.rstrip("\n"))
        return
    has_changed = files.write_file(Path(args.file), text.encode())
    output.note(f"{'wrote' if has_changed else 'unchanged:'} {args.file}")


def _title(args: argparse.Namespace, imported: importers_report.Imported) -> str:
    experiment = imported.experiment
    pods = sum(one.replicas for one in (*experiment.processes.values(), *experiment.groups.values()))
    count = len(experiment.processes) + sum(len(group.processes) for group in experiment.groups.values())
    configs = output.counted(len(experiment.configs), "config")
    holds = f"{output.counted(count, 'process')} in {output.counted(pods, 'pod')}, {configs}"
    return f"{experiment.name}   {holds}   from {args.source}"
