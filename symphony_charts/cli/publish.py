"""`symph publish`: write charts, and an environment's pointers to them, into the Git repository that Argo CD syncs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from symphony_charts import package
from symphony_charts.backend import status
from symphony_charts.chart import release
from symphony_charts.cli import git_repository, options, output, secrets, specs, validate
from symphony_charts.errors import UsageError
from symphony_charts.gitops import base as gitops_base
from symphony_charts.gitops import pointer, prepare
from symphony_charts.oci import images as oci_images
from symphony_charts.secrets import files as secrets_files
from symphony_charts.settings import project
from symphony_charts.spec import files as spec_files
from symphony_charts.system import files as system_files

LATE = (secrets,)  # the client of Kubernetes and cryptography, which only some secrets need


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser)
    parser.add_argument("--version", metavar="V", help="the chart's version (default: by what changed)")
    options.add_values(parser)
    options.add_publish_options(parser)
    options.add_change_options(parser)
    options.add_placement(parser)
    options.add_examples(
        parser,
        "symph publish rl.yaml --env dev",
        "symph publish experiments/*.yaml --env dev           # one commit",
        "symph publish rl.yaml --env dev --env-set groups.agent.replicas=32",
        "symph publish rl.yaml --env dev --branch rl-0.2      # a branch for review",
        "symph publish rl.yaml --env dev --dry-run -o markdown",
    )


def run(args: argparse.Namespace) -> int:
    publish(args, specs.specs_of(args.specs), specs.user_values_of(args))
    return 0


def publish(
    args: argparse.Namespace,
    paths: Sequence[str],
    overrides: dict[str, object],
    images: Mapping[str, str] | None = None,
) -> None:
    """Publish `paths` for `symph publish` and `symph package --push`; `images` maps images to their replacements."""
    settings = git_repository.settings_of(args, Path(paths[0]).absolute().parent)
    if settings.template:
        what = f"{settings.path} names a template, and what is published is made by that of this installation"
        raise UsageError(what, next="symph package, and publish the folder by your own means")
    env = None if args.chart_only else settings.environment(args.env)
    now = int(time.time())
    author = None if args.into is not None else git_repository.author_of_change(settings)
    by = git_repository.author_name(settings, author)
    candidates = _candidates(args, settings, paths, overrides, env, now, images or {}, by)
    guard = secrets_files.guard_of([candidate.spec for candidate in candidates], settings.allow_leaks)
    store = None if author is None else git_repository.open_store(args, settings, guard, author=author)
    operations = [candidate.operation for candidate in candidates]
    changes, receipt = git_repository.carry_out(args, store, operations, now, guard)
    if not args.dry_run and args.branch is None:
        # Ports and version beside each spec, as `symph package` writes them.
        for item, change in zip(candidates, changes, strict=True):
            system_files.write_file(item.spec.lock_path, item.lock(str(change.facts["version"])))
    texts = [_text(change, env, by) for change in changes]
    validate.note_warnings([verdict for candidate in candidates for verdict in candidate.verdicts[-1:]])
    git_repository.print_changes(args, settings, changes, receipt, *texts)
    if args.output == "table" and not args.dry_run and args.into is None:
        # A change on a review branch runs in no environment yet, so show the status of all.
        output.next_step(
            f"symph status {candidates[0].chart.name}" + (f" --env {env}" if env and not args.branch else "")
        )


def _candidates(
    args: argparse.Namespace,
    settings: project.Settings,
    paths: Sequence[str],
    overrides: dict[str, object],
    env: str | None,
    now: int,
    images: Mapping[str, str],
    by: str,
) -> list[prepare.Candidate]:
    """Return the charts to publish. Raises SpecError for the problems of all specs at once, and for duplicate names."""
    filled = package.template()
    place = settings.environments.get(env) if env else None
    certificate = args.cert or (place.certificate if place else None)
    files = tuple(project.read_values(path) for path in args.env_values)
    own = release.user_values(release.Overrides(files=files)) if files else None
    given = pointer.Given(files=own, sets=tuple(args.env_set), unset=tuple(args.env_unset))

    def candidate(path: str) -> prepare.Candidate:
        spec = oci_images.with_images(spec_files.read(path, args.spec_set), images)
        return prepare.prepare_publish(
            spec,
            filled,
            team=prepare.team_of(spec, args.team, settings.team),
            env=env,
            place=place,
            given=given,
            overrides=overrides,
            seal=lambda spec, namespace, name: secrets.sealed_values(spec, certificate, namespace, name),
            pools=args.pools,
            force_unschedulable=args.force_unschedulable,
            version=args.version,
            expect=args.expect,
            at=status.time_text(now),
            by=by,
        )

    candidates = specs.each_spec(paths, candidate)
    specs.refuse_twins([(str(item.spec.path), item.chart.name) for item in candidates])
    return candidates


def _text(change: gitops_base.Change, env: str | None, by: str) -> str:
    facts = change.facts
    where = f" -> {env}" if env else ""
    is_another = facts.get("was") and facts["was"] != facts["version"]
    taken = facts.get("wasBy") if facts.get("wasBy") not in (None, by) else None
    was = f"   was {facts['was']}{f' by {taken}' if taken else ''}" if is_another or taken else ""
    what = "" if facts["isNew"] else "   the chart is published already"
    why = f": {facts['change']}" if facts.get("change") else ""
    run = {"new": "   a new run", "same": "   in place: the run continues"}.get(str(facts.get("run")), "")
    return f"{facts['name']} {facts['version']}{where}{was}{what}{run}{git_repository.move_text(facts)}{why}"
