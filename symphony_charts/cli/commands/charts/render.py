"""`symph render`: the Kubernetes objects of an experiment."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values, prepared_of

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.chart.files.chart import Chart


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph render`."""
    common.add_specs(parser, many=False)
    common.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    parser.add_argument("-n", "--namespace", default="default", help="its namespace, for --helm (default: default)")
    parser.add_argument("--no-tests", action="store_true", help="leave out the pod that `helm test` starts")
    parser.add_argument("--helm", action="store_true", help="let the helm on this machine render the chart")
    add_values(parser)
    common.add_examples(
        parser,
        "symph render experiment.yaml",
        "symph render experiment.yaml --set groups.agent.replicas=32 -o name",
        "symph render experiment.yaml | kubectl apply --server-side --dry-run=server -f -",
    )


def run(args: argparse.Namespace) -> int:
    """Print the objects: natively, or as real helm renders them."""
    from symphony_charts.package import template
    from symphony_charts.spec import files

    spec = files.read(args.spec)
    # Whether it fits is for `plan` and `package` to say; the objects are the same either way.
    prepared = prepared_of(args, spec, force=True)
    objects = list(prepared.under({}, release=args.release or "", namespace=args.namespace).objects)
    if args.helm:
        objects = _by_helm(args, prepared.chart(template(), spec.lock.version))
    if args.no_tests:
        objects = [item for item in objects if not _is_test(item)]
    _print(args, objects)
    return 0


def _by_helm(args: argparse.Namespace, chart: Chart) -> list[dict[str, object]]:
    from symphony_charts.kubernetes.releases.helm_program import template_chart

    return template_chart(chart.name, chart.files, args.release or chart.name, namespace=args.namespace, values={})


def _is_test(item: dict[str, object]) -> bool:
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get("helm.sh/hook") == "test"


def _print(args: argparse.Namespace, objects: list[dict[str, object]]) -> None:
    if args.output == "name":
        for item in objects:
            metadata = item["metadata"]
            name = metadata["name"] if isinstance(metadata, dict) else ""
            output.line(f"{str(item['kind']).lower()}/{name}")
    elif args.output == "json":
        import json

        sys.stdout.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n")
    else:
        from symphony_charts.formats.yaml_text import dump_all

        sys.stdout.write(dump_all(objects))
