"""Small, different charts to publish; made once, because these tests do not depend on their content."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.files import Chart
from symphony_charts.gitops.operations import Publish
from symphony_charts.spec import files as specfile
from tests.chart import harness

NOW = 1_700_000_000


@lru_cache(maxsize=32)
def chart_of(name: str = "rl", replicas: int = 2, image: str = "busybox:1.37.0") -> Chart:
    processes = {
        "server": {"command": ["serve"], "binds": "data", "lifecycle": "service"},
        "client": {"command": ["work"], "connects": "data", "replicas": replicas},
    }
    return harness.chart_of(harness.experiment_of(name=name, image=image, processes=processes))


def example_objects(name: str, *workload: str) -> list[dict[str, Any]]:
    (path,) = (path for path in harness.EXAMPLES if path.parent.name == name)
    chart = harness.built_of(specfile.read(path, [f"workload.{text}" for text in workload]).experiment)
    return chart.objects(chart.values, Release(name="r"))


def publish(chart: Chart, env: str | None = "dev", team: str = "team", **fields: Any) -> Publish:
    made = Publish(
        team=team, name=chart.name, chart_files=chart.files, values=chart.values, digest=chart.digest, env=env or ""
    )
    return replace(made, **fields)


def small_chart(name: str, number: int) -> Chart:
    values: dict[str, object] = {"number": number}
    files = {
        "Chart.yaml": f'apiVersion: v2\nname: {name}\nversion: "0.1.0"\n'.encode(),
        "values.yaml": f"number: {number}\n".encode(),
        "templates/config.yaml": b"kind: ConfigMap\n",
    }
    return Chart(name=name, version="0.1.0", values=values, files=files)


def small_publish(name: str, number: int, env: str | None = "dev", **fields: Any) -> Publish:
    chart = small_chart(name, number)
    return publish(chart, env, **fields)
