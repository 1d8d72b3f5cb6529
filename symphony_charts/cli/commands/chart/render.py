"""`symph render`: the Kubernetes objects of an experiment."""

from __future__ import annotations

import argparse
import json
import sys

from symphony_charts.chart.files.chart import Chart
from symphony_charts.cli import output
from symphony_charts.cli.values import prepared_of
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_text import dump_all
from symphony_charts.kubernetes.releases.helm_program import template_chart
from symphony_charts.package import template
from symphony_charts.spec import files

__all__ = ["is_test", "print_objects", "run"]


def run(args: argparse.Namespace) -> int:
    """Print the objects: natively, or as real helm renders them."""
    spec = files.read(args.spec, args.spec_set)
    # Whether it fits is for `plan` and `package` to say; the objects are the same either way.
    prepared = prepared_of(args, spec, force=True)
    there = prepared.under({}, release=args.release or "", namespace=args.namespace, is_draft=False)
    objects = list(there.objects)
    if args.helm:
        objects = _by_helm(args, prepared.chart(template(), spec.lock.version))
    if args.no_tests:
        objects = [item for item in objects if not is_test(item)]
    print_objects(args, objects)
    return 0


def _by_helm(args: argparse.Namespace, chart: Chart) -> list[dict[str, object]]:
    return template_chart(chart.name, chart.files, args.release or chart.name, namespace=args.namespace, values={})


def is_test(item: dict[str, object]) -> bool:
    """Return True if `item` is an object of `helm test`."""
    return sub(item, "metadata", "annotations").get("helm.sh/hook") == "test"


def print_objects(args: argparse.Namespace, objects: list[dict[str, object]]) -> None:
    """Print `objects` in the format `args.output`: yaml, json or name."""
    if args.output == "name":
        for item in objects:
            metadata = item["metadata"]
            name = metadata["name"] if isinstance(metadata, dict) else ""
            output.line(f"{str(item['kind']).lower()}/{name}")
    elif args.output == "json":
        sys.stdout.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n")
    else:
        sys.stdout.write(dump_all(objects))
