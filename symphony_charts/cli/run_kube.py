"""`symph run --on kube`: install the experiment's chart and print its lines until its end."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from symphony_charts.backend.diagnosis import name_of_several
from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.cli import output
from symphony_charts.cli.experiments import diagnose
from symphony_charts.cli.following import Follower
from symphony_charts.cli.launch import follow, left_running, say_end, stay
from symphony_charts.cli.specs import prepared_of, user_values_of
from symphony_charts.clusters.kubernetes import KubeCluster
from symphony_charts.errors import CheckFailed
from symphony_charts.kubernetes.backend import KubeWatcher
from symphony_charts.spec import files


def run_kube(args: argparse.Namespace, began: float) -> int:
    args.backend = "kube"
    spec = files.read(args.spec, args.spec_set)
    prepared = prepared_of(args, spec)
    kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
    cluster = KubeCluster(namespace=args.namespace, context=args.context, kubeconfig=kubeconfig)
    values, folder = user_values_of(args), spec.path.parent
    status = cluster.start_prepared(prepared, folder=folder, values=values, force=args.force, dry_run=args.dry_run)
    if not isinstance(status, ExperimentStatus):
        return 0
    name, namespace = status.name, status.namespace
    text = f"{name}   started in {namespace} in {time.time() - began:.2f} s   ctrl-c: leave or end it"
    if args.detach:
        output.note(text)
        left_running(args, name)
        return 0
    watcher = KubeWatcher(namespace=namespace, context=args.context, kubeconfig=kubeconfig)
    follower = follow(args, watcher, name)

    def begin() -> None:
        output.note(text)
        follower.start()

    code, is_over = stay(name, begin, lambda: _status_of(follower), lambda: watcher.delete(name))
    if not is_over:
        left_running(args, name)
        return code
    say_end(args, follower.last, name, code, began, prepared.plan)
    if follower.last is None or follower.last.phase != "failed":
        return code
    why = diagnose(watcher, follower.last)
    what = f'process "{name_of_several(why.paths)}" {why.text}' if why and why.paths else "it failed"
    error = CheckFailed(what, next=why.next if why else f"symph status {name} -n {namespace}")
    error.exit_code = code
    raise error


def _status_of(follower: Follower) -> int:
    """Return 0, or the exit status of the process that failed first; 1 if it is unknown."""
    status = follower.wait()
    if status is None or status.phase == "succeeded":
        return 0
    failed = [one for one in status.instances if one.phase == "failed" and one.status]
    return min(failed, key=lambda one: one.ended or 0.0).status or 1 if failed else 1
