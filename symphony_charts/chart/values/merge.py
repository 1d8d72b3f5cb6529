"""Values over a chart's own, as helm merges them.

Source: helm/helm, pkg/chart/common/util/coalesce.go (maps merge, lists replace, null deletes).
"""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.render.values import Values

__all__ = ["merge"]


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> Values:
    """`base` with `over` on top: maps merge, all else is replaced; a null takes a default away.

    A null for what `base` does not have stays, as it does in helm. Neither is changed; parts of both are shared.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if value is None and key in result:
            del result[key]
        elif isinstance(value, Mapping) and isinstance(old, dict):
            result[key] = merge(old, value)
        else:
            result[key] = value
    return result
