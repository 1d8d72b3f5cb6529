"""Charts to publish, small and different; made once, for their content is not what these tests are about."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.files.chart import Chart, make_chart
from symphony_charts.gitops.operations.publish import Publish
from symphony_charts.package import template
from symphony_charts.spec.data import from_data
from symphony_charts.spec.services import allocate

__all__ = ["NOW", "chart_of", "publish", "small_chart", "small_publish"]

NOW = 1_700_000_000


@lru_cache(maxsize=32)
def chart_of(name: str = "rl", replicas: int = 2, image: str = "busybox:1.37.0") -> Chart:
    """The chart of a server and its clients."""
    data = {
        "name": name,
        "image": image,
        "processes": {
            "server": {"command": ["serve"], "binds": "data", "lifecycle": "service"},
            "client": {"command": ["work"], "connects": "data", "replicas": replicas},
        },
    }
    experiment = from_data(data)
    return make_chart(experiment.name, compile_values(experiment, allocate(experiment)), "0.1.0", template())


def publish(chart: Chart, env: str | None = "dev", team: str = "team", **fields: Any) -> Publish:
    """The publishing of a chart."""
    made = Publish(
        team=team, name=chart.name, chart_files=chart.files, values=chart.values, digest=chart.digest, env=env
    )
    return replace(made, **fields)


def small_chart(name: str, number: int) -> Chart:
    """A chart of three files that differs by `number`."""
    values: dict[str, object] = {"number": number}
    files = {
        "Chart.yaml": f'apiVersion: v2\nname: {name}\nversion: "0.1.0"\n'.encode(),
        "values.yaml": f"number: {number}\n".encode(),
        "templates/config.yaml": b"kind: ConfigMap\n",
    }
    return Chart(name=name, version="0.1.0", values=values, files=files)


def small_publish(name: str, number: int, env: str | None = "dev", **fields: Any) -> Publish:
    """The publishing of a small chart."""
    chart = small_chart(name, number)
    return publish(chart, env, **fields)
