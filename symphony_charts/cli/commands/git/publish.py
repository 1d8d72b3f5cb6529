"""`symph publish`: charts into the Git repository that Argo CD syncs, and an environment's pointer to them."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.cli.options import gitops as shared

__all__ = ["add_publish_options", "configure", "publish", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symphony_charts.gitops.operations.base import Change
    from symphony_charts.gitops.prepare import Candidate
    from symphony_charts.settings.project import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph publish`."""
    from symphony_charts.cli.options.values import add_values

    common.add_specs(parser)
    parser.add_argument("--version", metavar="V", default=None, help="the chart's version (default: by what changed)")
    add_values(parser)
    add_publish_options(parser)
    shared.add_change_options(parser)
    common.add_placement(parser)
    common.add_examples(
        parser,
        "symph publish rl.yaml --env dev",
        "symph publish experiments/*.yaml --env dev           # one commit",
        "symph publish rl.yaml --env dev --env-set groups.agent.replicas=32",
        "symph publish rl.yaml --env dev --branch rl-0.2      # a branch for review",
        "symph publish rl.yaml --env dev --dry-run -o markdown",
    )


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    """Add which environment is published to, and its values."""
    shared.add_env(parser, text="the environment that shall run it")
    parser.add_argument("--chart-only", action="store_true", help="publish the chart; no environment runs it yet")
    parser.add_argument(
        "--env-values", metavar="FILE", action="append", default=[], help="the environment's own values, instead of its"
    )
    parser.add_argument(
        "--env-set", metavar="KEY=VALUE", action="append", default=[], help="one value of the environment alone"
    )
    parser.add_argument(
        "--cert",
        metavar="FILE|URL|cluster",
        default=None,
        help="certificate for sealed secrets (default: .symph.yaml's)",
    )
    shared.add_repository(parser)


def run(args: argparse.Namespace) -> int:
    """Publish all specs in one commit, or none."""
    from symphony_charts.cli.commands.charts.package import specs_of
    from symphony_charts.cli.options.values import user_values_of

    publish(args, specs_of(args.specs), user_values_of(args))
    return 0


def publish(
    args: argparse.Namespace,
    paths: Sequence[str],
    overrides: dict[str, object],
    images: Mapping[str, str] | None = None,
) -> None:
    """What `symph publish` and `symph package --push` do with the spec files `paths`; `images` take others' places."""
    import time
    from pathlib import Path

    from symphony_charts.secrets.files import guard_of

    settings = shared.settings_of(args, Path(paths[0]).absolute().parent)
    env = None if args.chart_only else settings.environment(args.env)
    now = int(time.time())
    candidates = _candidates(args, settings, paths, overrides, env, now, images or {})
    if env is not None:
        _check_secrets(candidates, settings, env)
    guard = guard_of([candidate.spec for candidate in candidates])
    store = None if args.into is not None else shared.open_store(args, settings, guard.refuse)
    operations = [candidate.operation for candidate in candidates]
    changes, receipt = shared.carry_out(args, store, operations, now, guard.refuse)
    if not args.dry_run and args.branch is None:
        _write_locks(candidates, changes)
    texts = [_text(change, env) for change in changes]
    shared.print_changes(args, changes, receipt, *texts, branch=shared.branch_of(args, settings))
    if args.output == "table" and not args.dry_run and args.into is None:
        output.next_step(f"symph status {candidates[0].chart.name}" + (f" --env {env}" if env else ""))


def _candidates(
    args: argparse.Namespace,
    settings: Settings,
    paths: Sequence[str],
    overrides: dict[str, object],
    env: str | None,
    now: int,
    images: Mapping[str, str],
) -> list[Candidate]:
    """The charts to publish. Raises SpecError for the faults of all specs at once, and for two of one name."""
    from symphony_charts.cli.commands.charts.package import located, refuse_twins
    from symphony_charts.cli.commands.charts.secrets import certificate_of
    from symphony_charts.errors import Problem, SpecError
    from symphony_charts.gitops.prepare import prepare_publish, team_of
    from symphony_charts.oci.workspace import with_images
    from symphony_charts.package import template
    from symphony_charts.spec import files as specfile

    filled = template()
    place = settings.environments.get(env) if env else None
    env_values = _env_values(args)
    found: list[Candidate] = []
    faults: list[Problem] = []
    with output.progress("packaging", len(paths)) as advance:
        for path in paths:
            try:
                spec = with_images(specfile.read(path), images)
                candidate = prepare_publish(
                    spec,
                    filled,
                    team=team_of(spec, args.team, settings.team),
                    env=env,
                    first_values=place.values if place else {},
                    env_values=env_values,
                    overrides=overrides,
                    destination=place.destination if place else None,
                    certificate=lambda: certificate_of(args.cert or (place.certificate if place else None)),
                    pools=args.pools or settings.pools,
                    force_unschedulable=args.force_unschedulable,
                    version=args.version,
                    expect=args.expect,
                    at=shared.now_text(now),
                )
                found.append(candidate)
            except SpecError as error:
                if len(paths) == 1:
                    raise
                faults += [located(problem, path) for problem in error.problems]
            advance(1)
    if faults:
        raise SpecError(faults)
    refuse_twins([(str(item.spec.path), item.chart.name) for item in found])
    return found


def _check_secrets(candidates: Sequence[Candidate], settings: Settings, env: str) -> None:
    """Look whether the Secrets that charts only name are in the environment's cluster, where its context is known.

    Raises CheckFailed for one that is not, since its pods would wait for ever; a cluster out of reach is a warning.
    """
    from symphony_charts.errors import CheckFailed, ToolFailed, ToolMissing
    from symphony_charts.secrets.existing import key_of
    from symphony_charts.secrets.files import secret_keys, secret_name

    place = settings.environments.get(env)
    if place is None or place.context is None:
        return
    for candidate in candidates:
        experiment = candidate.spec.experiment
        if not experiment.secrets or experiment.secret_source.source != "existing":
            continue
        name = secret_name(candidate.spec)
        try:
            keys = secret_keys(name, place.namespace, place.context)
        except (ToolFailed, ToolMissing) as error:
            output.warn(f"cannot look whether the Secret {name} is in {env}: {error.what}")
            return
        lacking = sorted({key_of(file) for file in experiment.secrets} - (keys or set()))
        if lacking:
            raise CheckFailed(
                f"the Secret {name} of {env} {'lacks ' + ', '.join(lacking) if keys is not None else 'is not there'}",
                f"namespace {place.namespace}",
                f"symph secrets push {candidate.spec.path} -n {place.namespace}",
            )


def _env_values(args: argparse.Namespace) -> dict[str, object] | None:
    """The environment's own values, None to keep those that it has."""
    from symphony_charts.chart.values.set_values import Overrides, user_values
    from symphony_charts.settings.values_files import read_values

    if not args.env_values and not args.env_set:
        return None
    files = tuple(read_values(path) for path in args.env_values)
    return user_values(Overrides(files=files, sets=tuple(args.env_set)))


def _write_locks(candidates: Sequence[Candidate], changes: Sequence[Change]) -> None:
    """Keep ports and version beside each spec, as `symph package` does."""
    from symphony_charts.system.files import write_file

    for candidate, change in zip(candidates, changes, strict=True):
        write_file(candidate.spec.lock_path, candidate.lock(str(change.facts["version"])))


def _text(change: Change, env: str | None) -> str:
    facts = change.facts
    where = f" -> {env}" if env else ""
    was = f"   was {facts['was']}" if facts.get("was") and facts["was"] != facts["version"] else ""
    what = "" if facts["isNew"] else "   the chart is published already"
    why = f": {facts['change']}" if facts.get("change") else ""
    run = {"new": "   a new run", "same": "   in place: the run goes on"}.get(str(facts.get("run")), "")
    return f"{facts['name']} {facts['version']}{where}{was}{what}{run}{why}"
