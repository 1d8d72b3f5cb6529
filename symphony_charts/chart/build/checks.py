"""Checks that fail a release: values of another experiment, and sealed secrets that are missing or do not match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.chart.build.draft import Draft
from symphony_charts.chart.helpers import NAME, NO_NAME
from symphony_charts.chart.syntax import quoted
from symphony_charts.chart.tree import Helper, function_of
from symphony_charts.errors import SpecError
from symphony_charts.spec.sources import key_of

_OTHER = "the values are those of another experiment: use --reset-then-reuse-values instead of --reuse-values"
_OTHER_TARGET = "secrets.sealedFor: the values were sealed for %s, and this is %s"
_SEAL = "symph secrets seal SPEC -n NAMESPACE --cert cluster > sealed.yaml, then -f sealed.yaml"


def check_helper(draft: Draft, digest: str, secret_name: Helper | None) -> Helper:
    """Return the helper that fails if a release cannot work; `digest` is the `specDigest` of the chart's values."""
    go = [
        f'{{{{- if ne .Values.specDigest "{digest}" }}}}',
        f'{{{{- fail "{_OTHER}" }}}}',
        f'{{{{- else if not (regexMatch "{NAME}" (include "CHART.fullname" .)) }}}}',
        f'{{{{- fail (printf "%q {NO_NAME}" (include "CHART.fullname" .)) }}}}',
        "{{- end }}",
    ]
    sealed = draft.experiment.secrets and draft.experiment.secret_source.source == "sealed"
    keys = sorted(key_of(file) for file in draft.experiment.secrets) if sealed else []
    scope = draft.experiment.secret_source.scope
    if keys:
        go += _sealed_go(keys, scope)

    def check(root: Mapping[str, Any]) -> str:
        if root["Values"].get("specDigest") != digest:
            raise SpecError.one(_OTHER, "specDigest")
        if keys and secret_name is not None:
            _check_sealed(root, keys, scope, function_of(secret_name)(root))
        return ""

    return Helper(name="check", go="\n".join(go), py=check)


def sealed_for(scope: str, namespace: str, name: str) -> str:
    """Return what sealed values are bound to: a Secret, a namespace, or nothing."""
    return {"strict": f"{namespace}/{name}", "namespace-wide": namespace}.get(scope, "")


def unsealed(secrets: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    """Return the keys for which nothing is sealed; none if the Secret has a name and is made apart from the chart."""
    sealed = secrets.get("encryptedData") or {}
    return [key for key in keys if not sealed.get(key)] if sealed or not secrets.get("name") else []


def _check_sealed(root: Mapping[str, Any], keys: list[str], scope: str, name: str) -> None:
    secrets = root["Values"]["secrets"]
    missing = unsealed(secrets, keys)
    if missing:
        what = f"secrets.encryptedData: nothing is sealed for {', '.join(missing)}"
        raise SpecError.one(what, "secrets.encryptedData", next=_SEAL)
    target = sealed_for(scope, root["Release"]["Namespace"], name)
    if target and secrets["sealedFor"] not in ("", target):
        what = _OTHER_TARGET % (secrets["sealedFor"], target)
        raise SpecError.one(what, "secrets.sealedFor", next=_SEAL)


def _sealed_go(keys: list[str], scope: str) -> list[str]:
    names = " ".join(quoted(key) for key in keys)
    lines = [
        "{{- if or .Values.secrets.encryptedData (not .Values.secrets.name) }}",
        f"{{{{- range $key := list {names} }}}}",
        "{{- if not (index $.Values.secrets.encryptedData $key) }}",
        f'{{{{- fail (printf "secrets.encryptedData: nothing is sealed for %s: {_SEAL}" $key) }}}}',
        "{{- end }}",
        "{{- end }}",
        "{{- end }}",
    ]
    target = sealed_for(scope, "%s", "%s")
    if not target:
        return lines
    arguments = '.Release.Namespace (include "CHART.secretName" .)' if scope == "strict" else ".Release.Namespace"
    return [
        *lines,
        f'{{{{- $target := printf "{target}" {arguments} }}}}',
        '{{- if not (has .Values.secrets.sealedFor (list "" $target)) }}',
        f"{{{{- fail (printf {quoted(_OTHER_TARGET)} .Values.secrets.sealedFor $target) }}}}",
        "{{- end }}",
    ]
