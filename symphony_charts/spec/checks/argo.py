"""What an experiment of kind argo says that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.errors import Problem
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of
from symphony_charts.spec.variable_names import is_shell_name

__all__ = ["argo_faults"]

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PATH = "workload.argo"


def argo_faults(experiment: Experiment) -> Iterator[Problem]:
    """The faults of `workload.argo`, where the experiment is of that kind."""
    argo = experiment.workload.argo
    if argo.retries < 0:
        yield Problem(what="fewer retries than none", path=f"{_PATH}.retries", next="0 means no retry")
    for index, line in enumerate(argo.schedules):
        if len(line.split()) != 5 and not line.startswith("@"):
            hint = 'a cron line has five fields, such as "0 3 * * *"'
            yield Problem(what=f'"{line}" is no schedule', path=f"{_PATH}.schedules[{index}]", next=hint)
    for index, name in enumerate(argo.parameters):
        yield from _parameter(experiment, name, f"{_PATH}.parameters[{index}]")
    yield from _needs(argo.needs)


def _parameter(experiment: Experiment, name: str, path: str) -> Iterator[Problem]:
    values = {process.env[name] for _, process in processes_of(experiment) if name in process.env}
    texts = [value for value in values if isinstance(value, str)]
    if not is_shell_name(name) or any("{{" in text for text in texts):
        what = f'"{name}" is a parameter whose name or value Argo does not pass on unchanged'
        yield Problem(what=what, path=path, next="use letters, digits and _ in the name, and no {{ in the value")
    elif not texts:
        yield Problem(what=f'no process declares the variable "{name}"', path=path, next="add it to a process's env")
    elif len(values) > 1:
        what = f'processes declare "{name}" differently'
        yield Problem(what=what, path=path, next="give each its own variable, or all the same value")


def _needs(needs: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    for name, after in needs.items():
        path = f"{_PATH}.needs.{name}"
        if not _LABEL.fullmatch(name):
            yield Problem(what=f'no release is called "{name}"', path=path, next="name the release of the other chart")
        for other in after:
            if other not in needs:
                yield Problem(what=f'"{name}" waits for "{other}", which is not needed', path=path, next="list it too")
    left = dict(needs)
    while ready := [name for name, after in left.items() if not set(after) & set(left)]:
        for name in ready:
            del left[name]
    if left:
        what = f"{', '.join(left)} wait for each other"
        yield Problem(what=what, path=f"{_PATH}.needs", next="take one of the arrows out")
