"""Options of `symph import torchx`, and the objects that TorchX itself would make."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from symphony_charts.cli import options, output
from symphony_charts.errors import UsageError
from symphony_charts.integrations.torchx import components, importer, objects

SUMMARY = "a TorchX AppDef or component"
EXAMPLES = (
    "symph import torchx app.json --to experiment.yaml --cfg namespace=ml,queue=batch",
    "symph import torchx my.components:trainer -- --nodes 4",
)


def configure(parser: argparse.ArgumentParser) -> None:
    source = next(action for action in parser._actions if action.dest == "source")
    source.help = "the file (`-` is stdin), module:component, or a component's name"
    parser.add_argument("--cfg", default="", metavar="K=V,...", help="run options, as `torchx run -cfg`")
    options.add_workload_kind(parser)
    group = parser.add_argument_group("TorchX's own objects")
    group.add_argument("--compat", choices=("torchx",), help="print the AppWrapper that its scheduler makes")
    group.add_argument("--app-id", default="", metavar="ID", help="the app id of those objects")


def made_data(args: argparse.Namespace, words: list[str]) -> object:
    """Return the AppDef that a component makes of `words`; None if the source is a file."""
    text = args.source
    if text == "-" or Path(text).is_file() or text.endswith((".json", ".yaml", ".yml")):
        return None
    return components.load_appdef(text, words)


def run(source: Any, args: argparse.Namespace) -> Any:
    return importer.import_torchx(source, args.cfg, args.kind)


def document(source: Any, args: argparse.Namespace) -> dict[str, object] | None:
    """Return the AppWrapper that TorchX would make, for `--compat`; None without."""
    if not args.compat:
        return None
    if not args.app_id:
        raise UsageError(
            "TorchX's own objects need an app id, which TorchX would choose at random", next="give --app-id ID"
        )
    if args.kind not in ("", "appwrapper"):
        raise UsageError(f"--compat torchx makes AppWrappers, not objects of kind {args.kind}", next=objects.NO_VOLCANO)
    if (installed := components.installed_version()) not in ("", version := objects.followed_version()):
        output.note(f"TorchX {installed} has no MCAD scheduler: this is the AppWrapper of {version}, the last that had")
    return objects.submitted_objects(source, args.cfg, args.app_id)
