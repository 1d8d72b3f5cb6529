"""Write `chart-template/cookiecutter.json`: what cookiecutter makes when it is given nothing else.

Run it after a change of the generator of charts; a test fails until then.
"""

from __future__ import annotations

import json
from pathlib import Path

from symphony_charts.chart.build.chart import build
from symphony_charts.chart.files import context_of, generated_files
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate

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
    chart = build(experiment, allocate(experiment))
    texts = chart.texts()
    context: dict[str, object] = dict(context_of(chart, texts, ValuesSchema(chart), "0.1.0"))
    files = {path: content.decode() for path, content in generated_files(chart, texts).items()}
    context["_files"] = json.dumps(files, ensure_ascii=False)
    # Go's delimiters stay Go's. Only what is listed as not copied verbatim is rendered.
    context["_jinja2_env_vars"] = {
        "variable_start_string": "[[",
        "variable_end_string": "]]",
        "block_start_string": "[%",
        "block_end_string": "%]",
        "comment_start_string": "[#",
        "comment_end_string": "#]",
    }
    context["_copy_without_render"] = ["ci/*", ".helmignore"]
    return (json.dumps(context, indent=2, ensure_ascii=False) + "\n").encode()


if __name__ == "__main__":
    (FOLDER / "cookiecutter.json").write_bytes(cookiecutter_json())
