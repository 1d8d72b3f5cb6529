"""A chart contains its source experiment, from which its trees can be rebuilt."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.chart.build.chart import build
from symphony_charts.chart.release import open_chart, origin_text
from symphony_charts.errors import SpecError
from symphony_charts.spec import files as specfile
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from tests.chart.harness import EXAMPLES, chart_of, experiment_of

_SPECS = [path for path in EXAMPLES if not path.name.endswith(".lock.yaml")]


def files_of(experiment: Experiment) -> dict[str, bytes]:
    return dict(chart_of(experiment).files)


@pytest.mark.parametrize("path", _SPECS, ids=lambda path: path.parent.name)
def test_a_chart_gives_the_same_trees_again(path: Path) -> None:
    experiment = finish(specfile.read(path).experiment, for_cluster=True)
    files = files_of(experiment)
    again = open_chart(files, "chart")
    assert {f"templates/{name}": text.encode() for name, text in again.texts().items()} == {
        path: content for path, content in files.items() if path.startswith("templates/")
    }
    assert again.values == build(experiment, allocate(experiment)).values


def test_the_origin_tells_nothing_of_this_machine() -> None:
    process = {"command": ["a"], "binds": "api", "local": {"cwd": "/home/me"}}
    experiment = experiment_of(
        processes={"a": process}, secrets=[{"file": "~/private/token"}], local={"cwd": "/home/me"}
    )
    text = origin_text(experiment, allocate(experiment)).decode()
    assert "/home/me" not in text
    assert "private" not in text
    assert "token" in text


def test_a_shell_for_lines_of_this_machine_is_no_part_of_a_chart() -> None:
    files = files_of(experiment_of(processes={"a": {"shell": "bash", "local": {"cmds": ["x"]}}}))
    assert open_chart(files, "charts/exp").experiment.processes["a"].shell == "sh"


def test_an_edited_template_is_named() -> None:
    files = files_of(experiment_of(processes={"a": {"command": ["a"]}}))
    files["templates/a.yaml"] += b"# edited\n"
    with pytest.raises(SpecError, match=r"templates/a\.yaml: edited, or made by another version"):
        open_chart(files, "charts/exp")


def test_a_chart_of_somebody_else_is_refused() -> None:
    with pytest.raises(SpecError, match=r"no experiment\.yaml"):
        open_chart({"Chart.yaml": b"name: nginx\n"}, "charts/nginx")
