"""Processes that other tools start at once also start at once here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.importers.input_file import Source, from_data, read
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.dijob.importer import import_dijob
from symphony_charts.integrations.symphony.importer import import_legacy
from symphony_charts.integrations.symphony.spec import ExperimentSpec
from symphony_charts.integrations.symphony.subproc import SubprocExperimentSpec
from symphony_charts.integrations.torchx.importer import import_torchx
from symphony_charts.spec.builder.experiment import ExperimentSpec as OurSpec

_SAMPLES = Path(__file__).parents[2] / "examples" / "import"


@pytest.mark.parametrize(
    ("importer", "name"),
    [(import_legacy, "symphony-tmux.yaml"), (import_torchx, "appdef.json"), (import_dijob, "dijob-v1.1.0.yaml")],
)
def test_who_starts_everything_at_once_does_so_here(importer: Callable[[Source], Imported], name: str) -> None:
    assert importer(read((_SAMPLES / name).read_bytes(), name)).experiment.local.start == "together"


@pytest.mark.parametrize(
    ("process", "on_failure"),
    [({"cmds": ["x"]}, "continue"), ({"container_image": "i:1"}, "continue"), ({"cmd": "x"}, "stop")],
)
def test_what_a_failure_ended_in_symphony_it_ends_here(process: dict[str, object], on_failure: str) -> None:
    imported = import_legacy(from_data({"name": "e", "processes": [{"name": "p", **process}]}, "dump"))
    assert imported.experiment.on_failure == on_failure


@pytest.mark.parametrize(
    ("builder", "start", "on_failure"),
    [
        (ExperimentSpec, "together", "continue"),
        (SubprocExperimentSpec, "together", "stop"),
        (OurSpec, "in-order", "stop"),
    ],
)
def test_a_program_for_symphony_starts_at_once_and_goes_on_after_a_failure_as_there(
    builder: type[OurSpec], start: str, on_failure: str
) -> None:
    spec = builder("e")
    spec.new_process("p", **{"cmd" if builder is SubprocExperimentSpec else "command": "true"})  # type: ignore[arg-type]  # one of two words
    assert (spec.finish().local.start, spec.finish().on_failure) == (start, on_failure)
