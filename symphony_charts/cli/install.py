"""`symph install`, `upgrade` and `uninstall`: Helm releases by hand; their history and rollback."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path

from symphony_charts.cli import error_report, options, output, specs
from symphony_charts.errors import UsageError
from symphony_charts.kubernetes.releases import helm_client
from symphony_charts.kubernetes.releases import releases as helm_releases


def _configure(parser: argparse.ArgumentParser, condition: str = "") -> None:
    options.add_source(parser)
    options.add_target(parser)
    options.add_flag(parser, "--create-namespace", help=f"{condition}create the namespace if it does not exist")
    options.add_waiting(parser)
    options.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    options.add_dry_run(parser, "check every object against the cluster, and change nothing")


def configure_install(parser: argparse.ArgumentParser) -> None:
    _configure(parser)
    options.add_examples(
        parser,
        "symph install experiment.yaml",
        "symph install dist/rl-0.2.0.tgz -n ml --create-namespace --set groups.agent.replicas=32",
        "symph install experiment.yaml --name rl-b --wait",
        "symph install experiment.yaml --dry-run -o json",
    )


def open_releases(args: argparse.Namespace, timeout_s: float | None = None) -> helm_releases.Releases:
    """Return the releases of the cluster that the flags name; helm's timeout is `timeout_s`, else `--timeout`.

    Raises ToolMissing or ToolFailed.
    """
    kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
    target = helm_client.Target(kubeconfig=kubeconfig, context=args.context)
    return helm_releases.Releases(target, timeout_s=getattr(args, "timeout", 300.0) if timeout_s is None else timeout_s)


def send(args: argparse.Namespace, *, is_upgrade: bool) -> int:
    if args.create_namespace and is_upgrade and not args.install:
        raise UsageError("--create-namespace needs --install", next="symph upgrade SPEC --install --create-namespace")
    values = specs.user_values_of(args)
    with (
        helm_releases.chart_of(
            args.source, values, args.pools, changes=args.spec_set, force=args.force_unschedulable
        ) as source,
        open_releases(args) as there,
    ):
        name = args.name or source.name
        namespace = args.namespace or source.namespace or there.namespace
        secret = source.secret(name, namespace, values)
        before = there.run_of(name, namespace) if is_upgrade else ""
        apply = there.upgrade
        if not is_upgrade or args.install:
            apply = partial(there.install, create_namespace=args.create_namespace, replace=is_upgrade)
        made = apply(name, source.chart, values, namespace=namespace, secret=secret, dry_run=args.dry_run)
        for text in there.warnings:
            output.warn(text)
        run: dict[str, object] = {"run": there.sent_run, "wasRun": before} if there.sent_run and before else {}
        if run and there.sent_run != before:
            run["restartedServices"] = list(there.sent_services)
        effect = _effect(run)
        record: dict[str, object] = {"name": name, "namespace": namespace, "dryRun": True}
        text = f"{name} in {namespace}: the cluster takes every object{effect}"
        if made is not None:
            record = {**_item(made), "secretPushed": secret is not None}
            text = f"{name} revision {made.revision} in {namespace}   {made.chart}   {made.status}{effect}"
        output.print_record(args, "Release", record | run, text)
        if args.output == "name":
            output.line(name)
        if made is None:
            return 0
        if args.output == "table":
            if secret is not None:
                output.note("its secrets were pushed first")
            steps = (f"symph {verb} {name} -n {namespace}" for verb in ("status", "logs"))
            output.next_step(*(error_report.placed(step, args) for step in steps))
        if args.wait or args.wait_for_jobs:
            there.wait(name, namespace, finished=args.wait_for_jobs, timeout_s=args.timeout)
            output.note(f"{name} {'has finished' if args.wait_for_jobs else 'is ready'}")
    return 0


def _effect(run: dict[str, object]) -> str:
    """Describe the effect of an upgrade on the run; empty for an install."""
    if not run:
        return ""
    if run["run"] == run["wasRun"]:
        return "   in place: the run continues"
    services = ", ".join(output.texts(run["restartedServices"]))
    return f"   a new run, {run['run']}" + (f"; restarted with it: {services}" if services else "")


def helm_history(args: argparse.Namespace) -> int:
    with open_releases(args) as there:
        found = there.history(args.experiment_name, args.namespace or there.namespace)
    columns = [
        output.Column("REVISION", "revision"),
        output.Column("STATUS", "status", state=lambda item: "good" if item["status"] == "deployed" else "dim"),
        *output.columns("chart", "updated", "description"),
    ]
    output.print_items(args, "Revision", [_item(one) for one in found], columns, name="revision")
    return 0


def helm_rollback(args: argparse.Namespace) -> int:
    """Roll a release back, after listing the finished Jobs that run again."""
    if args.to is not None and not re.fullmatch("[0-9]+", args.to):
        what = f'a release goes back to a revision, a number; "{args.to}" is none'
        raise UsageError(what, next="symph history shows them")
    with open_releases(args) as there:
        namespace = args.namespace or there.namespace
        name = args.experiment_name
        chosen = there.rollback(name, namespace, int(args.to) if args.to else None, dry_run=True)
        again = there.reruns(name, namespace, chosen)
        if again:
            what = f"these run again from their beginning: {', '.join(again)}"
            output.warn(what, "results they overwrite are lost: collect them first")
        if not args.dry_run:
            if again:
                output.confirm(args, f"Roll {name} in {namespace} back to revision {chosen}?")
            there.rollback(name, namespace, chosen)
        record = {"name": name, "namespace": namespace, "to": chosen, "reruns": again, "dryRun": args.dry_run}
        text = f"{name} in {namespace} {'would go' if args.dry_run else 'is'} back to revision {chosen}"
        output.print_record(args, "Rollback", record, text)
        if args.wait and not args.dry_run:
            there.wait(name, namespace, timeout_s=args.timeout)
    return 0


def _item(one: helm_client.Revision) -> dict[str, object]:
    return {key: value for key, value in asdict(one).items() if key != "notes"}


def run_install(args: argparse.Namespace) -> int:
    return send(args, is_upgrade=False)


def configure_upgrade(parser: argparse.ArgumentParser) -> None:
    options.add_flag(parser, "-i", "--install", help="install the release if it does not exist")
    _configure(parser, "with --install: ")
    options.add_examples(
        parser,
        "symph upgrade experiment.yaml",
        "symph upgrade dist/rl-0.3.0.tgz --set runKey=2 --wait",
        "symph upgrade experiment.yaml --install --dry-run",
    )


def run_upgrade(args: argparse.Namespace) -> int:
    """Do the same steps as `symph install`; values of earlier revisions are not reused."""
    return send(args, is_upgrade=True)


def configure_uninstall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="its name")
    options.add_target(parser)
    options.add_flag(parser, "--keep-history", help="keep the release's history in helm")
    options.add_flag(parser, "--wait", help="return when its pods are gone")
    options.add_timeout(parser)
    options.add_yes(parser)
    options.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    options.add_dry_run(parser, "list what would be removed")
    options.add_examples(
        parser, "symph uninstall rl", "symph uninstall rl -n ml --yes --wait", "symph uninstall rl --dry-run"
    )


def run_uninstall(args: argparse.Namespace) -> int:
    with open_releases(args) as releases:
        namespace = args.namespace or releases.namespace
        removal = releases.uninstall(args.release, namespace, dry_run=True)
        if not args.dry_run:
            count = len(removal.objects) + len(removal.swept)
            output.confirm(args, f"Uninstall {args.release} from {namespace}, {count} objects?")
            wait_s = args.timeout if args.wait else None
            removal = releases.uninstall(args.release, namespace, keep_history=args.keep_history, wait_s=wait_s)
    items = [{"name": title, "why": "release"} for title in removal.objects]
    items += [{"name": title, "why": "leftover"} for title in removal.swept]
    if args.output == "table":
        for item in items:
            note = "   left by a failed upgrade" if item["why"] == "leftover" else ""
            output.line(f"{'would remove' if args.dry_run else 'removed'} {item['name']}{note}")
    else:
        output.print_items(args, "Removed", items, output.columns("name", "why"))
    return 0
