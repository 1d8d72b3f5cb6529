"""Find every type fault of an experiment, with the key that was probably meant or the place where a key belongs."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.errors import Problem
from symphony_charts.formats.field_reader import field_names, record_faults
from symphony_charts.spec.added_kinds import settings_record
from symphony_charts.spec.model import Experiment, Process

__all__ = ["experiment_faults"]

# What people write out of habit, from Symphony, compose files and Kubernetes, and the key meant.
_HABITS = {
    "container_image": "image",
    "containers": "processes",
    "depends_on": "after",
    "entrypoint": "command",
    "environment": "env",
    "env_from": "env",
    "group": "groups",
    "ports": "exposes",
    "process": "processes",
    "process_groups": "groups",
    "readiness_probe": "ready",
    "resources": "requests",
    "restart_policy": "restart",
    "service_account_name": "service_account",
    "start_dir": "cwd",
    "termination_grace_period_seconds": "grace_period",
    "volume_mounts": "mounts",
    "working_dir": "cwd",
}


def experiment_faults(data: object) -> Iterator[Problem]:
    """Yield all faults of `data` (shorthand already expanded) as the fields of an Experiment."""
    return record_faults(data, Experiment, _advice, settings_record)


def _advice(key: str, path: str, keys: list[str]) -> str:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key).strip("_")
    habit = _HABITS.get(snake.replace("-", "_"), "")
    if key == "resources" and "requests" in keys:
        return "write `requests` and `limits` right here, without `resources` around them"
    if path and "restart" in keys and key in field_names(Experiment):
        return f"`{key}` belongs to the experiment: write it at the left margin"
    if not path and "processes" in keys and key in field_names(Process):
        return f"`{key}` belongs to a process: indent it below its name, below `processes:`"
    if not path and "processes" in keys and key == "services":
        return "a service is what a process `binds`; a compose file comes over by symph import compose FILE"
    return f'did you mean "{habit}"?' if habit in keys else ""
