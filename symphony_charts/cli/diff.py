"""`symph diff`: the changes, object by object, and their effect in Argo CD."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from symphony_charts import prepare as preparing
from symphony_charts.chart import archive
from symphony_charts.chart.build import chart
from symphony_charts.cli import differences, git_repository, options, output, specs
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import SpecError, UsageError
from symphony_charts.formats import data
from symphony_charts.gitops import base, diff, operations, prepare, snapshot
from symphony_charts.gitops import pointer as gitops_pointer
from symphony_charts.settings import project
from symphony_charts.spec import files


def configure(parser: argparse.ArgumentParser) -> None:
    text = "an experiment file or its folder as a path, or the name of a published one (default: ./experiment.yaml)"
    parser.add_argument("what", metavar="SPEC|EXPERIMENT", nargs="?", type=_what, default=".", help=text)
    parser.add_argument("versions", metavar="VERSION", nargs="*", help="one or two published versions")
    options.add_env(parser, text="the environment to compare with, or whose values both versions get")
    parser.add_argument(
        "--from", metavar="ENV", dest="before", help="show what a promotion would do: the source environment"
    )
    parser.add_argument("--to", metavar="ENV", dest="after", help="... and the target environment")
    options.add_flag(parser, "--exit-code", help="exit with 1 when something differs")
    options.add_flag(parser, "--all", help="also list what does not differ")
    options.add_repository(parser)
    options.add_output(parser, options.CHANGE_FORMATS, headers=False)
    options.add_pools(parser, "node pools to place the spec on")
    options.add_values(parser)
    options.add_spec_changes(parser)
    options.add_examples(
        parser,
        "symph diff rl.yaml --env dev                 # the spec against what dev runs",
        "symph diff rl 0.1.3 0.2.0                    # two versions",
        "symph diff rl --from dev --to prod           # what a promotion would do to prod",
        "symph diff rl.yaml --env dev -o markdown     # for a pull request",
    )


def _what(text: str) -> str:
    """Return the spec of a path; a bare word is a name, even if a folder has that name."""
    return options.spec_of(text) if text == "." or os.sep in text else text


def run(args: argparse.Namespace) -> int:
    is_spec = args.what == "-" or Path(args.what).is_file()
    settings = git_repository.settings_of(args, Path(args.what).absolute().parent if is_spec else None)
    before, after = _sides_of_spec(args, settings) if is_spec else _sides_of_name(args, settings)
    comparison = diff.compare_sides(before, after)
    shown = differences.Comparison(comparison, has_all=args.all)
    differs = any(line.effect != "nothing" for line in comparison.lines)
    if args.output in ("json", "yaml"):
        output.print_record(args, "Comparison", shown.record)
    elif args.output == "markdown":
        output.line(shown.markdown())
    else:
        output.line(shown.text())
        for note in comparison.notes:
            output.warn(note)
    return int(args.exit_code and differs)


def _sides_of_spec(args: argparse.Namespace, settings: project.Settings) -> tuple[diff.Side, diff.Side]:
    if len(args.versions) > 1 or args.before or args.after:
        raise UsageError("a spec file is compared with one thing", next="--env NAME, or one VERSION")
    spec = files.read(args.what, args.spec_set)
    prepared = specs.prepared_of(args, spec, force=True)
    team = prepare.team_of(spec, args.team, settings.team)
    tip = git_repository.open_store(args, settings, reads_only=True).tip()
    name, title = prepared.experiment.name, str(spec.path)
    if args.versions:
        usual = prepared.own.release.namespace
        (before,), values, namespace = _sides_of_versions(args, settings, tip, team, name, usual)
        return before, diff.Side(title=title, objects=_objects(prepared, values, namespace))
    env = settings.environment(args.env)
    pointer = base.read_pointer(tip, env, team, name)
    # As a publish would do it: use the current settings, including the destination.
    configured = settings.environments.get(env)
    place = configured.destination if configured else pointer.destination
    values = gitops_pointer.environment_values(
        pointer.values, pointer.settings, configured.values if configured else None, gitops_pointer.Given()
    )
    objects = _objects(prepared, values, place.namespace)
    return diff.side_of_pointer(tip, pointer), diff.Side(title=title, objects=objects, destination=place)


def _sides_of_versions(
    args: argparse.Namespace, settings: project.Settings, tip: snapshot.Snapshot, team: str, name: str, namespace: str
) -> tuple[list[diff.Side], data.Values, str]:
    """Return the versions to compare under the values of `--env`, with these values and the namespace."""
    values: data.Values = {}
    if typed(args, "env"):
        pointer = base.read_pointer(tip, settings.environment(args.env), team, name)
        values, namespace = pointer.values, pointer.destination.namespace
    release = chart.Release(name=name, namespace=namespace)
    charts = [(version, f"{snapshot.versions_path(team, name)}/{version}") for version in args.versions]
    sides = [diff.side_of_chart(tip, version, path, values, release) for version, path in charts]
    return sides, values, namespace


def _objects(prepared: preparing.Prepared, values: data.Values, namespace: str) -> tuple[dict[str, object], ...]:
    """Return a spec's objects with a fixed version, so that the version label is no difference."""
    return prepared.under(values, namespace=namespace, version=archive.FIRST_VERSION).objects


def _sides_of_name(args: argparse.Namespace, settings: project.Settings) -> tuple[diff.Side, diff.Side]:
    if args.spec_set:
        raise UsageError("--spec-set and -E change a spec, and what is compared is published", next="give a spec file")
    if "/" not in args.what and args.what.endswith((".yaml", ".yml", ".json", ".py")):
        next_step = "give an experiment file, or the name of a published one"
        raise SpecError.one(f"no such file: {args.what}", next=next_step)
    is_of_environments = bool(args.before and args.after and not args.versions)
    if not is_of_environments and (len(args.versions) != 2 or args.before or args.after):
        raise UsageError("compare what with what?", next="two VERSIONs, or --from ENV --to ENV, or a spec file")
    args.experiment_name, named = args.what, args.before if is_of_environments else args.env
    env = settings.environment(named) if named else next(iter(settings.environments), "")
    store = git_repository.open_store(args, settings, reads_only=True)
    team, name = git_repository.find_team(args, settings, store, env), args.experiment_name
    tip = store.tip()
    if is_of_environments:
        return _sides_of_promotion(settings, tip, team, name, env, args.after)
    (before, after), _, _ = _sides_of_versions(args, settings, tip, team, name, "default")
    return before, after


def _sides_of_promotion(
    settings: project.Settings, tip: snapshot.Snapshot, team: str, name: str, before: str, after: str
) -> tuple[diff.Side, diff.Side]:
    """Return what `after` runs, and what it would run after a promotion from `before`."""
    after = settings.environment(after)
    place = settings.environments.get(after)
    operation = operations.Promote(
        team=team,
        name=name,
        before=before,
        env=after,
        settings=place.values if place else None,
        destination=place.destination if place else None,
    )
    promoted = tip.edited(operation.change(tip).edits)
    was, will = (diff.side_of(each, after, team, name) for each in (tip, promoted))
    return was, replace(will, title=f"{will.title}, promoted from {before}")
