"""Write `chart-template/cookiecutter.json`: cookiecutter's defaults.

Run it after a change of the chart generator; a test fails until then.
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

# The default of `cookiecutter chart-template`: one server, one client.
HELLO = {
    "name": "hello",
    "image": "python:3.12-slim",
    "processes": {
        "server": {"cmds": ["exec python -m http.server $SYMPH_WEB_PORT"], "binds": "web", "lifecycle": "service"},
        "client": {"cmds": ["exec python -m urllib.request http://$SYMPH_WEB_ADDR"], "connects": "web"},
    },
}


def cookiecutter_json() -> bytes:
    """Return the context: the variable parts of a chart, and how cookiecutter must read the template."""
    experiment = from_data(HELLO)
    chart = build(experiment, allocate(experiment))
    texts = chart.texts()
    context: dict[str, object] = dict(context_of(chart, texts, ValuesSchema(chart), "0.1.0"))
    files = {path: content.decode() for path, content in generated_files(chart, texts).items()}
    context["_files"] = json.dumps(files, ensure_ascii=False)
    # Go's delimiters stay unchanged. Only files that are not listed as copied verbatim are rendered.
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
