"""What stands in the borders and in the status line of tiles, as texts for tmux. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli.cockpit.rows import head_of
from symphony_charts.formats.printable import printable_line

__all__ = ["capacity", "choose", "color_of", "literal", "status_line", "title_of", "window_name"]

_MOST = 16
# A tile that is smaller shows nothing worth reading, in cells; its border is one line more.
_WIDTH, _HEIGHT = 24, 3
_NAMED = 3
_COLORS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "damaged": "red"}


def capacity(width: int, height: int) -> int:
    """How many tiles a window of that size has room for; at least one."""
    return max(1, min(_MOST, (width // _WIDTH) * (height // (_HEIGHT + 1))))


def choose(instances: Sequence[InstanceStatus], most: int) -> list[InstanceStatus]:
    """At most so many of them in their order; where there are more, those that failed are among them."""
    if len(instances) <= most:
        return list(instances)
    first = sorted(instances, key=lambda one: one.phase not in ("failed", "lost"))[:most]
    return [one for one in instances if one in first]


def literal(text: str) -> str:
    """`text` as tmux shows it in a format: nothing of it is a style, and it ends no command of an argument list."""
    return f" {printable_line(text).replace('#', '##')} "


def title_of(instance: InstanceStatus) -> str:
    """``agent-0  running 4s``."""
    return f"{instance.path}  {instance.state}"


def color_of(instance: InstanceStatus) -> str:
    """tmux's name of the colour of an instance's state."""
    return _COLORS.get(instance.phase, "yellow")


def status_line(status: ExperimentStatus, left_out: int, now: float) -> str:
    """What has failed, how many there is no room for, and who is ready."""
    failed = [one.path for one in status.instances if one.phase == "failed"]
    more = f" +{len(failed) - _NAMED}" if len(failed) > _NAMED else ""
    parts = [f"failed: {', '.join(failed[:_NAMED])}{more}"] if failed else []
    parts += [f"{left_out} more are not shown"] if left_out else []
    return "   ".join([*parts, head_of(status, {}, now)])


def window_name(status: ExperimentStatus) -> str:
    """The status in the few cells that the name of a window has."""
    processes = [one for one in status.instances if not one.is_step]
    well = sum(one.ready or one.phase == "succeeded" for one in processes)
    failed = sum(one.phase == "failed" for one in processes)
    return f"{status.name} {well}/{len(processes)}" + (f" {failed} failed" if failed else "")
