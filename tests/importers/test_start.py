"""What other tools start at once starts at once here, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.compat.spec import ExperimentSpec
from symphony_charts.importers.common.input_file import Source, read
from symphony_charts.importers.common.report import Imported
from symphony_charts.importers.dijob.importer import import_dijob
from symphony_charts.importers.symphony.importer import import_legacy
from symphony_charts.importers.torchx.importer import import_torchx
from symphony_charts.spec.builder.experiment import ExperimentSpec as OurSpec

_SAMPLES = Path(__file__).parents[2] / "examples" / "import"


@pytest.mark.parametrize(
    ("importer", "name"),
    [(import_legacy, "symphony-tmux.yaml"), (import_torchx, "appdef.json"), (import_dijob, "dijob-v1.1.0.yaml")],
)
def test_who_starts_everything_at_once_does_so_here(importer: Callable[[Source], Imported], name: str) -> None:
    assert importer(read((_SAMPLES / name).read_bytes(), name)).experiment.local.start == "together"


@pytest.mark.parametrize(("builder", "start"), [(ExperimentSpec, "together"), (OurSpec, "in-order")])
def test_a_program_for_symphony_starts_its_processes_at_once(builder: type[OurSpec], start: str) -> None:
    spec = builder("e")
    spec.new_process("p", command="true")
    assert spec.finish().local.start == start
