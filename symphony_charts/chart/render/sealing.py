"""A release whose Secret is to be sealed has all of it sealed, and for itself: the twin of ``symph.checkSealed``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symphony_charts.chart.render.values import scalar
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub

__all__ = ["check_sealed", "sealed_for", "unsealed"]


def check_sealed(secrets: Mapping[str, object], name: str, namespace: str) -> None:
    """Raise SpecError where sealed values are missing, or were sealed for another Secret than `name`."""
    if secrets.get("source") != "sealed":
        return
    lacking = unsealed(secrets, sorted(sub(dict(secrets), "files")))
    if lacking:
        raise SpecError([_missing(lacking, namespace)])
    own = sealed_for(scalar(secrets.get("scope") or "strict"), namespace, name)
    said = scalar(secrets.get("sealedFor") or "")
    if said and own and said != own:
        what = f"secrets.sealedFor: what is sealed opens as {said} alone, and this is {own}"
        raise SpecError.one(what, "secrets.sealedFor", next=_step(namespace))


def unsealed(secrets: Mapping[str, object], keys: Iterable[str]) -> list[str]:
    """The keys that nothing is sealed for; none where the Secret has a name and is made apart."""
    sealed = sub(dict(secrets), "encryptedData")
    return [] if secrets.get("name") and not sealed else [key for key in keys if not sealed.get(key)]


def sealed_for(scope: str, namespace: str, name: str) -> str:
    """What sealed values are bound to: a Secret, a namespace, or nothing."""
    return {"strict": f"{namespace}/{name}", "namespace-wide": namespace}.get(scope, "")


def _missing(lacking: list[str], namespace: str) -> Problem:
    what = f"secrets.encryptedData: nothing is sealed for {', '.join(lacking)}"
    return Problem(what=what, path="secrets.encryptedData", next=_step(namespace))


def _step(namespace: str) -> str:
    return f"symph secrets seal SPEC -n {namespace} --cert cluster > sealed.yaml, then -f sealed.yaml"
