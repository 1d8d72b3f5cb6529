"""What our defaults take from a process that it had where it was imported from, and the field that gives it back."""

from __future__ import annotations

from symphony_charts.importers.common.report import Note
from symphony_charts.spec.model import Experiment

__all__ = ["taken_away"]


def taken_away(experiment: Experiment) -> tuple[Note, ...]:
    """What plain pods, as other tools make them, may do and those of `experiment` may not."""
    security, notes = experiment.security, []
    if security.level != "privileged":
        what = "containers lose all capabilities and cannot gain privileges (no sudo, no setuid), which plain pods can"
        next_step = "set `security: {level: privileged}` to give both back"
        notes.append(Note(path="security.level", what=what, next=next_step, verdict="changed"))
    if not security.service_account_token:
        what = "pods get no token of their service account, which plain pods get"
        next_step = "set `security: {service_account_token: true}` to give it back"
        notes.append(Note(path="security", what=what, next=next_step, verdict="changed"))
    return tuple(notes)
