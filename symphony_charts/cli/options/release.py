"""What the verbs of Helm releases share: which cluster, how long to wait, where the values come from."""

from __future__ import annotations

import argparse
import re

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["add_source", "add_target", "add_waiting", "open_releases", "seconds", "target_is_given"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.kubernetes.releases.releases import Releases

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add `-n/--namespace`, `--context` and `--kubeconfig`."""
    parser.add_argument(
        "-n", "--namespace", default=None, help="the namespace (default: the spec's, else the context's)"
    )
    parser.add_argument("--context", default=None, help="the kubeconfig's context (default: the current one)")
    parser.add_argument("--kubeconfig", metavar="FILE", default=None, help="default: $KUBECONFIG, else ~/.kube/config")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add what is installed, its name, and the values over its own."""
    parser.add_argument("source", metavar="SPEC|CHART", help="experiment file, chart folder, or .tgz archive")
    parser.add_argument("--name", default=None, help="the release (default: the experiment's name)")
    add_values(parser)
    common.add_placement(parser)


def add_waiting(parser: argparse.ArgumentParser) -> None:
    """Add `--wait`, `--wait-for-jobs` and `--timeout`."""
    parser.add_argument(
        "--wait", action="store_true", help="return when all is ready or has finished; fail when a Job fails"
    )
    parser.add_argument("--wait-for-jobs", action="store_true", help="the same, and every Job has finished")
    parser.add_argument(
        "--timeout", type=seconds, default=300.0, metavar="TIME", help="for helm and for waiting: 90, 90s, 5m (default)"
    )


def seconds(text: str) -> float:
    """``90``, ``90s``, ``5m`` or ``1h`` in seconds; argparse turns the ValueError into wrong usage."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text, re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is no time")
    return float(found[1]) * _UNITS[found[2]]


def target_is_given(args: argparse.Namespace) -> bool:
    """Whether a flag says that a release on a cluster is meant."""
    return any(getattr(args, name, None) for name in ("namespace", "context", "kubeconfig"))


def open_releases(args: argparse.Namespace) -> Releases:
    """The releases of the cluster that the flags name. Raises ToolMissing or ToolFailed."""
    from pathlib import Path

    from symphony_charts.kubernetes.releases.releases import Releases, Target

    target = Target(kubeconfig=Path(args.kubeconfig).expanduser() if args.kubeconfig else None, context=args.context)
    return Releases(target, timeout_s=getattr(args, "timeout", 300.0))
