"""Charts for the tests: those of the examples, and of experiments that a test makes up."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.adapters import data, files, specfile
from symphony_charts.chart.package import ChartTemplate, build_chart
from symphony_charts.network.services import allocate
from symphony_charts.spec.load import from_data
from symphony_charts.spec.model import Experiment

__all__ = ["CHECKOUT", "EXAMPLES", "ExampleCharts", "package", "package_data", "spec_of"]

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = ("integrate", "ring", "ring-group", "rl", "surreal")
"""The examples that run without special hardware."""


def package(experiment: Experiment, folder: Path, version: str = "0.1.0") -> Path:
    """Write the chart of `experiment` to ``<folder>/<its name>``; that path."""
    template = ChartTemplate(data.folder("chart-template"))
    chart = build_chart(experiment, allocate(experiment), version, template)
    path = folder / chart.name
    files.write_tree(path, chart.files)
    return path


def package_data(experiment: dict[str, object], folder: Path, version: str = "0.1.0") -> Path:
    """The same for an experiment as its YAML would say it."""
    return package(from_data(experiment), folder, version)


class ExampleCharts(dict[str, Path]):
    """The charts of the examples by name, each packaged into `folder` when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> Path:
        self[name] = package(specfile.read(spec_of(name)).experiment, self._folder)
        return self[name]


def spec_of(name: str) -> Path:
    """The spec file of an example."""
    (found,) = (p for p in (CHECKOUT / "examples" / name).glob("experiment.*") if p.suffix in (".yaml", ".py"))
    return found
