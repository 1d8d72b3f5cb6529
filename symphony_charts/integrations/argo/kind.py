"""The settings of an Argo Workflow: their record, short forms and faults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from symphony_charts.errors import Problem
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of
from symphony_charts.spec.record import Record
from symphony_charts.spec.shorthand_fields import words
from symphony_charts.spec.variable_names import is_shell_name
from symphony_charts.spec.workload import Workload

__all__ = ["SHORT_FORMS", "ArgoSettings", "argo_faults", "expanded", "settings_of"]

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PATH = "workload.argo"
_WORDS = [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number", "boolean"]}}]

SHORT_FORMS: Mapping[str, Sequence[dict[str, Any]]] = {
    "schedules": ({"anyOf": _WORDS},),
    "parameters": ({"anyOf": _WORDS},),
    "needs": ({"anyOf": _WORDS}, {"type": "object", "additionalProperties": {"anyOf": [*_WORDS, {"type": "null"}]}}),
}
"""The JSON Schemas of the short forms of settings."""


class ArgoSettings(Record, frozen=True, kw_only=True):
    """Settings of an Argo Workflow.

    Without a schedule the experiment runs at once, or where `submit` is off only when it is submitted or needed.

    Attributes:
        schedules: Cron lines at which it runs.
        timezone: The time zone of `schedules`.
        concurrency: While one run goes on the next is left out (`Forbid`) or takes its place (`Replace`).
        submit: Whether it runs at once.
        needs: Releases of other experiments of this kind, which run first, and those that they wait for.
        retries: How often the whole is tried again.
        parameters: Variables that processes declare and that a submission may set.
        service_account: What creates the Jobs; one with just these rights is made without it.
    """

    schedules: list[str] = []
    timezone: str | None = None
    concurrency: Literal["Forbid", "Replace"] = "Forbid"
    submit: bool = True
    needs: dict[str, list[str]] = {}
    retries: int = 0
    parameters: list[str] = []
    service_account: str | None = None


def settings_of(workload: Workload) -> ArgoSettings:
    """Return the settings of an Argo Workflow."""
    return workload.settings("argo", ArgoSettings)


def expanded(settings: dict[str, object]) -> dict[str, object]:
    """Return the settings with lone words as lists, and a list of needs as a map in which they wait for nothing."""
    result = {key: words(item) if key in ("schedules", "parameters") else item for key, item in settings.items()}
    needs = settings.get("needs")
    listed = words(needs)
    if isinstance(listed, list):
        result["needs"] = {str(need): [] for need in listed}
    elif isinstance(needs, dict):
        result["needs"] = {need: [] if after is None else words(after) for need, after in needs.items()}
    return result


def argo_faults(experiment: Experiment) -> Iterator[Problem]:
    """The faults of `workload.argo`, where the experiment is of that kind."""
    argo = settings_of(experiment.workload)
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
