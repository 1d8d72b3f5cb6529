"""What a run of this machine would cost an hour on the nodes that it is planned on stands beside its plan."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.backend.cost import Cost
from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import Run

__all__ = ["cost_of", "write_rate"]

_FILE = "rate.json"


def write_rate(run: Run, per_hour: float, source: str, unpriced: Sequence[str]) -> None:
    """Keep what an hour of the run costs: dollars, where they are from, and what has no price. Raises ToolFailed."""
    write_json(run.folder / _FILE, {"perHour": per_hour, "source": source, "noPrice": list(unpriced)})


def cost_of(run: Run, seconds: float | None) -> Cost | None:
    """What so much time of the run costs; None where no pools are known, or nobody knows how long it ran."""
    try:
        rate = read_json(run.folder / _FILE)
        per_hour = float(rate["perHour"])
        source, unpriced = str(rate["source"]), tuple(map(str, rate["noPrice"]))
    except (KeyError, NotFound, ToolFailed, TypeError, ValueError):
        # One damaged file must not hide how the run is.
        return None
    if seconds is None:
        return None
    return Cost(total=per_hour * seconds / 3600, per_hour=per_hour, source=source, unpriced=unpriced)
