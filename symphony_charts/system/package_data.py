"""Folders of files in this package, and the new folders that cookiecutter makes from them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, SpecError, ToolFailed
from symphony_charts.formats.names import DNS_LABEL

FOLDERS = ("chart-template", "gitops", "local")

_PACKAGE = Path(__file__).parent.parent


def folder(name: str) -> dict[str, bytes]:
    """Return the files of one folder by their relative path, sorted. Raises NotFound for another name."""
    root = path(name)
    files = {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and "__pycache__" not in file.relative_to(root).parts
    }
    return dict(sorted(files.items()))


def table(name: str) -> bytes:
    """Return the content of a data file by its path in the package: ``placement/data/prices.json``."""
    # Without importlib.resources, which takes 8 ms to import.
    return (_PACKAGE / name).read_bytes()


def tables(folder: str) -> list[str]:
    """Return the sorted names of the files in a folder of the code, such as ``chart/lint/schemas``."""
    return sorted(file.name for file in (_PACKAGE / folder).iterdir() if file.is_file())


def path(name: str) -> Path:
    """Return the path of a folder on this machine; read it only. Raises NotFound if it is missing."""
    # An editable install has no _data: there the checkout's own folder is next to the package.
    places = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in places if name in FOLDERS else ():
        if candidate.is_dir():
            return candidate
    raise NotFound(f'symphony-charts has no data folder "{name}"', str(_PACKAGE), "reinstall symphony-charts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffold:
    folder: Path
    files: tuple[str, ...]


def scaffold(name: str, template: str, dest: Path, answers: Mapping[str, str], *, dry_run: bool = False) -> Scaffold:
    """Make `dest`/`name` from `template` (``yaml``, ``python`` or a folder).

    Never prompts, runs no template hooks, and writes nothing outside `dest`. Raises Conflict if the folder exists,
    NotFound for an unknown template, SpecError for an invalid name.
    """
    if not DNS_LABEL.fullmatch(name):
        what = f'"{name}" is not a valid name for an experiment'
        raise SpecError.one(what, "name", "use lower-case letters, digits and -")
    source = _source(template)
    folder = dest.expanduser() / name
    if folder.exists():
        raise Conflict(f"{folder} already exists", next="choose another name, or remove the folder")
    with tempfile.TemporaryDirectory(prefix="symph-init-") as scratch:
        baked = bake(source, name, answers, Path(scratch))
        files = tuple(sorted(path.relative_to(baked).as_posix() for path in baked.rglob("*") if path.is_file()))
        if not dry_run:
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Copied to a temporary name and renamed, so that the folder is there whole or not at all.
            beside = folder.with_name(f".{folder.name}.symph")
            shutil.rmtree(beside, ignore_errors=True)
            shutil.copytree(baked, beside)
            beside.rename(folder)
    return Scaffold(folder=folder, files=files)


def _source(template: str) -> Path:
    if template in ("yaml", "python"):
        return path("local") / "scaffolds" / template
    source = Path(template).expanduser()
    if not (source / "cookiecutter.json").is_file():
        what = f'unknown template "{template}": it is not yaml, python or a folder with a cookiecutter.json'
        raise NotFound(what, next="list the templates: symph init --help")
    return source


def bake(source: Path, name: str, answers: Mapping[str, object], scratch: Path) -> Path:
    """Return the folder that cookiecutter makes from `source` below `scratch`, with its own configuration.

    Writes nothing to the user's home. Raises ToolFailed if the template does not work.
    """
    # This import takes 250 ms, which our own templates need not pay.
    from cookiecutter import exceptions, main
    from jinja2 import TemplateError

    # An installer compiles templates, too, and cookiecutter would copy the bytecode as content.
    clean = scratch / "template"
    shutil.copytree(source, clean, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    config = scratch / "config.yaml"
    config.write_text(json.dumps({"replay_dir": str(scratch / "replay"), "cookiecutters_dir": str(scratch / "c")}))
    try:
        baked = main.cookiecutter(
            str(clean),
            no_input=True,
            extra_context={"name": name, **answers},
            output_dir=str(scratch / "out"),
            config_file=str(config),
            accept_hooks=False,
        )
    except (exceptions.CookiecutterException, TemplateError, OSError, ValueError) as error:
        raise ToolFailed(f"cannot use the template {source}: {error}") from error
    return Path(baked)
