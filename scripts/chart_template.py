"""Writes the generated files of `chart-template/`: the schema of values, and cookiecutter's context with its defaults.

Run it after a change of `symphony_charts/chart/files/value_table.py` or of how an experiment is compiled; a test fails
until then.
"""

from __future__ import annotations

import json
from pathlib import Path

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.files.chart import context_of
from symphony_charts.chart.files.values_schema import schema_text
from symphony_charts.spec.data import from_data
from symphony_charts.spec.services import allocate

__all__ = ["HELLO", "cookiecutter_json", "generated_files"]

FOLDER = Path(__file__).resolve().parent.parent / "chart-template"

# What `cookiecutter chart-template` makes when nothing else is said: one server, one client.
HELLO = {
    "name": "hello",
    "image": "python:3.12-slim",
    "processes": {
        "server": {"cmds": ["exec python -m http.server $SYMPH_WEB_PORT"], "binds": "web", "lifecycle": "service"},
        "client": {"cmds": ["exec python -m urllib.request http://$SYMPH_WEB_ADDR"], "connects": "web"},
    },
}


def cookiecutter_json() -> bytes:
    """The context: what a chart differs in, and how cookiecutter has to read the template."""
    experiment = from_data(HELLO)
    context: dict[str, object] = dict(context_of("hello", compile_values(experiment, allocate(experiment)), "0.1.0"))
    # Go's delimiters stay Go's. Only what is listed as not copied verbatim is rendered.
    context["_jinja2_env_vars"] = {
        "variable_start_string": "[[",
        "variable_end_string": "]]",
        "block_start_string": "[%",
        "block_end_string": "%]",
        "comment_start_string": "[#",
        "comment_end_string": "#]",
    }
    context["_copy_without_render"] = [
        "charts/*",
        "templates/*",
        "*.json",
        "ci/*",
        "files/*",
        ".helmignore",
    ]
    return (json.dumps(context, indent=2, ensure_ascii=False) + "\n").encode()


def generated_files() -> dict[str, bytes]:
    """The files by their path in the folder."""
    return {
        "cookiecutter.json": cookiecutter_json(),
        "[[ cookiecutter.name ]]/values.schema.json": schema_text(),
    }


if __name__ == "__main__":
    for path, content in generated_files().items():
        (FOLDER / path).write_bytes(content)
