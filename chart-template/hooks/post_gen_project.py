"""Finish a chart that cookiecutter made by hand: rename the experiment `hello`, and write the rest of its files."""

import json
import re
import sys
from pathlib import Path

# The hook itself is rendered: these are the answers.
name, version, made_for, made_at, files = (
    json.loads(r""" [[ cookiecutter.name | tojson ]] """),
    json.loads(r""" [[ cookiecutter.version | tojson ]] """),
    json.loads(r""" [[ cookiecutter._chart_name | tojson ]] """).strip('"'),
    json.loads(r""" [[ cookiecutter._chart_version | tojson ]] """).strip('"'),
    json.loads(r""" [[ cookiecutter._files | tojson ]] """),
)
if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,51}[a-z0-9])?", name):
    sys.exit(f'"{name}" cannot name a chart: use at most 53 lower-case letters, digits and hyphens')
if not re.fullmatch(r"\d+\.\d+\.\d+(?:[-+][-+.0-9A-Za-z]+)?", version):
    sys.exit(f'"{version}" is no version: use three numbers, such as 0.1.0')
for path, text in json.loads(files or "{}").items():
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
if (name, version) != (made_for, made_at):
    for path in [path for path in Path().rglob("*") if path.is_file()]:
        text = re.sub(rf"(?<![\w-]){made_for}(?![\w-])", name, path.read_text(encoding="utf-8"))
        if path.name == "Chart.yaml":
            text = re.sub(r"(?m)^version: .*$", f'version: "{version}"', text)
        path.write_text(text, encoding="utf-8")
