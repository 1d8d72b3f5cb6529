"""`symph doctor`: the tools and features that this machine or a cluster has and lacks."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
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
    options.add_flag(
        parser, "--cluster", help="look at a cluster instead: the kinds of workload, gangs and queues that it serves"
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
    room = output.room_of(args.output)
    if args.output == "table" and room:
        output.line("\n".join(_wrapped(items, room)))
    else:
        output.print_items(args, "Check", items, columns)
    lacking = [item for item in items if item["name"] in args.needs and item["status"] == "missing"]
    return 1 if lacking else 0


def _wrapped(items: Sequence[Mapping[str, object]], room: int) -> Iterator[str]:
    """Yield the checks with details and next steps wrapped to the terminal, which a table would cut."""
    width = max(len(str(item["name"])) for item in items) + 2
    for item in items:
        state = output.paint(f"{item['status']:9}", _COLORS[str(item["status"])])
        text = ". ".join(filter(None, (str(item["detail"]), f"next: {item['next']}" if item["next"] else "")))
        first, *more = textwrap.wrap(text, max(room - width - 9, 20)) or [""]
        yield f"{item['name']:{width}}{state}{first}".rstrip()
        yield from (" " * (width + 9) + line for line in more)


def _of_machine(args: argparse.Namespace) -> list[status.Capability]:
    if options.cluster_flags(args):
        raise UsageError("-n, --context and --kubeconfig choose a cluster", next="add --cluster")
    return health.examine()


def _of_cluster(args: argparse.Namespace) -> list[status.Capability]:
    if args.needs:
        raise UsageError("--for asks about this machine, --cluster about a cluster", next="choose one")
    with client.KubeApi(Path(args.kubeconfig) if args.kubeconfig else None, args.context) as api:
        return kubernetes_capabilities.capabilities_of(api, args.namespace or api.namespace)
