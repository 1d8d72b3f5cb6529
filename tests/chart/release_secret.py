"""Size of the release that helm stores; tests/e2e/test_leftovers.py compares it with a cluster."""

from __future__ import annotations

import base64
import gzip
import json

from symphony_charts.chart.files import Chart


def release_kb(chart: Chart, manifest: str) -> float:
    """Return the size in kilobytes of the Secret that helm writes for a release.

    It is the release's JSON, which holds files as base64, packed by gzip.
    Source: helm/helm, pkg/chart/v2/chart.go, pkg/storage/driver/util.go.
    """
    files = {path: base64.b64encode(content).decode() for path, content in chart.packed.items()}
    apart = ("Chart.yaml", "values.yaml", "values.schema.json")
    parts = {
        "metadata": {"name": chart.name, "version": chart.version},
        "templates": [{"name": path, "data": files[path]} for path in files if path.startswith("templates/")],
        "files": [
            {"name": path, "data": files[path]}
            for path in files
            if path not in apart and not path.startswith("templates/")
        ],
        "values": chart.values,
        "schema": files["values.schema.json"],
    }
    whole = {"name": "exp", "version": 1, "manifest": manifest, "chart": parts}
    return len(base64.b64encode(gzip.compress(json.dumps(whole, separators=(",", ":")).encode(), 9))) / 1000
