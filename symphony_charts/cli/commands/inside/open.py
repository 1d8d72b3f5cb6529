"""`symph open`: a service in the browser, or its address."""

from __future__ import annotations

import argparse
import sys
import time
import webbrowser

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.cli import experiments, output
from symphony_charts.errors import NotFound, UsageError

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the URL; where a port had to be forwarded for it, keep that open until interrupted."""
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
            _wait_for_interrupt()
    return 0


def _only(status: ExperimentStatus) -> str:
    names = [service.name for service in status.services]
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
