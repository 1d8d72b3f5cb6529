"""`symph schema`: the JSON Schema of experiment files."""

from __future__ import annotations

import argparse
import json

from symphony_charts.cli import output
from symphony_charts.settings.json_schema import settings_schema
from symphony_charts.spec.json_schema import json_schema

__all__ = ["run"]

_HINT = """\
Editors that speak the YAML language server read the schema from a comment on the first line of the file:
  symph schema > experiment.schema.json
  # yaml-language-server: $schema=experiment.schema.json
Of .symph.yaml: symph schema --settings > settings.schema.json

VS Code (with the YAML extension), for all experiment files of a folder, in .vscode/settings.json:
  "yaml.schemas": {"./experiment.schema.json": ["experiment.yaml", "experiments/*.yaml"]}
"""


def run(args: argparse.Namespace) -> int:
    """Print the schema, or how to make an editor use it."""
    if args.install_hint:
        output.line(_HINT.rstrip())
        return 0

    schema = settings_schema() if args.settings else json_schema()
    output.line(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
