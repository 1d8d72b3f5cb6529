"""Charts for the tests, made as a user makes them: by ``symph package``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = ("integrate", "parameter-server", "ppo", "ring", "ring-group", "rl", "surreal")
"""The examples that run without special hardware."""


def package_spec(spec: Path, folder: Path, *changes: str, version: str = "0.1.0") -> Path:
    """Package a spec file with `changes` (``--spec-set``) into `folder`; return the chart's own folder there."""
    argv = [sys.executable, "-m", "symphony_charts", "package", str(spec), "--dest", str(folder), "--version", version]
    argv += [word for change in changes for word in ("--spec-set", change)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"symph package {spec}: {done.stdout}\n{done.stderr}"
    (found,) = folder.glob("*/Chart.yaml")
    return found.parent


def package_data(experiment: dict[str, object], folder: Path, *changes: str, version: str = "0.1.0") -> Path:
    folder.mkdir(exist_ok=True)
    spec = folder / f"{experiment['name']}.json"
    spec.write_text(json.dumps(experiment))
    return package_spec(spec, folder, *changes, version=version)


class ExampleCharts(dict[str, Path]):
    """The charts of the examples by name, each packaged on first use.

    They are made from a copy: packaging pins ports in a file beside the spec, and the checkout must not change.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        shutil.copytree(CHECKOUT / "examples", folder / "examples")

    def spec(self, name: str) -> Path:
        place = self._folder / "examples" / name
        (found,) = (p for p in place.glob("experiment.*") if p.suffixes in ([".yaml"], [".py"]))
        return found

    def changed(self, name: str, *changes: str) -> Path:
        """Package an example whose spec has `changes`; return the chart's own folder."""
        return package_spec(self.spec(name), Path(tempfile.mkdtemp(dir=self._folder)), *changes)

    def __missing__(self, name: str) -> Path:
        self[name] = package_spec(self.spec(name), self._folder / name)
        return self[name]
