"""`symph diff`: the changes, object by object, and their effect in Argo CD."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from symphony_charts import prepare as preparing
from symphony_charts.chart import archive
from symphony_charts.cli import git_repository, options, output, reports, specs
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import SpecError, UsageError
from symphony_charts.formats import data
from symphony_charts.gitops import diff, prepare
from symphony_charts.gitops import pointer as gitops_pointer
from symphony_charts.settings import project
from symphony_charts.spec import files


def configure(parser: argparse.ArgumentParser) -> None:
    text = "an experiment file or its folder as a path, or the name of a published one (default: ./experiment.yaml)"
    parser.add_argument("what", metavar="SPEC|EXPERIMENT", nargs="?", type=_what, default=".", help=text)
    parser.add_argument("versions", metavar="VERSION", nargs="*", help="one or two published versions")
    options.add_env(parser, text="the environment to compare with, or whose values both versions get")
    parser.add_argument("--from", metavar="ENV", dest="before", help="compare two environments: the first")
    parser.add_argument("--to", metavar="ENV", dest="after", help="... and the second")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when something differs")
    parser.add_argument("--all", action="store_true", help="list what does not differ, too")
    options.add_repository(parser)
    options.add_output(parser, options.CHANGE_FORMATS, headers=False)
    options.add_list(
        parser,
        "--pools",
        metavar="FILE",
        help="node pools to place the spec on; may be repeated"
        " (default: the spec's placement.pools, else the project's)",
    )
    options.add_values(parser)
    options.add_spec_changes(parser)
    options.add_examples(
        parser,
        "symph diff rl.yaml --env dev                 # the spec against what dev runs",
        "symph diff rl 0.1.3 0.2.0                    # two versions",
        "symph diff rl --from dev --to prod           # two environments",
        "symph diff rl.yaml --env dev -o markdown     # for a pull request",
    )


def _what(text: str) -> str:
    """Return the spec of a path; a bare word is a name, even if a folder has that name."""
    return options.spec_of(text) if text == "." or os.sep in text else text


_COLORS = {
    "nothing": "dim",
    "created": "good",
    "updated": "busy",
    "restarted": "busy",
    "new run": "busy",
    "pruned": "bad",
    "fails": "bad",
}


def run(args: argparse.Namespace) -> int:
    """Print the comparison; with --exit-code return 1 if something differs."""
    is_spec = args.what == "-" or Path(args.what).is_file()
    settings = git_repository.settings_of(args, Path(args.what).absolute().parent if is_spec else None)
    before, after = _sides_of_spec(args, settings) if is_spec else _sides_of_name(args, settings)
    comparison = diff.compare_sides(before, after)
    differs = any(line.effect != "nothing" for line in comparison.lines)
    if args.output in ("json", "yaml"):
        output.print_record(args, "Comparison", _record(comparison))
    elif args.output == "markdown":
        output.line(reports.markdown_of(comparison, has_all=args.all))
    else:
        _print_text(args, comparison)
    return int(args.exit_code and differs)


def _sides_of_spec(args: argparse.Namespace, settings: project.Settings) -> tuple[diff.Side, diff.Side]:
    """Return the objects of an environment or a version, and those of the spec file."""
    if len(args.versions) > 1 or args.before or args.after:
        raise UsageError("a spec file is compared with one thing", next="--env NAME, or one VERSION")
    spec = files.read(args.what, args.spec_set)
    prepared = specs.prepared_of(args, spec, force=True)
    team = prepare.team_of(spec, args.team, settings.team)
    published = diff.Published(_reader(args, settings), team, prepared.experiment.name)
    if args.versions and not typed(args, "env"):
        before = published.version(args.versions[0], {}, prepared.own.release.namespace)
        return before, diff.Side(title=str(spec.path), objects=_objects(prepared, {}, ""))
    env = settings.environment(args.env)
    pointer = published.pointer(env)
    if args.versions:
        namespace = pointer.destination.namespace
        after = diff.Side(title=str(spec.path), objects=_objects(prepared, pointer.values, namespace))
        return published.version(args.versions[0], pointer.values, namespace), after
    # As a publish would do it: use the current settings, including the destination.
    configured = settings.environments.get(env)
    place = configured.destination if configured else pointer.destination
    values = gitops_pointer.environment_values(
        pointer.values, pointer.settings, configured.values if configured else None, gitops_pointer.Given()
    )
    objects = _objects(prepared, values, place.namespace)
    return published.in_environment(env), diff.Side(title=str(spec.path), objects=objects, destination=place)


def _objects(prepared: preparing.Prepared, values: data.Values, namespace: str) -> tuple[dict[str, object], ...]:
    """Return a spec's objects with a fixed version, so that the version label is no difference."""
    return prepared.under(values, namespace=namespace, version=archive.FIRST_VERSION).objects


def _sides_of_name(args: argparse.Namespace, settings: project.Settings) -> tuple[diff.Side, diff.Side]:
    if args.spec_set:
        raise UsageError("--spec-set changes a spec, and what is compared is published", next="give a spec file")
    if "/" not in args.what and args.what.endswith((".yaml", ".yml", ".json", ".py")):
        next_step = "give an experiment file, or the name of a published one"
        raise SpecError.one(f"no such file: {args.what}", next=next_step)
    args.experiment_name = args.what
    if args.before and args.after and not args.versions:
        envs = [settings.environment(args.before), settings.environment(args.after)]
        published = diff.Published(_reader(args, settings), _team(args, settings, envs[0]), args.experiment_name)
        # Two environments differ in destination; that is no move.
        before, after = (replace(published.in_environment(env), destination=None) for env in envs)
        return before, after
    if len(args.versions) != 2 or args.before or args.after:
        raise UsageError("compare what with what?", next="two VERSIONs, or --from ENV --to ENV, or a spec file")
    env = settings.environment(args.env) if args.env else next(iter(settings.environments), "")
    published = diff.Published(_reader(args, settings), _team(args, settings, env), args.experiment_name)
    if not typed(args, "env"):
        return tuple(published.version(version, {}, "default") for version in args.versions)  # type: ignore[return-value]  # two of them, as checked
    pointer = published.pointer(env)
    namespace = pointer.destination.namespace
    first, second = args.versions
    return published.version(first, pointer.values, namespace), published.version(second, pointer.values, namespace)


def _team(args: argparse.Namespace, settings: project.Settings, env: str) -> str:
    return git_repository.find_team(args, settings, git_repository.open_store(args, settings, reads_only=True), env)


def _reader(args: argparse.Namespace, settings: project.Settings) -> diff.Read:
    return git_repository.open_store(args, settings, reads_only=True).at_tip()


def _record(comparison: diff.Comparison) -> dict[str, object]:
    return {
        "before": comparison.before,
        "after": comparison.after,
        "outcome": comparison.outcome,
        "summary": comparison.summary,
        "move": _move(comparison),
        "objects": [
            {
                "kind": line.difference.kind,
                "name": line.difference.name.partition("/")[2],
                "before": line.difference.before,
                "after": line.difference.after,
                "change": line.difference.change,
                "effect": line.effect,
                "why": line.why,
                "fields": [
                    {"path": field.path, "before": field.before, "after": field.after}
                    for field in line.difference.fields
                ],
            }
            for line in comparison.lines
        ],
        "amounts": {name: {"before": old, "after": new} for name, (old, new) in comparison.amounts.items()},
        "notes": list(comparison.notes),
    }


def _move(comparison: diff.Comparison) -> dict[str, object] | None:
    return dict(zip(("from", "to", "ends"), comparison.move, strict=True)) if comparison.move else None


def _print_text(args: argparse.Namespace, comparison: diff.Comparison) -> None:
    color = output.use_color(sys.stdout, getattr(args, "color", None))
    output.line(f"{comparison.before} -> {comparison.after}")
    for line in comparison.lines:
        if reports.is_dull(line) and not args.all:
            continue
        why = f": {line.why}" if line.why else ""
        output.line(f"{line.difference.name}   {output.paint(line.effect, _COLORS[line.effect], color)}{why}")
        for path, old, new in reports.shown_fields(line):
            output.line(f"  {path:<16}  {reports.change_text(old, new)}")
    output.line(f"under Argo CD: {comparison.summary}")
    output.line(reports.amounts_text(comparison))
    for note in comparison.notes:
        output.warn(note)
