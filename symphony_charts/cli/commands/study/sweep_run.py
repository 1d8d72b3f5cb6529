"""`symph sweep --up` runs trials, says how each ended, and at its end what is left to do or to remove."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing

from symphony_charts.cli import output
from symphony_charts.cli.commands.study.sweep_kube import installed
from symphony_charts.cli.experiments import phase_color
from symphony_charts.errors import CheckFailed
from symphony_charts.local.runs import runs_of
from symphony_charts.prepare import Prepared
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.local import TrialRun, done_here, look_here, run_trials
from symphony_charts.sweep.outcomes import Outcome
from symphony_charts.sweep.record import Sweep, remember
from symphony_charts.sweep.trials import Trial

__all__ = ["columns_of", "outcome_record", "record_of", "removal", "run_all", "show_plan"]


def show_plan(args: argparse.Namespace, spec: SpecFile, runs: Sequence[TrialRun]) -> int:
    """Print which trials would run here, and which have been done."""
    folder = spec.path.absolute().parent
    kept = [None if args.again else done_here(run, folder) for run in runs]
    outcomes = [done or Outcome(trial=run.trial, state="pending") for run, done in zip(runs, kept, strict=True)]
    output.print_items(args, "Trial", list(map(outcome_record, outcomes)), columns_of(runs[0].trial, outcomes))
    done = sum(outcome.is_kept for outcome in outcomes)
    output.note(f"{len(runs) - done} trials would run, {done} are done and would be kept")
    return 0


def run_all(args: argparse.Namespace, spec: SpecFile, base: Prepared | None, runs: Sequence[TrialRun]) -> int:
    """Run the trials and wait for them; the status is 1 when one fails."""
    outcomes: dict[str, Outcome] = {}

    def started(trial: Trial) -> None:
        outcomes[trial.name] = Outcome(trial=trial, state="running")
        output.note(f"start {trial.name}")

    with ExitStack() as stack:
        namespace = ""
        if base is not None:
            going, namespace = installed(args, spec, base, runs, stack, started)
        else:
            parallel = args.parallel or 1
            going = run_trials(
                runs, spec, parallel=parallel, again=args.again, timeout_s=args.timeout, on_start=started
            )
        stack.enter_context(closing(going))
        _remember(args, spec, runs, namespace)
        count = 0
        try:
            for outcome in going:
                outcomes[outcome.trial.name] = outcome
                count += 1
                if not outcome.is_kept:
                    output.note(f"{count}/{len(runs)} {outcome.trial.name} {_words(outcome)}")
        except KeyboardInterrupt:
            going.close()
            _print_interrupted(args, runs, outcomes, namespace)
            raise
    ordered = [outcomes[run.trial.name] for run in runs]
    output.print_items(args, "Trial", list(map(outcome_record, ordered)), columns_of(runs[0].trial, ordered))
    kept = sum(outcome.is_kept for outcome in ordered)
    if kept:
        output.note(f"{kept} of {len(runs)} trials had been done before and were kept; --again runs them anew")
    bad = [outcome for outcome in ordered if not outcome.is_done and not (args.no_wait and outcome.state != "failed")]
    if bad:
        step = f"symph logs {bad[0].trial.name}{_target(args, namespace)}; the same command runs them again"
        raise CheckFailed(f"{len(bad)} of {len(ordered)} trials failed", next=step)
    return 0


def _remember(args: argparse.Namespace, spec: SpecFile, runs: Sequence[TrialRun], namespace: str) -> None:
    """Write down which trials the sweep has, before the first of them starts."""
    trials = {run.trial.name: run.trial.settings for run in runs}
    sweep = Sweep(name=spec.experiment.name, backend=args.on, trials=trials, namespace=namespace)
    # What is gone here is forgotten; a cluster is not asked about each of them.
    remember(sweep, is_left=lambda name: args.on != "tmux" or bool(runs_of(name)))


def _print_interrupted(
    args: argparse.Namespace, runs: Sequence[TrialRun], outcomes: Mapping[str, Outcome], namespace: str
) -> None:
    """Print how far the sweep has come, and what goes on with it or removes what is left."""
    ordered = [outcomes.get(run.trial.name) or Outcome(trial=run.trial, state="pending") for run in runs]
    if args.on == "tmux":
        ordered = [each if each.state != "running" else look_here(each.trial) for each in ordered]
    output.print_items(args, "Trial", list(map(outcome_record, ordered)), columns_of(runs[0].trial, ordered))
    done, going = sum(each.is_done for each in ordered), sum(each.state == "running" for each in ordered)
    on = f", {going} run on" if going else ""
    output.note(f"{done} of {len(runs)} trials are done{on}; the same command does the rest")
    if any(each.state != "pending" for each in ordered):
        output.next_step(removal([run.trial.name for run in runs], _target(args, namespace)) + " removes what is left")


def removal(names: Sequence[str], target: str = "") -> str:
    """The command that removes what is left of trials."""
    first, last = min(names), max(names)
    same = next((at for at, letter in enumerate(first) if letter != last[at]), len(first))
    return f"symph db '{first[:same]}.*'{target}"


def _target(args: argparse.Namespace, namespace: str) -> str:
    """The flags that lead a verb to where the trials are."""
    flags = [f" --on {args.on}" if args.on == "kube" else "", f" -n {namespace}" if namespace else ""]
    flags += [f" --context {args.context}" if args.context else ""]
    return "".join(flags)


def _words(outcome: Outcome) -> str:
    """How a trial ended, in one line."""
    status = f" ({outcome.status})" if outcome.status else ""
    after = f" after {outcome.seconds:.1f} s" if outcome.seconds is not None else ""
    return f"{outcome.state}{status}{after}{f': {outcome.error}' if outcome.error else ''}"


def record_of(trial: Trial) -> dict[str, object]:
    """A trial as an item of the output."""
    return {"name": trial.name, "settings": dict(trial.settings)}


def outcome_record(outcome: Outcome) -> dict[str, object]:
    """A trial and how it is, as an item of the output."""
    return record_of(outcome.trial) | {
        "state": outcome.state,
        "status": outcome.status,
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 3),
        "kept": outcome.is_kept,
        **({"error": outcome.error} if outcome.error else {}),
    }


def columns_of(trial: Trial, outcomes: Sequence[Outcome] = ()) -> list[output.Column]:
    """The columns of a table of trials like `trial`; with `outcomes`, how they are."""
    columns = [output.Column("TRIAL", "name")]
    for key in trial.settings:
        columns.append(output.Column(key.rpartition(".")[2].upper(), _setting(key)))
    if outcomes:
        columns.append(output.Column("STATE", "state", state=lambda item: phase_color({"phase": item["state"]})))
        columns.append(output.Column("EXIT", "status"))
        columns.append(output.Column("SECONDS", "seconds"))
    if any(outcome.error for outcome in outcomes):
        columns.append(output.Column("REASON", "error"))
    return columns


def _setting(key: str) -> Callable[[Mapping[str, object]], object]:
    def text(item: Mapping[str, object]) -> object:
        settings = item["settings"]
        return settings.get(key) if isinstance(settings, dict) else None

    return text
