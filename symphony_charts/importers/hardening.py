"""Compare pods with our defaults to the plain pods of other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from symphony_charts.errors import SymphError
from symphony_charts.formats.data import sub
from symphony_charts.importers.report import Note
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of, resources_of

# Longer lists of names are cut to this length, followed by a count.
_NAMED = 3


def of_our_defaults(experiment: Experiment) -> tuple[Note, ...]:
    """Return notes on differences between pods of `experiment` with our defaults and plain pods."""
    return (*_taken_away(experiment), *_given(experiment))


def _taken_away(experiment: Experiment) -> Iterator[Note]:
    security = experiment.security
    if security.level != "privileged":
        what = "containers have no capabilities and cannot gain privileges (no sudo, no setuid), unlike plain pods"
        next_step = "to allow both: `security: {level: privileged}`"
        yield Note(path="security.level", what=what, next=next_step, verdict="changed")
    if not security.service_account_token:
        what = "pods do not get the token of their service account, unlike plain pods"
        next_step = "to mount it: `security: {service_account_token: true}`"
        yield Note(path="security", what=what, next=next_step, verdict="changed")


def _given(experiment: Experiment) -> Iterator[Note]:
    """Yield notes on default requests and limits that the input does not set."""
    # The image does not matter here, and some formats have none.
    imaged = msgspec.structs.replace(experiment, image=experiment.image or "any")
    try:
        prepared = prepare_experiment(imaged, force=True)
    except SymphError:  # an experiment without a valid chart has no containers
        return
    requests: dict[str, list[str]] = {}
    limited: list[str] = []
    for ref, process in processes_of(prepared.experiment):
        values = sub(prepared.values, "groups", ref.pod, "containers", ref.process, "resources")
        requested, limits = resources_of(process)
        exact = sub(process.container_overlay, "resources")
        asked = {*requested, *limits, *sub(exact, "requests"), *sub(exact, "limits")}
        given = [f"{amount} of {name}" for name, amount in sub(values, "requests").items() if name not in asked]
        if given:
            requests.setdefault(" and ".join(given), []).append(str(ref))
        if "memory" in sub(values, "limits") and "memory" not in {*limits, *sub(exact, "limits")}:
            limited.append(f"{ref} ({sub(values, 'limits')['memory']})")
    for amounts, names in requests.items():
        what = f"containers request {amounts}, which the input does not: {_listed(names)}"
        yield Note(path="requests", what=what, next="set `requests` of a process to change this", verdict="changed")
    if limited:
        what = f"containers limit memory to their request, which the input does not: {_listed(limited)}"
        yield Note(path="limits", what=what, next="set `limits` of a process to change this", verdict="changed")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
