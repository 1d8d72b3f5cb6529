"""Files that are no experiments are told by what they are: a compose file, a manifest, a chart, a script, a folder."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Set
from pathlib import Path

from symphony_charts.errors import SpecError

__all__ = ["SUFFIXES", "absent", "mistaken_for"]

SUFFIXES = (".yaml", ".yml", ".json", ".py")
_BEGIN = "symph init NAME makes a spec to begin with"
# What each other suffix is, and what is done with such a file instead.
_SCRIPT = "a spec names what it runs, as in `command: sh` and `args: [{name}]`; " + _BEGIN
_OTHERS = {
    ".sh": ("a shell script", _SCRIPT),
    ".bash": ("a shell script", _SCRIPT),
    ".ipynb": ("a notebook", "save it as a program that a spec can name: jupyter nbconvert --to script {name}"),
    ".toml": ("a TOML file", "experiments are written in YAML, JSON or Python; " + _BEGIN),
    ".tf": ("a Terraform file", "`terraform show -json > cluster.json` makes a file of node pools for `--pools`"),
    ".tgz": ("an archive", "give the spec that it was made of; helm install NAME {name} installs a chart"),
    ".gz": ("an archive", "give the spec that it was made of; helm install NAME {name} installs a chart"),
    ".zip": ("an archive", "unpack it, and give the spec"),
    ".md": ("a text", _BEGIN),
    ".txt": ("a text", _BEGIN),
}


def mistaken_for(path: Path, text: str) -> SpecError | None:
    """Return the error for `text` that is not an experiment but another known format; else None."""
    found = re.findall(r'^(?:[ \t{]{0,5}"(\w+)"|(\w+))[ \t]*:', text, re.MULTILINE)
    keys = frozenset(quoted or plain for quoted, plain in found)
    said = _by_keys(keys, text, str(path)) or _OTHERS.get(path.suffix)
    if said is None:
        return None
    what, step = said
    return SpecError.one(f"this is {what}, not an experiment", str(path), step.format(name=shlex.quote(path.name)))


def _by_keys(keys: Set[str], text: str, name: str) -> tuple[str, str] | None:
    """Return the format that has these keys at its left margin, and the step to take."""
    # Braces of a file's name are not filled in later.
    name = shlex.quote(name).replace("{", "{{").replace("}", "}}")
    if "services" in keys and not keys & {"processes", "groups"}:
        return "a docker compose file", f"symph import compose {name} --to experiment.yaml"
    if "apiVersion" in keys and "kind" in keys:
        match = re.search(r'^[ \t"]*kind"?[ \t]*:[ \t]*["\']?(\w+)', text, re.MULTILINE)
        kind = match[1] if match else "object"
        if kind == "DIJob":
            return "a DIJob of DI-engine", f"symph import dijob {name} --to experiment.yaml"
        return f"a Kubernetes manifest ({kind})", f"kubectl apply -f {name} creates it; {_BEGIN}"
    if keys >= {"apiVersion", "version"}:
        return (
            "the Chart.yaml of a Helm chart",
            "give the spec that it was made of, or install it: helm install NAME FOLDER",
        )
    if "repository" in keys and not keys & {"processes", "groups"}:
        return "a settings file (.symph.yaml)", f"give the spec beside it; {_BEGIN}"
    if "pools" in keys and not keys & {"processes", "groups"}:
        return "a file of node pools", f"give it to a plan: symph plan SPEC --pools {name}"
    if keys >= {"groups", "workload", "run"} or keys >= {"groups", "fullnameOverride"}:
        return "the values of a chart", f"give them with its spec: symph package SPEC -f {name}"
    return None


def absent(path: Path) -> SpecError:
    """Return the error for a spec that does not exist, or a folder without one, with near names."""
    if path.is_dir():
        if (path / "Chart.yaml").is_file():
            what, step = "this is the folder of a Helm chart, not an experiment", "give the spec that it was made of"
            return SpecError.one(what, str(path), f"{step}; helm install NAME {path} installs it")
        specs = [item for item in _specs_in(path) if not item.startswith(".")]
        step = f"give one: {', '.join(str(path / item) for item in specs[:4])}" if specs else _BEGIN
        return SpecError.one(f"the folder {path} holds no experiment.yaml", str(path), step)
    if not path.parent.is_dir():
        return SpecError.one(f"no such file: {path}", str(path), f"there is no folder {path.parent}; {_BEGIN}")
    near = difflib.get_close_matches(path.name, _specs_in(path.parent), n=1)
    if near:
        return SpecError.one(f"no such file: {path}", str(path), f"did you mean {path.with_name(near[0])}?")
    # What nobody typed is told as the folder that it stands for.
    others = [item for item in _specs_in(path.parent) if not item.startswith(".")] if path.stem == "experiment" else []
    step = f"give one: {', '.join(others[:4])}" if others else f"give the path of a .yaml, .json or .py; {_BEGIN}"
    return SpecError.one(f"no such file: {path}", str(path), step)


def _specs_in(folder: Path) -> list[str]:
    try:
        names = sorted(item.name for item in folder.iterdir())
    except OSError:
        return []
    return [name for name in names if name.endswith(SUFFIXES) and not name.endswith(".lock.yaml")]
