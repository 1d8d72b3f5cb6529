"""Which keys a Secret of a cluster has; its values stay on the cluster's side of kubectl's template."""

from __future__ import annotations

from symphony_charts.system.subprocess_runner import run

__all__ = ["secret_keys"]

_KEYS = '{{range $key, $_ := .data}}{{$key}}{{"\\n"}}{{end}}'


def secret_keys(name: str, namespace: str | None, context: str | None = None) -> set[str] | None:
    """The keys of a Secret, None where there is none. Raises ToolMissing, and ToolFailed without a cluster."""
    place = [f"--namespace={namespace}"] if namespace else []
    place += [f"--context={context}"] if context else []
    argv = ["kubectl", "get", "secret", *place, "--request-timeout=10s", "-o", f"go-template={_KEYS}", "--", name]
    ended = run(argv, timeout_s=30, check=False)
    if ended.status == 0:
        return set(ended.text.split())
    if "NotFound" in ended.error_text:
        return None
    raise ended.failure(f"cannot ask the cluster: {ended.error_text.strip()}", next="kubectl config current-context")
