"""`find_helm` finds the helm program; charts are linted and rendered by it in an environment of their own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from symphony_charts.errors import ToolFailed, ToolMissing
from symphony_charts.system.files import write_tree
from symphony_charts.system.subprocess_runner import Completed, run

# The oldest helm whose releases we read and write.
OLDEST = "3.14.0"


def find_helm() -> str:
    """Return the helm to use: $HELM_BIN, else the one on PATH. Raises ToolMissing without one."""
    program = os.environ.get("HELM_BIN") or shutil.which("helm")
    if program and shutil.which(program) is None:
        raise ToolMissing("HELM_BIN names no program", program, "unset it, or let it name helm")
    if not program:
        raise ToolMissing(
            "helm is not installed", "", f"install helm {OLDEST} or newer; `symph` makes and checks charts without it"
        )
    return program


def template_chart(
    name: str,
    files: Mapping[str, bytes],
    release: str,
    *,
    namespace: str = "default",
    values: Mapping[str, object] | None = None,
) -> list[dict[str, object]]:
    """Return the objects that `helm template` prints for the chart of `files`, tests included."""
    program = find_helm()
    with _on_disk(name, files, values) as (folder, overlay):
        ended = run([program, "template", release, str(folder), "-n", namespace, "-f", str(overlay)], env=_env(folder))
    documents = yaml.load_all(ended.text, yaml.CSafeLoader)
    return [document for document in documents if isinstance(document, dict)]


def lint_chart(name: str, files: Mapping[str, bytes]) -> Completed:
    """Run `helm lint --strict`; the caller checks the exit status."""
    program = find_helm()
    with _on_disk(name, files, None) as (folder, _):
        return run([program, "lint", "--strict", str(folder)], env=_env(folder), check=False)


@contextmanager
def _on_disk(name: str, files: Mapping[str, bytes], values: Mapping[str, object] | None) -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="symph-helm-") as folder:
        chart = Path(folder) / name
        write_tree(chart, files)
        overlay = Path(folder) / "values.json"
        # The newline is not cosmetic: helm before 4.3 drops JSON of exactly 4096 bytes without one.
        overlay.write_text(json.dumps(values or {}, ensure_ascii=False) + "\n", encoding="utf-8")
        if not chart.is_dir():
            raise ToolFailed(f"cannot write the chart to {folder}")
        yield chart, overlay


def _env(folder: Path) -> dict[str, str]:
    """helm's own folders inside the temporary one, so that it neither reads nor leaves anything elsewhere."""
    home = folder.parent
    return {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
