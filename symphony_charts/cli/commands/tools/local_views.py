"""Show the plans of this machine and write them for other runners: `symph local env` and `render`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.errors import Conflict, UsageError
from symphony_charts.local import show_environment
from symphony_charts.local.export.plain_files import Export
from symphony_charts.local.export.process_compose import to_process_compose
from symphony_charts.local.export.tmuxp import to_tmuxp
from symphony_charts.local.machine.git_volumes import check_out_all
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.masking import MASK
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.run_folder import make_sub_paths
from symphony_charts.local.show_environment import plan_items, shell_text
from symphony_charts.spec import files as specfile
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.services import allocate
from symphony_charts.system.files import write_file

__all__ = ["env", "render"]


def env(args: argparse.Namespace) -> int:
    """Print the environment of one process, of a run or of a file."""
    word = args.component_name
    if args.spec is not None:
        environment = show_environment.of_spec(args.spec, word, args.spec_set)
    elif args.spec_set:
        raise UsageError("--spec-set changes a spec, and this is a run", next="name the spec with --spec")
    else:
        environment = show_environment.of_run(args.experiment_name, word)
    masked = frozenset() if args.show_secrets else environment.secret
    if args.output == "shell":
        sys.stdout.write(shell_text(environment.env, masked))
    else:
        shown = {name: MASK if name in masked else value for name, value in environment.env.items()}
        record = {
            "experiment": environment.experiment,
            "process": environment.process,
            "env": shown,
            "masked": sorted(masked),
        }
        output.print_record(args, "Environment", record)
    if masked:
        output.note(f"masked: {', '.join(sorted(masked))} (--show-secrets)")
    if environment.has_preamble:
        output.note("its preamble runs after this and may change it")
    return 0


def render(args: argparse.Namespace) -> int:
    """Print the plan, or write the files of another runner."""
    spec = specfile.read(args.spec, args.spec_set)
    if args.form == "plan":
        return _print_plan(args, spec)
    folder = Path(args.to or f"{spec.experiment.name}-local").absolute()
    plan = _plan_for(spec, folder)
    export = {"tmuxp": to_tmuxp, "process-compose": to_process_compose}[args.form](plan, str(folder))
    if args.dry_run:
        sys.stdout.write(export.text)
        return 0
    _write(folder, export, replaces=args.force)
    _fill(plan)
    record = {
        "name": spec.experiment.name,
        "form": args.form,
        "folder": str(folder),
        "main": export.main,
        "files": sorted(export.files),
        "notes": list(export.notes),
        "start": export.start,
    }
    output.print_record(args, "Export", record, f"{folder}/{export.main}   {len(export.files)} files")
    for text in export.notes:
        output.warn(text)
    if spec.experiment.secrets:
        output.warn(f"{folder} holds the secrets of the experiment", "keep it to yourself, and remove it after use")
    output.next_step(export.start)
    return 0


def _plan_for(spec: SpecFile, folder: Path | None) -> LocalPlan:
    services = allocate(spec.experiment, spec.pins)
    return plan_here(spec.experiment, services, spec.path.parent, "render", run_dir=folder)


def _print_plan(args: argparse.Namespace, spec: SpecFile) -> int:
    if args.to is not None:
        raise UsageError("--to goes with --as", next="add --as tmuxp, for example")
    plan = _plan_for(spec, None)
    record: Mapping[str, object] = {
        "name": plan.experiment,
        "address": plan.base_address,
        "ports": plan.ports,
        "processes": plan_items(spec.experiment, plan, spec.path.parent, shows_secrets=args.show_secrets),
        "doneWhen": [plan.processes[slot].name for slot in plan.done_when],
        "notes": list(plan.notes),
    }
    if args.output == "table":
        args.output = "yaml"
    output.print_record(args, "LocalPlan", record)
    return 0


def _fill(plan: LocalPlan) -> None:
    """Make the folders of volumes and check out those from Git, but for those that an earlier render has filled."""
    for place in plan.folders:
        Path(place).mkdir(parents=True, exist_ok=True, mode=0o700)
    make_sub_paths(plan)
    check_out_all([checkout for checkout in plan.checkouts if not any(Path(checkout.folder).iterdir())])


def _write(folder: Path, export: Export, *, replaces: bool) -> None:
    """Write the files into a private folder that is new, empty, or ours."""
    if folder.exists() and any(folder.iterdir()) and not (replaces and (folder / "p").is_dir()):
        raise Conflict(
            f"{folder} is not empty", next="give another folder with --to, or --force for one of an earlier render"
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    for name, (content, mode) in export.files.items():
        write_file(folder / name, content, mode=mode)
        (folder / name).chmod(mode)
