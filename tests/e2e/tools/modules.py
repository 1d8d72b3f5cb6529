"""Files out of Go modules: custom resource definitions, which projects ship in their sources."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from symphony_charts.errors import ToolFailed
from tests.e2e.tools.build import cache_folder
from tests.e2e.tools.go import environment, find_go

__all__ = ["module_folder"]


def module_folder(module: str) -> Path:
    """The unpacked sources of ``path@version``, downloaded the first time. Raises ToolFailed where it cannot be had."""
    go = find_go(cache_folder())
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "go.mod").write_text("module crds\n\ngo 1.24\n")
        argv = [str(go.path), "mod", "download", "-json", module]
        done = subprocess.run(
            argv, cwd=scratch, capture_output=True, text=True, timeout=600, env=environment(), check=False
        )
    try:
        return Path(json.loads(done.stdout)["Dir"])
    except (ValueError, KeyError) as error:
        raise ToolFailed(f"cannot download {module}: {done.stdout[-300:]}{done.stderr[-300:]}") from error
