"""The `add_...` functions add options that several verbs share, under one spelling each.

`-v` and `--color` are taken by every verb, before or after its name; the rest is added by the verbs that need it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from symphony_charts.errors import UsageError

__all__ = [
    "BACKENDS",
    "FINDING_FORMATS",
    "FORMATS",
    "add_backend",
    "add_cluster",
    "add_component",
    "add_dry_run",
    "add_examples",
    "add_experiment",
    "add_global_options",
    "add_on",
    "add_output",
    "add_placement",
    "add_specs",
    "add_volumes",
    "add_yes",
    "backend_of",
    "cluster_flags",
    "parse_assignments",
]

FORMATS = ("table", "wide", "json", "yaml", "name")
FINDING_FORMATS = ("table", "json", "yaml", "sarif")
BACKENDS = ("tmux", "kube")


def add_global_options(parser: argparse.ArgumentParser, *, is_verb: bool = False) -> None:
    """Add `-v` and `--color`; a verb's copy keeps what was given before the verb."""
    absent: object = argparse.SUPPRESS if is_verb else None
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=argparse.SUPPRESS if is_verb else False,
        help="say more; show the output of programs that failed",
    )
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default=absent, help="when to colour (default: on a terminal)"
    )


def add_output(
    parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS, *, default: str = "table", headers: bool = True
) -> None:
    """Add `-o FORMAT` (args.output) and `--no-headers` (args.no_headers)."""
    parser.add_argument(
        "-o", "--output", choices=tuple(formats), default=default, help=f"format of the answer (default: {default})"
    )
    if headers and "table" in formats:
        parser.add_argument("--no-headers", action="store_true", help="leave out the line of column names")


def add_dry_run(parser: argparse.ArgumentParser, help: str = "say what would be done and change nothing") -> None:
    """Add `--dry-run` (args.dry_run), also under Symphony's `-dr`."""
    parser.add_argument("-dr", "--dry-run", action="store_true", help=help)


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add `-y/--yes` (args.yes) for verbs that ask before they destroy."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal")


def add_volumes(parser: argparse.ArgumentParser) -> None:
    """Add `--volumes`, for verbs that remove experiments."""
    text = "on this machine: also the volumes that outlive runs, with all their files"
    parser.add_argument("--volumes", action="store_true", help=text)


def add_on(parser: argparse.ArgumentParser) -> None:
    """Add `--on tmux|kube` (args.on), read by `backend_of`."""
    parser.add_argument(
        "--on", choices=BACKENDS, default=None, help="where the experiment runs (default: $SYMPH_ON, else tmux)"
    )


def add_cluster(parser: argparse.ArgumentParser, namespace: str) -> None:
    """Add `-n/--namespace` (`namespace` is its help), `--context` and `--kubeconfig`."""
    parser.add_argument("-n", "--namespace", default=None, help=namespace)
    parser.add_argument("--context", default=None, help="the kubeconfig's context (default: the current one)")
    parser.add_argument("--kubeconfig", metavar="FILE", default=None, help="default: $KUBECONFIG, else ~/.kube/config")


def cluster_flags(args: argparse.Namespace) -> list[str]:
    """Which of the flags of `add_cluster` were given: any of them means a cluster."""
    return [name for name in ("namespace", "context", "kubeconfig") if getattr(args, name, None)]


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Add `--on`, and for a cluster `-n/--namespace`, `--context`, `--kubeconfig`, each of which means `--on kube`."""
    add_on(parser)
    add_cluster(parser, "of the cluster (default: all that may be read)")


def backend_of(args: argparse.Namespace) -> str:
    """The backend the user chose: the flag, else $SYMPH_ON, else tmux."""
    chosen: str = getattr(args, "on", None) or os.environ.get("SYMPH_ON", "") or "tmux"
    if chosen not in BACKENDS:
        raise UsageError(f'SYMPH_ON names no backend: "{chosen}"', "", f"use one of {', '.join(BACKENDS)}")
    return chosen


def add_experiment(parser: argparse.ArgumentParser, *, required: bool = False, positional: bool = True) -> None:
    """Add the experiment's name (args.experiment_name), as a word or as `-e/--exp`."""
    text = "the experiment; part of a name is enough when it fits only one"
    if not positional:
        flags = ("-e", "--exp", "--experiment", "--experiment-name")
        parser.add_argument(*flags, dest="experiment_name", required=required, default=None, help=text)
    elif required:
        parser.add_argument("experiment_name", metavar="EXPERIMENT", help=text)
    else:
        parser.add_argument(
            "experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help=f"{text} (default: the current one)"
        )


def add_component(parser: argparse.ArgumentParser) -> None:
    """Add the process (args.component_name), written `process` or `group/process`."""
    parser.add_argument("component_name", metavar="PROCESS", help="process, or group/process where a name fits several")


def add_specs(parser: argparse.ArgumentParser, *, many: bool = True) -> None:
    """Add the experiment files (args.specs, a list) or the one file (args.spec)."""
    text = "experiment file: YAML, JSON or Python"
    if many:
        parser.add_argument("specs", metavar="SPEC", nargs="+", help=text)
    else:
        parser.add_argument("spec", metavar="SPEC", help=text)


def add_placement(parser: argparse.ArgumentParser) -> None:
    """Add `--pools FILE` (args.pools) and `--force-unschedulable` (args.force_unschedulable)."""
    parser.add_argument(
        "--pools",
        metavar="FILE",
        action="append",
        default=[],
        help="node pools to prove the fit on; may be repeated (default: the spec's placement.pools)",
    )
    parser.add_argument(
        "--force-unschedulable", action="store_true", help="go on even if a group cannot be scheduled on the pools"
    )


def parse_assignments(texts: Sequence[str], flag: str = "--set") -> dict[str, str]:
    """`["a=1", "b=x=y"]` as `{"a": "1", "b": "x=y"}`; raises UsageError where the `=` or the key is missing."""
    assignments: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f'{flag} takes KEY=VALUE, got "{text}"')
        assignments[key] = value
    return assignments


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add --system, which says what the cluster's own pods take of the nodes."""
    parser.add_argument(
        "--system",
        metavar="FILE|AMOUNTS",
        default=None,
        help="what the cluster's own pods take: cpu=470m,memory=774Mi of each node; a file with"
        " `kubectl get daemonsets,deployments -A -o json`; or elsewhere, where kube-system runs on other pools",
    )


def add_examples(parser: argparse.ArgumentParser, *lines: str) -> None:
    """Show these command lines under the verb's help."""
    parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in lines)
