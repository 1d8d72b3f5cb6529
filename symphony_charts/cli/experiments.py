"""Find the backend, the experiment and the processes that arguments mean, and diagnose them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from symphony_charts.backend.diagnosis import Diagnosis, diagnose_status
from symphony_charts.backend.protocol import (
    Watcher,
    absent_experiment,
    chosen_at,
    current_of,
    find_instances,
    match_names,
    match_processes,
)
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogQuery
from symphony_charts.cli import options, output
from symphony_charts.cli.defaults import typed
from symphony_charts.cli.output import choose
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.formats.printable import age, printable_line
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.runs import Run, current_folder, find_run, live_runs, newest_runs, runs_of
from symphony_charts.system.files import full_disk
from symphony_charts.system.user_folders import refuse_elsewhere, state_dir

if TYPE_CHECKING:
    from symphony_charts.kubernetes.backend import KubeWatcher

_SPEC_SUFFIXES = {Path(name).suffix for name in options.SPEC_NAMES}
_COLORS = {
    **dict.fromkeys(("running", "succeeded"), "good"),
    **dict.fromkeys(("queued", "pending", "stopping"), "busy"),
    **dict.fromkeys(("failed", "lost", "damaged"), "bad"),
    "stopped": "dim",
}


def phase_color(item: Mapping[str, object]) -> str:
    return _COLORS.get(str(item["phase"]), "")


def gpu_ids(item: Mapping[str, object]) -> str:
    """Return the first 12 characters of each GPU id, which nvidia-smi and CUDA accept, too."""
    return ",".join(gpu[:12] for gpu in output.texts(item["gpus"]))


def took_columns(items: Sequence[Mapping[str, object]]) -> list[output.Column]:
    """Return the column of the key `seconds`, if an item has ended; else no column."""
    took = output.Column("TOOK", lambda item: "" if item["seconds"] is None else age(item["seconds"]))
    return [took] if any(item["ended"] for item in items) else []


def watcher_of(args: argparse.Namespace) -> Watcher:
    """Return the watcher of the backend that the arguments mean: a project's own cluster, else that of `--on`."""
    is_own = args.symphony.has_own_cluster and not typed(args, "on") and not options.cluster_flags(args)
    backend = "" if is_own else options.place_of(args)
    if backend not in ("tmux", "kube"):
        watcher: Watcher = args.symphony.cluster_for(args).watcher
        return watcher
    if backend == "kube":
        kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
        namespace = None if getattr(args, "all_namespaces", False) else args.namespace
        return watcher_of_cluster(namespace, args.context, kubeconfig)

    refuse_elsewhere()
    why = full_disk(state_dir())
    if why:
        what = f"the disk of {state_dir()} is full ({why}): states are of the past, and logs have gaps"
        output.warn(what, f"make room, by symph local gc or elsewhere (df -h {state_dir()})")
    return LocalWatcher()


def watcher_of_cluster(namespace: str | None, context: str | None, kubeconfig: Path | None) -> KubeWatcher:
    """Return the watcher of a namespace (None: of all)."""
    # The client of Kubernetes takes 100 ms to import; `symph ps` on this machine does not need it.
    from symphony_charts.kubernetes.backend import KubeWatcher

    return KubeWatcher(namespace=namespace, context=context, kubeconfig=kubeconfig)


def place_flags(args: argparse.Namespace) -> list[str]:
    """Return the typed flags that select the place, for commands that symph runs on the terminal."""
    given = {flag: value for name, flag in options.PLACE_FLAGS.items() if (value := typed(args, name))}
    words = [word for flag, value in given.items() for word in (flag, value)]
    return [*words, "-A"] if getattr(args, "all_namespaces", False) else words


def name_in_spec(word: str) -> str:
    """Return the name in the spec if `word` is a spec or a folder with one; else `word`."""
    # A bare word is a name, even if a folder has that name.
    is_file = Path(word).suffix in _SPEC_SUFFIXES
    path = Path(options.spec_of(word))
    return _name_in(path) if is_file or word in (".", "..") or ("/" in word and path.is_file()) else word


def _name_in(path: Path) -> str:
    # Reading specs takes 0.2 s to import; verbs with a name do not need it.
    from symphony_charts.spec import files

    return files.read(path).experiment.name


def name_of_spec_here() -> str:
    """Return the name of this folder's spec; empty if it is missing, broken, or a Python script, which would run."""
    path = Path(options.spec_of("."))
    if path.suffix == ".py" or not path.is_file():
        return ""
    with contextlib.suppress(SymphError):
        return _name_in(path)
    return ""


def meant_here(*, live: bool = False) -> tuple[str, str]:
    """Return the experiment that a verb without a name means, and its folder if that is another one.

    The first of these: the only one that runs and came from this folder; the one of this folder's spec, if it runs or,
    unless `live`, has run; unless `live`, the last one that ran from this folder; the one that `symph use` chose; the
    only one that runs. Raises NotFound, and ToolMissing if this machine cannot run experiments.
    """
    refuse_elsewhere()
    running = {run.experiment: run for run in live_runs()}
    folder = current_folder()
    ours = [name for name, run in running.items() if folder and run.is_from(folder)]
    if len(ours) == 1:
        return ours[0], ""
    name = name_of_spec_here()
    if ours and name not in ours:
        name = chosen_at(LocalWatcher.place) or ""
        if name not in ours:
            raise NotFound(f"several experiments run here: {', '.join(ours)}", next="name one, or symph use")
    elif name not in running and (live or not runs_of(name)):
        past = [run for run in newest_runs() if folder and run.is_from(folder)]
        if past and not live:
            return max(past, key=lambda run: run.run_id).experiment, ""
        try:
            name = current_of(LocalWatcher())
        except NotFound as error:
            if not past or running:
                raise
            last = max(past, key=lambda run: run.run_id).experiment
            raise NotFound(f"{last} has ended, and no experiment runs here", next="start one: symph up SPEC") from error
    is_elsewhere = name in running and name not in ours
    return name, (running[name].places[0] or "another folder") if is_elsewhere else ""


def run_to_change(args: argparse.Namespace, name: str | None, command: str) -> Run:
    """Return the live run that `name`, or without a name the current folder, means, for a verb that ends processes.

    Without a name, use a run of another folder only after asking, or with `--yes`. `command` is the command line up to
    the name, for the hint that names the run. Raises NotFound, UsageError.
    """
    if name is not None:
        return find_run(name_in_spec(name), live=True)
    found, folder = meant_here(live=True)
    if folder and not args.dry_run:
        what = _is_elsewhere(found, folder)
        if not (args.yes or output.can_ask()):
            raise UsageError(what, next=f"symph {command} {found}, or add --yes")
        output.confirm(args, f"{what}. Continue with {found}?")
    return find_run(found, live=True)


def run_to_use(name: str | None) -> Run:
    """Return the live run that `name`, or without a name the current folder, means. Raises NotFound."""
    if name is not None:
        return find_run(name_in_spec(name), live=True)
    return find_run(_meant_here(live=True), live=True)


def _meant_here(*, live: bool = False) -> str:
    """Return the experiment of `meant_here`, and note if it came from another folder."""
    name, folder = meant_here(live=live)
    if folder:
        output.note(_is_elsewhere(name, folder))
    return name


def _is_elsewhere(name: str, folder: str) -> str:
    return f"no experiment of this folder runs; {name} came from {printable_line(folder)}"


def find_status(args: argparse.Namespace, watcher: Watcher, *, events: bool = False) -> ExperimentStatus:
    """Return the status of the experiment that `args.experiment_name` names: exactly, else loosely, else the current.

    Verbs with a process before the experiment accept the other order, too. Print the watcher's note to stderr. Raises
    NotFound; UsageError if several experiments fit and there is no terminal to ask on.
    """
    name = args.experiment_name
    if name is None:
        is_here = isinstance(watcher, LocalWatcher) and not args.symphony.has_own_cluster
        status = watcher.describe(_meant_here() if is_here else current_of(watcher), events=events)
    else:
        name = name_in_spec(name)
        try:
            status = watcher.describe(_prefix(args)(name), events=events)
        except NotFound:
            status = watcher.describe(_loosely(args, watcher, name), events=events)
    if status.note:
        output.warn(f"{status.name}: {status.note}")
    return status


def find_experiment(args: argparse.Namespace, watcher: Watcher) -> str:
    """Return the name of the experiment that `args.experiment_name` means; raises as `find_status` does."""
    return find_status(args, watcher).name


def some_instances(status: ExperimentStatus, word: str) -> list[InstanceStatus]:
    """Return the instances that `word` names exactly, else loosely in Symphony's order. Raises NotFound, UsageError."""
    found = find_instances(status.instances, word)
    if found:
        return found
    loose, _ = match_processes(((instance.group or None, instance.name) for instance in status.instances), word)
    if not loose:
        known = ", ".join(instance.path for instance in status.instances if not instance.is_step) or "none"
        raise NotFound(f'experiment "{status.name}" has no process "{word}"', next=f"its processes: {known}")
    chosen = choose([f"{group}/{name}" if group else name for group, name in loose], word, "process")
    return find_instances(status.instances, chosen)


def one_instance(status: ExperimentStatus, word: str) -> InstanceStatus:
    """Return the one instance that a word means; of several replicas the first that runs."""
    found = some_instances(status, word)
    return next((one for one in found if one.phase == "running"), found[0])


def _loosely(args: argparse.Namespace, watcher: Watcher, name: str) -> str:
    """Return the experiment that is typed before the process, with both arguments swapped, else a loose match."""
    names, prefix = watcher.names(), _prefix(args)
    process = getattr(args, "component_name", None)
    with contextlib.suppress(NotFound):
        if process and (found := watcher.describe(prefix(process), events=False).name):
            args.component_name, args.experiment_name = args.experiment_name, process
            return found
    matches, is_exact = match_names(names, name, prefix)
    if not matches:
        raise absent_experiment(name, names)
    return matches[0] if is_exact else choose(matches, name, "experiment")


def _prefix(args: argparse.Namespace) -> Callable[[str], str]:
    """Return the function that prefixes names with the user; only a project's own script configures one here."""
    if not args.symphony.has_own_cluster:
        return str
    prefix: Callable[[str], str] = args.symphony.cluster.prefix_username
    return prefix


_MOST = 200


def diagnose(watcher: Watcher, status: ExperimentStatus) -> Diagnosis | None:
    """Return the diagnosis, with the last line of a failed process, or the plan's reason for an unschedulable one."""
    why = diagnose_status(status)
    if why is None or status.backend != "kube":
        # On this machine the supervisor has added the last line.
        return why
    if why.cause == "failed":
        line = _last_line(watcher, status, why.paths[0])
        return replace(why, text=f"{why.text}: {line}") if line and line not in why.text else why
    if why.cause == "pool":
        # Placement takes 100 ms to import.
        from symphony_charts.cli.plan import with_plan

        return with_plan(watcher, status, why)
    return why


def say(why: Diagnosis | None) -> None:
    """Print a cause and the next step for people; print nothing while a process is just starting."""
    if why is not None and why.cause != "start":
        output.note(f"why:  {why.sentence}" + (f"\nnext: {why.next}" if why.next else ""))


def _last_line(watcher: Watcher, status: ExperimentStatus, path: str) -> str:
    """Return the last line of an instance's log; empty if the log is gone."""
    instance = next(each for each in status.instances if each.path == path)
    is_back = instance.phase != "failed" and instance.restarts > 0
    for previous in (is_back, not is_back):
        # Its pod may be gone, or it has no earlier run.
        with contextlib.suppress(SymphError):
            for line in watcher.logs(status.name, LogQuery(instances=(path,), tail=1, previous=previous)):
                return printable_line(line.text.rstrip())[:_MOST]
    return ""
