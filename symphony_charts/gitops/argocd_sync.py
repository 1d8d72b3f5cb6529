"""The reasons for Applications of Argo CD that are not synced with Git."""

from __future__ import annotations

import re
from collections.abc import Iterator

from symphony_charts.backend.diagnosis import Diagnosis
from symphony_charts.formats.printable import several
from symphony_charts.kinds.base import Object

# Sources: argoproj/argo-cd, pkg/apis/application/v1alpha1/types.go (OperationState, ResourceResult, conditions);
# kubernetes/apimachinery, pkg/api/validation (messages about immutable fields).

_IMMUTABLE = re.compile(
    r"(?P<kind>\w+)(?:\.[\w.-]+)? \"(?P<name>[^\"]+)\" is invalid: (?P<field>[\w.\[\]]+): .*?"
    r"(?:field is immutable|are forbidden|may not change)",
    re.DOTALL,
)
_FAILED = ("Failed", "Error")


def why_unsynced(application: Object) -> Diagnosis | None:
    """Return why an Application is not synced with Git; None if it is synced."""
    meta, status = application["metadata"], application.get("status") or {}
    place = str(((application.get("spec") or {}).get("destination") or {}).get("namespace") or "default")
    look = f"kubectl -n {meta.get('namespace', 'argocd')} describe application {meta['name']}"
    for text in _refusals(status):
        match = _IMMUTABLE.search(text)
        if match:
            kind, name = match["kind"].lower(), match["name"]
            said = f"Argo CD cannot apply it: {match['field']} of {match['kind']}/{name} is immutable"
            return Diagnosis(cause="immutable", text=said, next=f"kubectl -n {place} delete {kind}/{name}")
    errors = [item for item in status.get("conditions") or [] if str(item.get("type", "")).endswith("Error")]
    for text in (*_refusals(status), *(str(item.get("message") or item["type"]) for item in errors)):
        first = text.strip().partition("\n")[0][:300]
        return Diagnosis(cause="sync", text=f"Argo CD cannot apply it: {first}", next=look)
    differing = [item for item in status.get("resources") or [] if item.get("status") == "OutOfSync"]
    is_busy = (status.get("operationState") or {}).get("phase") == "Running"
    if (status.get("sync") or {}).get("status") == "OutOfSync" and differing and not is_busy:
        names = [f"{item.get('kind')}/{item.get('name')}" for item in differing]
        return Diagnosis(cause="drift", text=f"it differs from Git: {several(names, 1)}", next=look)
    return None


def _refusals(status: Object) -> Iterator[str]:
    operation = status.get("operationState") or {}
    for item in (operation.get("syncResult") or {}).get("resources") or []:
        if item.get("status") == "SyncFailed":
            yield str(item.get("message") or "")
    if operation.get("phase") in _FAILED:
        yield str(operation.get("message") or operation["phase"])
