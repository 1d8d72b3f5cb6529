"""`symph doctor`: the tools and features that this machine or a cluster has and lacks."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from symphony_charts.backend import status
from symphony_charts.cli import options, output
from symphony_charts.errors import UsageError
from symphony_charts.kubernetes import capabilities as kubernetes_capabilities
from symphony_charts.kubernetes import client
from symphony_charts.local.machine import health


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for",
        dest="needs",
        metavar="USE",
        action="append",
        default=[],
        choices=("tmux", "helm", "git", "kubectl"),
        help="fail unless this can be used: tmux, helm, git or kubectl; may be repeated",
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="look at a cluster instead: the kinds of workload, gangs and queues that it serves",
    )
    options.add_target(parser)
    options.add_output(parser, ("table", "wide", "json", "yaml", "name"))
    options.add_examples(parser, "symph doctor", "symph doctor --for tmux --for helm", "symph doctor --cluster -n team")


_COLORS = {"ok": "good", "warning": "busy", "missing": "bad"}


def run(args: argparse.Namespace) -> int:
    """List each check with its state and, if it fails, the next step."""
    capabilities = _of_cluster(args) if args.cluster else _of_machine(args)
    items = [asdict(capability) for capability in capabilities]
    columns = [
        output.Column("WHAT", "name"),
        output.Column("STATE", "status", state=lambda item: _COLORS[str(item["status"])]),
        *output.columns("detail", "next"),
    ]
    output.print_items(args, "Check", items, columns)
    lacking = [item for item in items if item["name"] in args.needs and item["status"] == "missing"]
    return 1 if lacking else 0


def _of_machine(args: argparse.Namespace) -> list[status.Capability]:
    if options.cluster_flags(args):
        raise UsageError("-n, --context and --kubeconfig choose a cluster", next="add --cluster")
    return health.examine()


def _of_cluster(args: argparse.Namespace) -> list[status.Capability]:
    if args.needs:
        raise UsageError("--for asks about this machine, --cluster about a cluster", next="choose one")
    api = client.KubeApi(Path(args.kubeconfig) if args.kubeconfig else None, args.context)
    try:
        return kubernetes_capabilities.capabilities_of(api, args.namespace or api.namespace)
    finally:
        api.close()
