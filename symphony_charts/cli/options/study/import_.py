"""The options of `symph import`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.study import runopts
from symphony_charts.system.entry_points import entry_points

__all__ = ["FORMATS", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph import`."""
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name, (add_options, summary, examples) in FORMATS.items():
        one = formats.add_parser(name, help=summary, description=f"Import {summary}.")
        _add_source(one)
        add_options(one)
        common.add_examples(one, *examples)
    for name, added in entry_points("symph.importers").items():
        module = added.load()
        text = " ".join((module.__doc__ or f"by {added.package}").split())
        one = formats.add_parser(name, help=text, description=text)
        _add_source(one)
        one.set_defaults(importer=module)
        if hasattr(module, "configure"):
            module.configure(one)
    listed = formats.add_parser("runopts", help="list TorchX's run options and what they become; import nothing")
    runopts.configure(listed)
    common.add_examples(parser, *(example for _, _, examples in FORMATS.values() for example in examples[:1]))


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Add what every format takes."""
    parser.add_argument("source", metavar="SOURCE", help="the file; `-` is stdin")
    parser.add_argument(
        "--to", dest="file", metavar="FILE", default="", help="write the experiment to it, not to stdout"
    )
    parser.add_argument(
        "-o", "--output", choices=("json", "yaml"), default="", help="print the experiment with the report"
    )
    parser.add_argument("--strict", action="store_true", help="fail (1) and write nothing if anything is lost")
    common.add_dry_run(parser, "report what would be written and write nothing")


def _add_torchx(parser: argparse.ArgumentParser) -> None:
    source = next(action for action in parser._actions if action.dest == "source")
    source.help = "the file (`-` is stdin), module:component, or a component's name"
    parser.add_argument("--cfg", default="", metavar="K=V,...", help="run options, as `torchx run -cfg`")
    _add_kind(parser)
    group = parser.add_argument_group("TorchX's own objects")
    group.add_argument("--compat", choices=("torchx",), help="print the AppWrapper that its scheduler makes")
    group.add_argument("--app-id", default="", metavar="ID", help="the app id of those objects")


def _add_dijob(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", default="", metavar="NAME", help="the one to import out of several")
    _add_kind(parser)


def _add_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", default="", metavar="KIND", help="workload kind of the result")


def _add_compose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", action="append", default=[], metavar="NAME", help="include this profile")
    parser.add_argument("--env-file", action="append", default=[], metavar="FILE", help="variables (default: .env)")
    parser.add_argument("--name", default="", help="name of the experiment (default: the file's, or its folder)")
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="SERVICE=IMAGE",
        help="the image of a service, as of one that is built; may be repeated",
    )


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """A recording of Symphony says all by itself."""


# What stands in front of each format: what adds the options that it alone has, one line of help, and examples.
FORMATS = {
    "torchx": (
        _add_torchx,
        "a TorchX AppDef or component",
        (
            "symph import torchx app.json --to experiment.yaml --cfg namespace=ml,queue=batch",
            "symph import torchx my.components:trainer -- --nodes 4",
        ),
    ),
    "dijob": (_add_dijob, "a DIJob", ("symph import dijob dijob-qbert.yaml --kind jobset > experiment.yaml",)),
    "compose": (
        _add_compose,
        "a docker compose file",
        (
            "symph import compose compose.yaml --profile train",
            "symph import compose compose.yaml --image web=registry.example.org/web:1 --to experiment.yaml",
        ),
    ),
    "symphony": (
        _add_nothing,
        "an experiment that Symphony saved",
        ("symph import symphony experiment.yml --to experiment.yaml",),
    ),
}
