"""`symph secrets`: push, seal or check the Secret made of an experiment's files."""

from __future__ import annotations

import argparse
import base64
import os
from collections.abc import Mapping
from pathlib import Path

from symphony_charts.chart import release
from symphony_charts.cli import options, output
from symphony_charts.errors import CheckFailed, NotFound, SpecError, UsageError
from symphony_charts.formats import data
from symphony_charts.kubernetes import client
from symphony_charts.secrets import files, sealing
from symphony_charts.spec import files as spec_files
from symphony_charts.spec import sources

LATE = (client, sealing)  # the client of Kubernetes takes 100 ms, and cryptography 40 ms


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("push", "seal", "check"),
        help="push: put the files into the cluster's Secret; seal: encrypt them for Git; check: see if the Secret"
        " is there with all keys",
    )
    options.add_specs(parser, many=False)
    options.add_release(parser)
    options.add_cluster(parser, "the namespace (default: the experiment's)")
    parser.add_argument("--name", help="the Secret's name (default: <release>-secrets)")
    parser.add_argument("--cert", metavar="FILE|URL|cluster", help="seal: the controller's certificate")
    options.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    options.add_flag(parser, "--hide-values", help="with --dry-run: print sizes instead of the contents")
    options.add_dry_run(parser, "print the Secret and push nothing")
    options.add_examples(
        parser,
        "symph secrets push experiment.yaml --dry-run --hide-values",
        "symph secrets push experiment.yaml -n rl",
        "symph secrets check experiment.yaml -n rl",
        "symph secrets seal experiment.yaml -n rl --cert cluster > sealed-values.yaml",
    )


def run(args: argparse.Namespace) -> int:
    spec = spec_files.read(args.spec, args.spec_set)
    if not spec.experiment.secrets:
        raise SpecError.one(
            "the experiment has no `secrets`", "secrets", f"there is nothing to {args.action}", args.spec
        )
    # Several releases may mount a Secret with an explicit name, so none of them deletes it.
    args.owner = None if args.name else args.release or spec.experiment.name
    args.name = args.name or files.secret_name(spec, args.release)
    args.namespace = args.namespace or spec.experiment.namespace
    return {"push": _push, "seal": _seal, "check": _check}[args.action](args, spec)


def sealed_values(spec: spec_files.SpecFile, source: str | None, namespace: str, name: str) -> data.Values:
    """Return the files of `spec`, sealed with the certificate of `source` or of kubeseal's variable, as values.

    Raises UsageError without a certificate.
    """
    chosen = source or os.environ.get("SEALED_SECRETS_CERT")
    if not chosen:
        raise UsageError("sealing needs the controller's certificate", next="--cert FILE, --cert URL or --cert cluster")
    certificate = sealing.read_certificate(sealing.fetch_certificate(chosen), chosen)
    return sealing.sealed_values(spec, certificate, namespace, name)


def _connect(args: argparse.Namespace) -> client.KubeApi:
    """Return the cluster that the flags name. Raises ToolFailed without one."""
    return client.KubeApi(Path(args.kubeconfig) if args.kubeconfig else None, args.context)


def _push(args: argparse.Namespace, spec: spec_files.SpecFile) -> int:
    made = files.secret_object(spec.experiment, files.read_secrets(spec), args.name, args.namespace, release=args.owner)
    if args.dry_run:
        if args.hide_values:
            sizes = {key: f"<{len(base64.b64decode(str(text)))} bytes>" for key, text in data.sub(made, "data").items()}
            made = {**made, "data": sizes}
        _print(args, "secret", made)
        return 0
    with _connect(args) as api:
        namespace = args.namespace or api.namespace
        api.apply(made, namespace)
    output.line(f"secret/{args.name} pushed to {namespace}")
    return 0


def _seal(args: argparse.Namespace, spec: spec_files.SpecFile) -> int:
    """Print values for the chart: `helm install -f`, or `symph publish --env-values`."""
    if spec.experiment.secret_source.source != "sealed":
        what = "the chart takes no sealed secrets, since the experiment has another source of them"
        step = "set `secret_source: {source: sealed}` in the spec, or give --spec-set secret_source.source=sealed"
        raise SpecError.one(what, "secret_source", step, args.spec)
    sealed = sealed_values(spec, args.cert, args.namespace or "default", args.name)
    _print(args, "sealedsecret", release.merge({"secrets": {"name": args.name}}, sealed))
    return 0


def _check(args: argparse.Namespace, spec: spec_files.SpecFile) -> int:
    where = f" in {args.namespace}" if args.namespace else ""
    step = f"symph secrets push {args.spec}"
    with _connect(args) as api:
        secret = api.find(f"{api.collection('v1', 'Secret', args.namespace or api.namespace)}/{args.name}")
    if secret is None:
        raise NotFound(f"the Secret {args.name}{where} does not exist", next=step)
    lacking = sorted({sources.key_of(file) for file in spec.experiment.secrets} - set(secret.get("data") or {}))
    if lacking:
        raise CheckFailed(f"the Secret {args.name}{where} lacks {', '.join(lacking)}", next=step)
    output.line(f"secret/{args.name}{where} has all {len(spec.experiment.secrets)} keys")
    return 0


def _print(args: argparse.Namespace, kind: str, document: Mapping[str, object]) -> None:
    if args.output == "name":
        output.line(f"{kind}/{args.name}")
    else:
        output.print_document(document, args.output)
