"""Applications, jobs and files that several tests import."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from symphony_charts.importers.input_file import read
from symphony_charts.importers.report import Imported, Log
from symphony_charts.integrations.compose.importer import ComposeContext, import_compose
from symphony_charts.integrations.dijob.importer import import_dijob
from symphony_charts.integrations.torchx.appdef import AppDef, read_appdef
from symphony_charts.integrations.torchx.importer import experiment_of
from symphony_charts.integrations.torchx.options import read_options
from symphony_charts.spec.model import Process

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "import"


def role(**fields: object) -> dict[str, object]:
    """Return a role with the required fields, and `fields`."""
    return {"name": "trainer", "image": "img:1", "entrypoint": "python", **fields}


def app(*roles: dict[str, object], name: str = "train", **fields: object) -> dict[str, object]:
    return {"name": name, "roles": list(roles) or [role()], **fields}


def appdef(*roles: dict[str, object], name: str = "train", **fields: object) -> AppDef:
    """Return an application of `roles` as an AppDef record."""
    log = Log()
    found = read_appdef(app(*roles, name=name, **fields), log)
    assert not log.problems
    return found


def import_appdef(data: object, cfg: Mapping[str, object] | None = None) -> Imported:
    """Return the experiment of an AppDef as ``dataclasses.asdict`` gives it, under the run options `cfg`."""
    log = Log()
    found = read_appdef(data, log)
    return experiment_of(found, read_options(cfg or {}, log, "cfg"), log)


def import_role(**fields: object) -> Process:
    return import_appdef(app(role(**fields))).experiment.processes["trainer"]


def import_yaml(text: str, **options: str) -> Imported:
    """Return the imported experiment of a DIJob in YAML."""
    return import_dijob(read(text.encode(), "job.yaml"), **options)


def compose(text: str, **context: object) -> Imported:
    return import_compose(read(text.encode(), "compose.yaml", is_compose=True), ComposeContext(**context))  # type: ignore[arg-type]


def notes_of(imported: Imported) -> str:
    return "\n".join(f"{note.path}: {note.what}" for note in imported.notes)
