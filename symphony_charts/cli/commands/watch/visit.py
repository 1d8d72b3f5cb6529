"""`symph visit`: a service in the browser, or its address."""

from __future__ import annotations

import argparse
import sys
import time

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.backend.status import ExperimentStatus


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph visit`."""
    parser.add_argument("service", metavar="SERVICE", nargs="?", help="the service (default: the only one)")
    common.add_experiment(parser)
    parser.add_argument("-u", "--url-only", action="store_true", help="print the URL and open no browser")
    parser.add_argument("--scheme", choices=("http", "https"), default="http", help="what the URL begins with")
    watching.add_target(parser)
    common.add_examples(parser, "symph visit tensorboard", "symph visit --url-only tensorboard rl --on kube")


def run(args: argparse.Namespace) -> int:
    """Print the URL; where a port had to be forwarded for it, keep that open until interrupted."""
    watcher = watching.watcher_of(args)
    status = watching.find_status(args, watcher, events=True)
    service = args.service or _only(status)
    with watcher.visit(status.name, service) as address:
        url = f"{args.scheme}://{address}"
        output.line(url)
        sys.stdout.flush()
        if not args.url_only and output.can_ask():
            import webbrowser

            webbrowser.open(url)
        if watcher.backend == "kube" and address not in [one.outside for one in status.services]:
            output.note("forwarded to this machine until you press Ctrl-C")
            _wait_for_interrupt()
    return 0


def _only(status: ExperimentStatus) -> str:
    from symphony_charts.errors import NotFound, UsageError

    names = [one.name for one in status.services]
    if not names:
        raise NotFound(f"{status.name} has no services", next="give a process `binds` or `exposes`")
    if len(names) > 1:
        raise UsageError(f"{status.name} has several services", next=f"name one of {', '.join(names)}")
    return names[0]


def _wait_for_interrupt() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
