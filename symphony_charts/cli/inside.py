"""`symph exec`, `ssh`, `cp`, `open` and `collect`: work inside the processes of an experiment."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import threading
import webbrowser
from pathlib import Path

from symphony_charts.backend import protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import experiments, look, options, output
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.system import files


def configure_exec(parser: argparse.ArgumentParser) -> None:
    options.add_component(parser)
    options.add_experiment(parser)
    options.add_flag(parser, "-T", "--no-tty", help="allocate no terminal")
    options.add_backend(parser)
    options.add_examples(
        parser, "symph exec learner -- nvidia-smi", "symph exec agent/3 rl --on kube -- sh -c 'ls /tmp'"
    )


def run_exec(args: argparse.Namespace) -> int:
    if not args.has_remainder or not args.remainder:
        raise UsageError("the command to run follows --", next="symph exec PROCESS -- COMMAND")
    return execute(args, args.remainder)


def execute(args: argparse.Namespace, command: list[str]) -> int:
    """Run `command` in the environment of `args.component_name`, with a terminal if there is one; return its status."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    instance = experiments.one_instance(status, args.component_name)
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not getattr(args, "no_tty", False)
    sys.stdout.flush()
    return watcher.exec(status.name, instance, command, tty=has_terminal)


def configure_ssh(parser: argparse.ArgumentParser) -> None:
    options.add_component(parser)
    options.add_experiment(parser)
    options.add_backend(parser)
    options.add_examples(parser, "symph ssh learner", "echo nvidia-smi | symph ssh learner rl --on kube")


# bash if there is one; many images only have `sh`. A login shell would read /etc/profile, which replaces PATH.
_SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash; exec sh"]


def run_ssh(args: argparse.Namespace) -> int:
    """Open a shell on this terminal, or run the commands from stdin; return its exit status."""
    return execute(args, _SHELL)


def configure_cp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("src_file", metavar="SOURCE", help="a path, or PROCESS:PATH")
    parser.add_argument("dest_file", metavar="DEST", help="a path, or PROCESS:PATH")
    options.add_experiment(parser)
    options.add_dry_run_like_symphony(parser)
    options.add_backend(parser)
    options.add_examples(
        parser, "symph cp learner:/results ./results", "symph cp config.yaml agent/0:/tmp/ rl --on kube"
    )


# `process:`, `group/process:`, `process/2:` before a path; a local path with a colon is written ./a:b.
_REMOTE = re.compile(r"((?:[A-Za-z0-9][A-Za-z0-9_.-]*/){0,2}[A-Za-z0-9][A-Za-z0-9_.-]*)?:(.+)", re.S)


def run_cp(args: argparse.Namespace) -> int:
    """Copy one file or folder; exactly one side names a process."""
    source, dest = parse_place(args.src_file), parse_place(args.dest_file)
    place = source or dest
    if place is None or (source and dest):
        raise UsageError("exactly one side is PROCESS:PATH", next="symph cp learner:/results ./results")
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    word, path = place
    if not word:
        if len(status.instances) != 1:
            known = ", ".join(one.path for one in status.instances)
            raise UsageError("several processes run; name one before the colon", next=f"one of {known}")
        word = status.instances[0].path
    instance = experiments.one_instance(status, word)
    if args.dry_run:
        output.note(f"would copy {args.src_file} to {args.dest_file} ({instance.path} of {status.name})")
    elif source:
        watcher.copy_out(status.name, instance, path, Path(args.dest_file).expanduser())
    else:
        watcher.copy_in(status.name, instance, Path(args.src_file).expanduser(), path)
    return 0


def parse_place(text: str) -> tuple[str, str] | None:
    """Return process (empty: the only one) and path of ``PROCESS:PATH``; None for a local path."""
    found = _REMOTE.fullmatch(text)
    return (found[1] or "", found[2]) if found else None


def configure_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service_name", metavar="SERVICE", nargs="?", help="the service (default: the only one)")
    options.add_experiment(parser)
    options.add_flag(parser, "-u", "--url-only", help="print the URL and open no browser")
    parser.add_argument("--scheme", choices=("http", "https"), default="http", help="scheme of the URL")
    options.add_backend(parser)
    options.add_examples(parser, "symph open tensorboard", "symph open --url-only tensorboard rl --on kube")


def run_open(args: argparse.Namespace) -> int:
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher, events=True)
    service = args.service_name or _only(status)
    with watcher.visit(status.name, service) as address:
        url = f"{args.scheme}://{address}"
        output.line(url)
        sys.stdout.flush()
        if not args.url_only and output.can_ask():
            webbrowser.open(url)
        if watcher.backend == "kube" and address not in [one.outside for one in status.services]:
            output.note("forwarded to this machine until you press Ctrl-C")
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
    return 0


def _only(status: backend_status.ExperimentStatus) -> str:
    names = [service.name for service in status.services]
    if not names:
        raise NotFound(f"{status.name} has no services", next="give a process `binds` or `exposes`")
    if len(names) > 1:
        raise UsageError(f"{status.name} has several services", next=f"name one of {', '.join(names)}")
    return names[0]


def configure_collect(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_list(parser, "--path", metavar="PATH", help="also download this file or folder of each process")
    options.add_list(parser, "-p", "--process", metavar="PROCESS", help="only from these (default: all)")
    parser.add_argument("--to", metavar="FOLDER", help="target folder (default: ./EXPERIMENT-RUN)")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml"))
    options.add_examples(parser, "symph collect rl", "symph collect rl --path /results -p learner --to out --on kube")


def run_collect(args: argparse.Namespace) -> int:
    """Write `experiment.json` and `<process>/log`, `<process>/<path>` into a folder; return 1 if any is missing.

    A finished container provides only its log: its files cannot be read any more.
    """
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher, events=True)
    folder = Path(args.to or f"{status.name}-{status.run or 'run'}")
    chosen = [instance for word in args.process for instance in experiments.some_instances(status, word)] or list(
        status.instances
    )
    files.write_file(folder / "experiment.json", (json.dumps(look.record_of(status), indent=2) + "\n").encode())
    items = [item for one in chosen for item in _collect(watcher, status, one, args.path, folder)]
    columns = [output.Column("PROCESS", "name"), *output.columns("what", "result")]
    output.print_items(args, "Collected", items, columns)
    output.note(f"collected into {folder}")
    return int(any(not item["done"] for item in items))


def _collect(
    watcher: protocol.Watcher,
    status: backend_status.ExperimentStatus,
    one: backend_status.InstanceStatus,
    paths: list[str],
    folder: Path,
) -> list[dict[str, object]]:
    place = folder / one.path
    text = "".join(line.text for line in watcher.logs(status.name, backend_status.LogQuery(instances=(one.path,))))
    files.write_file(place / "log", text.encode())
    results = [("log", f"{text.count(chr(10))} lines", True)]
    for path in paths:
        target = place / (path.strip("/").rpartition("/")[2] or "root")
        try:
            # Copy into the folder, over an earlier copy.
            watcher.copy_out(status.name, one, path, place)
            results.append((path, str(target), True))
        except SymphError as error:
            results.append((path, error.what, False))
    return [{"name": one.path, "what": what, "result": result, "done": done} for what, result, done in results]
