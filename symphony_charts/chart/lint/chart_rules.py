"""The checks of chart-testing and `helm lint` on the files of a chart.

Source: helm/chart-testing, pkg/chart/chart.go, and helm/helm, pkg/chart/v2/lint/rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from symphony_charts.chart.files.version import check_version
from symphony_charts.chart.lint.finding import Finding
from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_text import load

__all__ = ["check_chart"]

_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_TRAILING = re.compile(rb"[ \t]+(?:\n|\Z)")
_KNOWN = frozenset(
    {
        "annotations",
        "apiVersion",
        "appVersion",
        "dependencies",
        "deprecated",
        "description",
        "home",
        "icon",
        "keywords",
        "kubeVersion",
        "maintainers",
        "name",
        "sources",
        "type",
        "version",
    }
)
_TEMPLATE_NAMES = (".yaml", ".yml", ".tpl", ".txt")


def check_chart(files: Mapping[str, bytes], *, known: Mapping[str, object] | None = None) -> Iterator[Finding]:
    """Yield faults of Chart.yaml, values files and the folder. `known` is the content of values.yaml, if read."""
    for path, content in sorted(files.items()):
        if path == "Chart.yaml":
            yield from _chart_yaml(content)
        elif _is_values(path) and not (
            isinstance(_loaded(content), dict) if known is None or path != "values.yaml" else known
        ):
            yield _error("chart-values", path, "it holds no map")
        if path.startswith("templates/") and not path.endswith(_TEMPLATE_NAMES):
            yield _error("chart-templates", path, "helm reads .yaml, .yml, .tpl and .txt in this folder")
        if path == "Chart.yaml" or _is_values(path):
            yield from _style(path, content)


def _is_values(path: str) -> bool:
    return path == "values.yaml" or (path.startswith("ci/") and path.endswith("-values.yaml"))


def _chart_yaml(content: bytes) -> Iterator[Finding]:
    data = _loaded(content)
    if not isinstance(data, dict):
        yield _error("chart-yaml", "Chart.yaml", "it holds no map")
        return
    name, version = data.get("name"), data.get("version")
    if not isinstance(name, str) or _DNS_LABEL.fullmatch(name) is None:
        yield _error("chart-yaml", "Chart.yaml.name", f"{name!r} is no chart name (lower case, digits, dashes)")
    if data.get("apiVersion") != "v2":
        yield _error("chart-yaml", "Chart.yaml.apiVersion", "it must be v2")
    if not isinstance(version, str):
        yield _error("chart-yaml", "Chart.yaml.version", f"{version!r} is not text; quote it")
    else:
        try:
            check_version(version)
        except SpecError as error:
            yield _error("chart-yaml", "Chart.yaml.version", error.what)
    for key in sorted(set(data) - _KNOWN):
        yield _error("chart-yaml", f"Chart.yaml.{key}", "helm does not know this key")
    if data.get("deprecated") and data.get("maintainers"):
        yield _error("chart-yaml", "Chart.yaml.maintainers", "a deprecated chart must not have maintainers")


def _style(path: str, content: bytes) -> Iterator[Finding]:
    """Yield violations of the rules of chart-testing's lintconf that generated text could break."""
    if content and not content.endswith(b"\n"):
        yield _error("chart-style", path, "no newline at the end of the file")
    if b"\r" in content:
        yield _error("chart-style", path, "Windows line ends")
    for match in _TRAILING.finditer(content):
        number = content.count(b"\n", 0, match.start()) + 1
        yield _error("chart-style", f"{path}:{number}", "trailing blanks")


@lru_cache(maxsize=256)
def _loaded(content: bytes) -> object:
    try:
        return load(content.decode())
    except ValueError:
        return None


def _error(rule: str, path: str, what: str) -> Finding:
    return Finding(rule=rule, severity="error", path=path, what=what)
