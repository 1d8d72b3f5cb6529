"""`symph init` and `symph schema`: begin an experiment, and print the schema of its file."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from symphony_charts.cli import options, output
from symphony_charts.errors import UsageError
from symphony_charts.formats import names
from symphony_charts.settings import project
from symphony_charts.spec import json_schema
from symphony_charts.system import package_data

_TEMPLATES = ("yaml", "python")


def configure_init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the experiment's name, and that of its new folder")
    text = f"{' or '.join(_TEMPLATES)}, or the folder of a cookiecutter template of your own (default: yaml)"
    parser.add_argument("--template", metavar="TEMPLATE", default="yaml", help=text)
    parser.add_argument("--dest", metavar="DIR", default=".", help="parent folder (default: the current one)")
    text = "an answer to a question of your own template; may be repeated"
    options.add_list(parser, "--answer", metavar="KEY=VALUE", help=text)
    options.add_output(parser, ("table", "json", "yaml"), headers=False)
    options.add_dry_run(parser)
    options.add_examples(
        parser, "symph init rl", "symph init rl --template python", "symph init rl --template ~/templates/ours"
    )


def run_init(args: argparse.Namespace) -> int:
    """Create the whole folder or nothing; never change an existing one."""
    name = names.sanitize(args.name)
    if not re.search("[A-Za-z0-9]", args.name) or args.name.endswith((".yaml", ".yml", ".json", ".py")):
        step = f"symph init {Path(args.name).stem.strip('.') or Path.cwd().name} makes a folder with a spec in it"
        raise UsageError(f'"{args.name}" is not the name of an experiment', next=step)
    answers = options.parse_assignments(args.answer)
    made = package_data.scaffold(name, args.template, Path(args.dest), answers, dry_run=args.dry_run)
    record = {"name": name, "folder": str(made.folder), "files": list(made.files)}
    verb = "would make" if args.dry_run else "made"
    lines = [f"{verb} {made.folder}", *(f"  {file}" for file in made.files)]
    output.print_record(args, "Scaffold", record, "\n".join(lines))
    spec = next((file for file in made.files if file.startswith("experiment.")), "")
    if spec and not args.dry_run:
        output.next_step(f"symph up {made.folder / spec}", f"symph package {made.folder / spec}")
    return 0


def configure_schema(parser: argparse.ArgumentParser) -> None:
    options.add_flag(parser, "--install-hint", help="print how to set up an editor")
    options.add_flag(parser, "--settings", help="print the schema of .symph.yaml instead")
    options.add_examples(parser, "symph schema > experiment.schema.json", "symph schema --install-hint")


_HINT = """\
Editors that speak the YAML language server read the schema from a comment on the first line of the file:
  symph schema > experiment.schema.json
  # yaml-language-server: $schema=experiment.schema.json
Of .symph.yaml: symph schema --settings > settings.schema.json

VS Code (with the YAML extension), for all experiment files of a folder, in .vscode/settings.json:
  "yaml.schemas": {"./experiment.schema.json": ["experiment.yaml", "experiments/*.yaml"]}
"""


def run_schema(args: argparse.Namespace) -> int:
    """Print the schema, or the steps to use it in an editor."""
    if args.install_hint:
        output.line(_HINT.rstrip())
        return 0

    schema = project.settings_schema() if args.settings else json_schema.json_schema()
    output.line(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
