"""`symph sweep`: one experiment, many trials that differ in a few settings."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from symphony_charts import package
from symphony_charts import prepare as preparing
from symphony_charts.backend import status
from symphony_charts.chart import files as chart_files
from symphony_charts.chart import release
from symphony_charts.cli import git_repository, options, output, specs, sweep_show, sweep_trials
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import NotFound, SpecError, UsageError
from symphony_charts.formats import data
from symphony_charts.gitops import operations as gitops_operations
from symphony_charts.gitops import pointer, prepare
from symphony_charts.gitops.store import store as git_store
from symphony_charts.local import values
from symphony_charts.secrets import files as secrets_files
from symphony_charts.spec import data as spec_data
from symphony_charts.spec import files
from symphony_charts.sweep import kubernetes, local, metrics, record, trial_runs
from symphony_charts.sweep import search as optuna_search
from symphony_charts.sweep import trials as trial_settings
from symphony_charts.system import user_folders

LATE = (optuna_search,)  # optuna takes half a second, and need not be installed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", nargs="?", type=_spec, default=".", help=options.SPEC_HELP)
    options.add_spec_changes(parser)
    text = "after `show` in place of SPEC: the sweep to show (default: of this folder's spec, else the only one)"
    parser.add_argument("sweep_name", metavar="NAME", nargs="?", help=text)
    title = "`symph sweep show NAME`: trials and what they measured, at any time; `symph sweep ls`: all sweeps"
    shown = parser.add_argument_group("show", title)
    text = "the metric to judge by, and after commas further ones to show"
    shown.add_argument("--metric", metavar="KEY,...", help=text)
    options.add_flag(shown, "--failed", help="only trials that failed")
    text = "the best value of the metric (default: max for names such as reward or accuracy, else min)"
    shown.add_argument("--goal", choices=("min", "max"), help=text)
    text = "how to find metrics in logs, by named groups: 'loss is (?P<loss>[0-9.]+)' (default: name=number, JSON)"
    shown.add_argument("--pattern", metavar="REGEX", help=text)
    text = "order by a metric, which then also names the best trial, or by a setting, state or seconds"
    shown.add_argument("--sort", metavar="KEY", help=text)
    shown.add_argument("--mean", metavar="KEYS", help="means over these settings, as seed")
    shown.add_argument("--csv", metavar="FILE", help="write the table as CSV; `-` is standard output")
    options.add_list(
        parser,
        "-g",
        "--grid",
        metavar="KEY=VALUES",
        help="values of one setting: a,b,c or first..last[..step]; may be repeated. KEY is a variable that processes"
        " declare (lr or LR), or a path of the spec",
    )
    for flag, text in (("--uniform", "uniformly"), ("--loguniform", "log-uniformly")):
        options.add_list(parser, flag, metavar="KEY=LOW..HIGH", help=f"draw a setting {text}; needs --random")
    text = "points in CSV: the first line names the settings, each other line is one; `-` is standard input"
    parser.add_argument("--list", metavar="FILE", help=text)
    parser.add_argument("--random", metavar="N", type=options.count, help="draw N trials instead of taking all")
    parser.add_argument("--seed", type=int, default=0, help="of --random (default: 0); the same seed, the same trials")
    text = (
        "with --up --metric, here or on kube: N trials, each proposed by optuna from earlier results (extra `optuna`)"
    )
    parser.add_argument("--search", metavar="N", type=options.count, help=text)
    options.add_flag(parser, "--up", help="run the trials that are not done yet, and wait for them")
    options.add_flag(parser, "--again", help="with --up: also run trials again that are done with the present settings")
    parser.add_argument(
        "--on",
        choices=("tmux", "kube", "argo"),
        default="tmux",
        help="where they run: here (default), as a Helm release each, or as one Argo Workflow, for which symph does "
        "not wait",
    )
    text = "how many trials run at a time (default: 1 here, 64 as releases, all in a Workflow)"
    parser.add_argument("--parallel", metavar="N", type=options.count, help=text)
    options.add_target(parser)
    options.add_flag(parser, "--no-wait", help="with --on kube --up: return once all are installed")
    text = "time limit of a trial: 90, 90s, 5m, 2d (default: none)"
    parser.add_argument("--timeout", type=options.seconds, metavar="TIME", help=text)
    parser.add_argument(
        "--early-stop",
        choices=("median", "halving"),
        help="with --up --metric, here or on kube: end trials that are worse than the median of the others by the same"
        " step, or that are not in the best third at the steps GRACE, 3 GRACE, 9 GRACE...",
    )
    parser.add_argument(
        "--grace", metavar="STEPS", type=float, default=1.0, help="of --early-stop: none ends before this step (1)"
    )
    options.add_env(parser, text="publish every trial to this environment, in one commit")
    options.add_repository(parser)
    options.add_change_options(parser, is_alone=False)
    parser.add_argument("--dest", metavar="DIR", default="dist", help="folder to write to (default: dist)")
    options.add_output(parser)
    options.add_values(parser)
    options.add_placement(parser)
    options.add_dry_run(parser)
    options.add_examples(
        parser,
        "symph sweep experiment.yaml --grid lr=1e-3,1e-4 --grid seed=0..9      # one chart, a values file a trial",
        "symph sweep experiment.yaml --grid seed=0..9 --up --parallel 4        # here, four at a time",
        "symph sweep experiment.yaml --list points.csv --up --timeout 2h       # points; again: the rest",
        "symph sweep experiment.yaml --loguniform lr=1e-5..1e-1 --search 30 --up --metric loss   # optuna proposes",
        "symph sweep experiment.yaml --grid lr=1,0.1,0.01 --up --metric loss --early-stop median --grace 10",
        "symph sweep experiment.yaml --grid seed=0..9 --on argo --parallel 4   # one Argo Workflow, as a file",
        "symph sweep experiment.yaml --grid seed=0..9 --on kube --up --parallel 4   # a Helm release each",
        "symph sweep experiment.yaml --loguniform lr=1e-5..1e-2 --random 20 --dry-run",
        "symph sweep experiment.yaml --grid seed=0..9 --env dev               # one commit, ten releases of one chart",
        "symph sweep show descent --metric loss --sort loss                    # how they are, best trial named",
        "symph sweep show descent --failed",
        "symph sweep ls",
        "symph sweep show descent --metric loss --mean seed                    # means and deviations over seeds",
        "symph sweep experiment.yaml --grid processes.agent.replicas=2,4,8",
    )


def _spec(text: str) -> str:
    """Return the spec that `text` names; `show` and `ls` are always subcommands, even if a folder has that name."""
    return "ls" if text == "list" else text if text in ("show", "ls") else options.spec_of(text)


def run(args: argparse.Namespace) -> int:
    args.metric, *args.more_metrics = (args.metric or "").split(",")
    if args.spec == "show":
        return sweep_show.show(args)
    if args.spec == "ls" and not args.sweep_name:
        return sweep_show.list_sweeps(args)
    if args.sweep_name:
        step = "write values with commas: --grid lr=0.1,0.2; or look: symph sweep show NAME"
        raise UsageError(f'"{args.sweep_name}" is a word too many', next=step)
    if args.failed:
        raise UsageError("--failed shows trials that failed", next="symph sweep show NAME --failed")
    sweep_trials.judge_of(args)
    spec = files.read(args.spec, args.spec_set)
    if args.search is not None:
        return _search(args, spec, *_space(args))
    axes, spans = _space(args)
    points = trial_settings.parse_points(_text_of(args.list), args.list) if args.list else ()
    chance = random.Random(args.seed)  # noqa: S311 - draws trials, guards nothing
    trials = trial_settings.trials(spec.experiment.name, axes, spans, points, draw=args.random, chance=chance)
    if typed(args, "env") and args.up:
        raise UsageError("--env publishes the trials, and --up runs them", next="choose one")
    overrides = specs.user_values_of(args)
    if args.up and args.on == "tmux":
        spec = values.under_values(spec, overrides)
        here = trial_runs.prepare_trials(spec, trials, None)
        if args.dry_run:
            return sweep_trials.show_plan(args, spec, here)
        return sweep_trials.run_all(args, spec, None, here)
    spec = kubernetes.as_task(spec) if args.on == "argo" else spec
    base = specs.prepared_of(args, spec)
    if base.own.fit:
        output.note(f"fit of one trial: {base.own.fit}")
    runs = trial_runs.prepare_trials(spec, trials, base, overrides)
    if args.on == "argo":
        return _argo(args, spec, base, runs)
    if args.dry_run:
        output.print_items(
            args, "Trial", [sweep_trials.record_of(run.trial) for run in runs], sweep_trials.columns_of(runs[0].trial)
        )
        return 0
    if args.up:
        return sweep_trials.run_all(args, spec, base, runs)
    return _publish(args, spec, runs) if typed(args, "env") else _write(args, spec, base, runs)


def _space(args: argparse.Namespace) -> tuple[list[trial_settings.Axis], list[trial_settings.Span]]:
    spans = [trial_settings.parse_span(text, is_log=False) for text in args.uniform]
    spans += [trial_settings.parse_span(text, is_log=True) for text in args.loguniform]
    axes = [trial_settings.parse_axis(text) for text in args.grid]
    for axis in axes:
        if axis.equal:
            output.note(f"{axis.key}: {', '.join(axis.equal)} equals a value before it, which is one trial")
    return axes, spans


def _text_of(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(
            f"the file {file} does not exist", next="--list takes a table in CSV: lr,seed on its first line"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the points: {error}", at=file) from error


def _write(
    args: argparse.Namespace, spec: files.SpecFile, base: preparing.Prepared, runs: Sequence[trial_runs.TrialRun]
) -> int:
    dest = Path(args.dest)
    filled, is_forced = package.template(), args.force_unschedulable
    packaged = package.package(base, spec, dest, filled, is_forced=is_forced)
    folder = dest / f"{packaged.chart.name}-trials"
    charts: dict[str, chart_files.Chart] = {}
    for run in runs:
        if run.own is not None:
            charts[run.trial.name] = run.own.chart(filled, packaged.chart.version)
            preparing.judge(spec, run.own, charts[run.trial.name], is_forced=is_forced).refuse()
    package.write(packaged)
    local.write_trials(runs, folder, charts)
    items: list[dict[str, object]] = [
        {
            **sweep_trials.record_of(run.trial),
            "values": str(folder / f"{run.trial.name}.yaml"),
            "chart": str(folder / f"{run.trial.name}.tgz" if run.own is not None else packaged.folder),
        }
        for run in runs
    ]
    columns = [*sweep_trials.columns_of(runs[0].trial), output.Column("VALUES", "values")]
    output.print_items(args, "Trial", items, [*columns, output.Column("CHART", "chart", is_wide=not charts)])
    if args.output in ("table", "wide"):
        own = f", {len(charts)} of them with a chart of their own" if charts else ""
        name, version = packaged.chart.name, packaged.chart.version
        output.note(f"{len(runs)} trials of {name} {version} in {packaged.folder}{own}")
        first = items[0]
        output.next_step(
            f"helm install {first['name']} {first['chart']} -f {first['values']}", f"symph sweep {args.spec} ... --up"
        )
    return 0


def _publish(args: argparse.Namespace, spec: files.SpecFile, runs: Sequence[trial_runs.TrialRun]) -> int:
    """Publish a pointer per trial in one commit, with the shared chart and those of single trials."""
    settings = git_repository.settings_of(args, spec.path.absolute().parent)
    env, now = settings.environment(args.env), int(time.time())
    place = settings.environments.get(env)
    common_values = place.values if place else {}

    def operation_of(spec: files.SpecFile, overrides: data.Values) -> gitops_operations.Publish:
        candidate = prepare.prepare_publish(
            spec,
            package.template(),
            team=prepare.team_of(spec, args.team, settings.team),
            env=env,
            place=place,
            overrides=overrides,
            pools=args.pools,
            force_unschedulable=args.force_unschedulable,
            expect=args.expect,
            at=status.time_text(now),
        )
        return candidate.operation

    shared = operation_of(spec, specs.user_values_of(args))
    operations = []
    for run in runs:
        operation, own = shared, run.own
        if own is not None:
            trial = replace(spec, experiment=run.experiment, lock=spec_data.Lock(ports=spec.pins))
            operation = operation_of(trial, release.overrides_between(own.built.values, own.values))
        given = pointer.Given(files=release.merge(common_values, run.values))
        operations.append(
            replace(operation, name=run.trial.name, chart_name=operation.name, settings=None, given=given)
        )
    guard = secrets_files.guard_of([spec], settings.allow_leaks)
    store = None if args.into is not None else git_repository.open_store(args, settings, guard)
    changes, receipt = git_repository.carry_out(args, store, operations, now, guard)
    items = [
        sweep_trials.record_of(run.trial) | {"version": change.facts["version"], "env": env}
        for run, change in zip(runs, changes, strict=True)
    ]
    output.print_items(
        args, "Trial", items, [*sweep_trials.columns_of(runs[0].trial), output.Column("VERSION", "version")]
    )
    if isinstance(receipt, git_store.PushResult) and args.output in ("table", "wide"):
        commit = f"commit {receipt.commit[:7]}" if receipt.commit else "nothing to change"
        branch = git_repository.branch_of(args, settings)
        output.note(f"{len(runs)} trials -> {env}   {commit} on {branch}, {receipt.seconds:.2f} s")
    return 0


def _argo(
    args: argparse.Namespace, spec: files.SpecFile, base: preparing.Prepared, runs: Sequence[trial_runs.TrialRun]
) -> int:
    if typed(args, "env"):
        raise UsageError("--env publishes releases, and --on argo makes a Workflow", next="choose one")
    if args.timeout is not None:
        raise UsageError("a Workflow is not waited for, so --timeout ends none of its trials", next="set `deadline`")
    if args.again and not args.up:
        raise UsageError("a Workflow in a file has every trial, so --again has nothing to add", next="leave it out")
    return sweep_trials.write_or_submit(args, spec, base, runs)


def _search(
    args: argparse.Namespace,
    spec: files.SpecFile,
    axes: Sequence[trial_settings.Axis],
    spans: Sequence[trial_settings.Span],
) -> int:
    """Run the remaining trials of `--search N`, and report each result to optuna."""
    _refuse_search(args)
    overrides = specs.user_values_of(args)
    base = None if args.on == "tmux" else specs.prepared_of(args, spec)
    spec = values.under_values(spec, overrides) if base is None else spec
    # Check that the spec accepts every possible proposal before anything runs.
    trial_runs.prepare_trials(spec, list(_corners(spec.experiment.name, axes, spans)), base, overrides)
    if args.dry_run:
        keys = [*(axis.key for axis in axes), *(span.key for span in spans)]
        output.note(f"optuna would propose up to {args.search} trials of {', '.join(keys)}")
        return 0
    outcomes: dict[str, trial_runs.Outcome] = {}

    def asked() -> Iterator[trial_runs.TrialRun]:
        for trial in study.ask(args.search):
            sweep_trials.remember_trials(args, spec, study.trials(), namespace)
            yield from trial_runs.prepare_trials(spec, [trial], base, overrides)

    def started(trial: trial_settings.Trial) -> None:
        output.note(f"start {trial.name}")

    with ExitStack() as stack:
        going, namespace = sweep_trials.begin_trials(
            args, spec, base, asked(), stack, started, parallel=args.parallel or 1
        )
        # Trials run in a namespace, so each has a study of its own.
        name = f"{args.on}.{namespace}.{spec.experiment.name}" if namespace else spec.experiment.name
        file = user_folders.state_dir() / "sweeps" / "optuna" / f"{name}.journal"
        goal = args.goal or metrics.goal_of(args.metric)
        study = optuna_search.Search(file, spec.experiment, axes, spans, metric=args.metric, goal=goal, seed=args.seed)
        read = sweep_trials.reader_of(args)
        for outcome in going:
            name = outcome.trial.name
            outcomes[name] = outcome
            points = read(name).get(args.metric, [])
            value = points[-1][1] if points and outcome.state == "succeeded" else None
            study.tell(name, value, is_early=outcome.is_early)
            measured = "" if value is None else f", {args.metric} {value:.6g}"
            output.note(f"{len(outcomes)}: {name} {sweep_trials.words_of(outcome)}{measured}")
    names = [trial.name for trial in study.trials()]
    if not outcomes.keys() >= set(names):
        known = sweep_trials.outcomes_of(args, record.find_sweep(spec.experiment.name, args.on))
        outcomes = {outcome.trial.name: replace(outcome, is_kept=True) for outcome in known} | outcomes
    return sweep_trials.print_outcomes(args, spec.experiment.name, [outcomes[name] for name in names], namespace)


def _refuse_search(args: argparse.Namespace) -> None:
    if not sweep_trials.is_waited_for(args):
        what = "--search runs its trials itself, each after others were waited for"
        raise UsageError(what, next="add --up, here or with --on kube")
    if not args.metric:
        raise UsageError("--search needs to know what to make better", next="add --metric KEY, as --metric loss")
    if args.list or args.random is not None or args.env:
        raise UsageError("--search proposes trials by itself", next="leave out --list, --random and --env")


def _corners(
    base: str, axes: Sequence[trial_settings.Axis], spans: Sequence[trial_settings.Span]
) -> Iterator[trial_settings.Trial]:
    """Yield trials that cover each value of each axis, and both ends of each span."""
    ends = {span.key: (f"{span.low:.6g}", f"{span.high:.6g}") for span in spans}
    texts_of = {**{axis.key: axis.values for axis in axes}, **ends}
    if not texts_of:
        raise UsageError("a search needs something to vary", next="for example: --loguniform lr=1e-5..1e-1")
    first = {key: texts[0] for key, texts in texts_of.items()}
    yield from (
        trial_settings.trial_of(base, {**first, key: text}) for key, texts in texts_of.items() for text in texts
    )
