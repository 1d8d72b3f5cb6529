"""``python -m tests.e2e.rig up|down|env|status``: the test cluster, for a person.

`up` starts it and prints how to use it, `env` prints the line for the shell: ``eval "$(python -m tests.e2e.rig env)"``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from symphony_charts.errors import SymphError
from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.nodes import DEFAULT_POOLS


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.rig", description=__doc__)
    default = Path(tempfile.gettempdir()) / f"symph-e2e-{os.getuid()}"
    parser.add_argument("--state", type=Path, default=default, help="folder of keys, logs and pids (%(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start the control plane, the nodes and their kubelet")
    starting.add_argument("--pools", type=Path, default=DEFAULT_POOLS, help="YAML file of node pools (%(default)s)")
    starting.add_argument("--gangs", action="store_true", help="switch on Kubernetes' own gang scheduling")
    commands.add_parser("down", help="stop everything")
    commands.add_parser("env", help="print the KUBECONFIG line")
    commands.add_parser("status", help="pid and memory of each process")
    options = parser.parse_args(argv)
    try:
        return _run(options)
    except SymphError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    cluster = Cluster(folder=options.state.resolve())
    export = f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}"
    if options.command == "up":
        started = time.monotonic()
        cluster.up(pools=options.pools, gangs=options.gangs)
        print(f"up in {time.monotonic() - started:.1f} s; logs in {options.state / 'log'}", file=sys.stderr)
        print(export)
    elif options.command == "down":
        cluster.down()
    elif options.command == "env":
        print(export)
    else:
        for daemon in cluster.daemons():
            state = f"pid {daemon.pid:<7} {daemon.memory_mib:6.0f} MiB" if daemon.is_alive else "down"
            print(f"{daemon.name:24} {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
