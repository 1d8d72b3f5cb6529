"""Puts the answers where no place for them is, and the hash of all templates into the name of each.

Names of templates hold for a whole release of several charts, hence the hash. A chart that symph makes has its answers.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

# The hook itself is rendered: these are the answers.
name, version = (
    json.loads(r""" [[ cookiecutter.name | tojson ]] """),
    json.loads(r""" [[ cookiecutter.version | tojson ]] """),
)
made_for, made_at = (
    json.loads(r""" [[ cookiecutter._chart_name | tojson ]] """),
    json.loads(r""" [[ cookiecutter._chart_version | tojson ]] """),
)
if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,51}[a-z0-9])?", name):
    sys.exit(f'"{name}" cannot be the name of a chart: lower-case letters, digits and dashes, 53 at most')
if not re.fullmatch(r"\d+\.\d+\.\d+(?:[-+][-+.0-9A-Za-z]+)?", version):
    sys.exit(f'"{version}" is no version: three numbers, such as 0.1.0')
if name != made_for.strip('"'):
    was = re.escape(made_for.strip('"'))
    places = {
        "Chart.yaml": [(r"(?m)^name: .*$", f'name: "{name}"'), (f"Experiment {was}", f"Experiment {name}")],
        "README.md": [(rf"(?<![\w-]){was}(?![\w-])", name)],
        "values.yaml": [(r"(?m)^experiment: .*$", f'experiment: "{name}"')],
    }
    for file, changes in places.items():
        text = Path(file).read_text(encoding="utf-8")
        for before, after in changes:
            text = re.sub(before, after, text)
        Path(file).write_text(text, encoding="utf-8")
if version != made_at.strip('"'):
    text = Path("Chart.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^version: .*$", f'version: "{version}"', text)
    Path("Chart.yaml").write_text(text, encoding="utf-8")

whole = hashlib.sha256()
folders = (Path("templates"), Path("charts/symph/templates"))
templates = {path.as_posix(): path for folder in folders for path in folder.rglob("*") if path.is_file()}
for name, path in sorted(templates.items()):
    whole.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
prefix = rb'\1 "symph.%s.' % whole.hexdigest()[:6].encode()
for path in templates.values():
    path.write_bytes(re.sub(rb'\b(define|include) "symph\.', prefix, path.read_bytes()))
