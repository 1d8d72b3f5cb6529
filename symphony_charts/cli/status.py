"""`symph status`: the state of experiments on this machine, on clusters and in Git, and the cause of problems."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from symphony_charts.backend import diagnosis
from symphony_charts.backend import status as backend_status
from symphony_charts.chart import helpers
from symphony_charts.cli import experiments, git_repository, look, options, output, status_sources
from symphony_charts.cli.defaults import typed
from symphony_charts.cli.output import Screen
from symphony_charts.errors import NotFound, SymphError, ToolFailed, UsageError
from symphony_charts.formats.printable import printable_line
from symphony_charts.gitops import argocd_sync
from symphony_charts.gitops.store import environments
from symphony_charts.settings import project


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show experiments on this machine, on the clusters that .symph.yaml names by `context` (else the kubeconfig's"
        " current one) and in Git, and why one does not run. Exit status 1: something has failed, drifted or needs you."
    )
    parser.add_argument(
        "experiment_name", metavar="EXPERIMENT", nargs="?", help="its name, or team/name (default: all)"
    )
    options.add_env(parser, text="only this environment")
    options.add_repository(parser)
    options.add_target(parser)
    options.add_all_namespaces(parser)
    options.add_selector(parser)
    options.add_flag(parser, "-w", "--watch", help="continue until nothing changes by itself")
    options.add_output(parser)
    options.add_examples(
        parser,
        "symph status",
        "symph status rl",
        "symph status rl --watch",
        "symph status --env prod -o wide",
        "symph status rl -n ml -o json",
        "symph status -l team=rl",
    )


_WIDTH = 80
_EVERY_S = 2.0
_REPOSITORY = "no repository is configured: --repo URL, or `repository:` in .symph.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A query: one experiment or all, and the places to ask.

    A cluster or repository named by flags must answer. `left_out` maps environments that are not asked, because a
    default names another one, to the reason.
    """

    name: str
    team: str
    settings: project.Settings
    env: str | None
    is_here: bool
    is_git: bool
    names_cluster: bool
    names_git: bool
    places: tuple[status_sources.Place, ...]
    left_out: Mapping[str, str]


def run(args: argparse.Namespace) -> int:
    """Print a row per place of the experiment, or of all; return 1 if something is wrong."""
    question = _question(args)
    screen = Screen()
    while True:
        rows, silent = _ask(args, question)
        if args.selector:
            # Only running experiments have labels.
            rows = [row for row in rows if row.live is not None and args.selector(row.live.labels)]
        if question.name and not rows:
            raise _unknown(args, question, silent)
        if args.watch and args.output in ("table", "wide"):
            screen.show(_text(args, question, rows) or "nothing is known")
        else:
            _print(args, question, rows, silent)
        if not args.watch or all(row.is_settled for row in rows):
            return int(any(row.is_bad for row in rows))
        time.sleep(_EVERY_S)


def _question(args: argparse.Namespace) -> _Question:
    """Return the query of the arguments. Raises UsageError for flags that contradict each other."""
    flags = options.cluster_flags(args)
    named = typed(args, "env")
    if flags and named:
        raise UsageError("--env names an environment, and -n, --context and --kubeconfig a cluster", next="choose one")
    team, _, name = experiments.name_in_spec(args.experiment_name or "").rpartition("/")
    try:
        settings = git_repository.settings_of(args)
    except UsageError:
        if named:
            raise
        settings = project.find_settings(Path.cwd())
    # If a default names an environment, ask only that one; always ask this machine.
    env = settings.environment(args.env) if args.env and not flags else None
    places = tuple(
        status_sources.Place(context=each.context, namespace=each.namespace, env=label)
        for label, each in settings.environments.items()
        if each.context and env in (None, label)
    )
    if flags or not (places or named):
        kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
        namespace = None if args.all_namespaces else args.namespace
        places = (status_sources.Place(context=args.context, namespace=namespace, kubeconfig=kubeconfig),)
    # The user typed no flag and may expect the environments that a default excludes.
    why = f"{getattr(args.env, 'source', 'a default')} says {env}; --env NAME asks another"
    others = [label for label in settings.environments if label != env] if env and not named else []
    return _Question(
        name=name,
        team=team or args.team or "",
        settings=settings,
        env=env,
        is_here=not flags and not named,
        is_git=not flags and settings.repository is not None,
        names_cluster=bool(flags or named),
        names_git=bool(named or typed(args, "repo")),
        places=places,
        left_out=dict.fromkeys(others, why),
    )


def _ask(args: argparse.Namespace, question: _Question) -> tuple[list[status_sources.Row], dict[str, str]]:
    """Return the rows, and the unreachable places with the error. Raises that error if flags named the place."""
    here = status_sources.Part(name="here", ask=partial(status_sources.ask_here, question.name))
    clusters = {
        place: status_sources.Part(
            name=place.name,
            ask=partial(status_sources.ask_cluster, place, question.name),
            is_needed=question.names_cluster,
        )
        for place in question.places
    }
    git = status_sources.Part(
        name="git",
        ask=partial(status_sources.ask_git, args, question.settings, question.env),
        is_needed=question.names_git,
    )
    parts: list[status_sources.Part[Any]] = [here] if question.is_here else []
    parts += [*clusters.values(), *([git] if question.is_git else [])]
    status_sources.ask_all(parts)
    silent = {**question.left_out, **{part.name: part.error.what for part in parts if part.error}}
    if not (question.is_git or question.names_cluster):
        silent["git"] = _REPOSITORY
    lives = {place: part.answer for place, part in clusters.items() if part.answer}
    rows = [
        status_sources.Row(where="here", name=status.name, live=status, why=why)
        for status, why in (here.answer.found if here.answer else ())
    ]
    return [*rows, *_rows_there(question, lives, git.answer)], silent


def _rows_there(
    question: _Question,
    lives: Mapping[status_sources.Place, status_sources.Live],
    published: Sequence[environments.Placed] | None,
) -> Iterator[status_sources.Row]:
    """Yield environments from Git and clusters, then other running experiments."""
    taken: set[tuple[str, str, str]] = set()
    repository = question.settings.repository
    for placed in published or ():
        if question.name in ("", placed.name) and question.team in ("", placed.team):
            answer = next((live for place, live in lives.items() if place.env == placed.env), None)
            row = _row_of(placed, answer, repository)
            if row.live is not None:
                taken.add((placed.env, row.live.namespace, row.live.name))
            yield row
    for place, answer in lives.items():
        for status, why in answer.found:
            if (place.env, status.namespace, status.name) not in taken:
                where = place.env or answer.context or place.name
                yield status_sources.Row(where=where, name=status.name, context=answer.context, live=status, why=why)


def _row_of(
    placed: environments.Placed, answer: status_sources.Live | None, repository: project.Repository | None
) -> status_sources.Row:
    live, why = None, None
    pointer = placed.pointer
    if answer is not None and pointer is not None:
        place = placed.name, pointer.destination.namespace
        live, why = next((pair for pair in answer.found if (pair[0].name, pair[0].namespace) == place), (None, None))
        application = answer.application(placed, repository.url if repository else "")
        why = (argocd_sync.why_unsynced(application) if application else None) or _drift(placed, live) or why
        if live is None and why is None:
            why = diagnosis.Diagnosis(cause="start", text=f"published, and {answer.context} runs nothing of it yet")
    if not placed.has_chart:
        text = placed.fault or "the chart that it names is not in the repository"
        why = diagnosis.Diagnosis(cause="chart", text=text, next=f"symph history {placed.name} --env {placed.env}")
    return status_sources.Row(
        where=placed.env,
        name=placed.name,
        team=placed.team,
        context=answer.context if answer else None,
        placed=placed,
        live=live,
        why=why,
    )


def _drift(placed: environments.Placed, live: backend_status.ExperimentStatus | None) -> diagnosis.Diagnosis | None:
    pointer, label = placed.pointer, live.chart if live else ""
    wanted = helpers.chart_label(pointer.chart.split("/")[2], pointer.version) if pointer else ""
    if not label or pointer is None or label == wanted:
        return None
    step = f"symph history {placed.name} --env {placed.env}"
    return diagnosis.Diagnosis(cause="drift", text=f"Git says {wanted}, the cluster runs {label}", next=step)


def _unknown(args: argparse.Namespace, question: _Question, silent: Mapping[str, str]) -> SymphError:
    """Return NotFound for an unknown experiment, ToolFailed if a place that may know it did not answer."""
    what = f"nothing is known of {args.experiment_name}"
    _note_silent(silent)
    unasked = {_REPOSITORY, *question.left_out.values()}
    failed = [name for name, why in silent.items() if why not in unasked and not why.startswith("no cluster is")]
    if failed:
        return ToolFailed(f"{what}, and {', '.join(failed)} did not answer", next="symph status, when it does again")
    return NotFound(
        what, next="symph status lists what is known; -n NAMESPACE or --env ENV --repo URL say where to look"
    )


def _print(
    args: argparse.Namespace, question: _Question, rows: Sequence[status_sources.Row], silent: Mapping[str, str]
) -> None:
    if args.output in ("json", "yaml"):
        missing = [{"name": name, "why": why} for name, why in silent.items()]
        items = [
            row.item() | {"details": look.record_of(row.live) if row.live and question.name else None} for row in rows
        ]
        output.print_record(args, "StatusList", {"items": items, "notAsked": missing})
    elif args.output == "name":
        for name in dict.fromkeys(row.name for row in rows):
            output.line(name)
    elif text := _text(args, question, rows):
        output.line(text)
    else:
        output.note("nothing is known")
    for row in rows:
        if row.placed and row.placed.fault:
            output.warn(f"the pointer of {row.team}/{row.name} in {row.where} cannot be read: {row.placed.fault}")
    if args.output not in ("json", "yaml"):
        _note_silent(silent)


def _note_silent(silent: Mapping[str, str]) -> None:
    for why in dict.fromkeys(silent.values()):
        output.note(f"not asked: {', '.join(name for name in silent if silent[name] == why)}: {why}")


_LEADING = (
    *output.columns("where", "version"),
    output.Column("STATE", "state", state=lambda item: str(item["color"])),
    output.Column("READY", lambda item: "" if item["processes"] is None else f"{item['ready']}/{item['processes']}"),
)
_WIDE = (
    output.Column("RUNS", "running"),
    *output.columns("was", "op", "at", "by", "team", "context", "namespace"),
    output.Column("HELD BY", lambda item: ", ".join(output.texts(item["heldBy"]))),
    output.Column("DIGEST", "digest"),
)


def _text(args: argparse.Namespace, question: _Question, rows: Sequence[status_sources.Row]) -> str:
    """Return the table, cut to the terminal's width; for one experiment with each cause and next step below."""
    if not rows:
        return ""
    items = [{**row.item(), "color": row.color, "sentence": row.why.sentence if row.why else ""} for row in rows]
    columns, room, below = [*_LEADING, *experiments.took_columns(items)], output.room_of(args.output), []
    if args.output == "wide" or not question.name:
        wide, room = (_WIDE, None) if args.output == "wide" else ((), room or _WIDTH)
        columns = [output.Column("NAME", "name"), *columns, *wide, output.Column("WHY", "sentence")]
    else:
        below = [line for row in rows for line in _below(row)]
        if len(rows) == 1 and (live := rows[0].live):
            below += look.detail_lines(args, live)
    table = output.format_table(items, columns, headers=not args.no_headers, room=room)
    return "\n".join([table, *below])


def _below(row: status_sources.Row) -> Iterator[str]:
    if row.why:
        yield printable_line(f"{row.where}: {row.why.sentence}")
        yield from [f"  next: {row.why.next}"] if row.why.next else []
    for line in look.lines_of_end(row.live) if row.live else ():
        yield printable_line(f"{row.where}: {line}")
