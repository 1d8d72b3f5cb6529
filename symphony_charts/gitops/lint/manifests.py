"""The rules judge any object that Argo CD syncs from Git: what re-runs, loses or blocks finite work.

Source: argoproj/argo-cd, controller/appcontroller.go (autoSync), controller/state.go, gitops-engine/pkg/sync;
docs/operator-manual/high_availability.md, docs/user-guide/sync-options.md, sync-waves.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from symphony_charts.chart.lint.finding import Finding, Severity, title
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.registry import ALL, kind_for

__all__ = ["check_manifest"]

_OURS = {word for kind in ALL if kind.is_finite for _, word in kind.gvks}
_FINITE_KINDS = frozenset({*_OURS, "PyTorchJob", "TFJob", "MPIJob", "TrainJob", "RayJob"})
_TTL = ("ttlSecondsAfterFinished", "ttlStrategy")
_HOOKS = ("helm.sh/hook", "argocd.argoproj.io/hook")
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
_PATHS = "argocd.argoproj.io/manifest-generate-paths"


_PATH_SEGMENT = re.compile(r"\{\{-?\s*index\s+\.path\.segments\s+\d+\s*-?\}\}")


def check_manifest(item: dict[str, object]) -> Iterator[Finding]:
    """What is wrong with one object; nothing for what is no object."""
    kind = item.get("kind")
    if kind in _FINITE_KINDS:
        yield from _finite(item)
    elif kind == "Pod":
        yield from _pod(item)
    elif kind == "Secret" and (sub(item, "data") or sub(item, "stringData")):
        yield _found(
            "secret-in-git", "error", item, "a Secret with its values stands in Git", "seal it: symph secrets seal"
        )
    elif kind == "Application":
        yield from _application(item, sub(item, "spec"), sub(item, "metadata", "annotations"), "")
    elif kind == "ApplicationSet":
        yield from _application_set(item)
    elif kind == "HelmRelease":
        yield from _helm_release(item)
    elif kind == "List":
        for part in maps(item, "items"):
            yield from check_manifest(part)


def _finite(item: dict[str, object]) -> Iterator[Finding]:
    spec, metadata = sub(item, "spec"), sub(item, "metadata")
    for key in _TTL:
        if key in spec:
            yield _found(
                "ttl",
                "error",
                item,
                f"{key} removes it when it is done, and the next commit to any file runs it again",
                "leave it out; `symph retire` removes what is done",
                f"spec.{key}",
            )
    if "generateName" in metadata and "name" not in metadata:
        yield _found("generate-name", "error", item, "generateName cannot be synced", "give it a name", "metadata")
    annotations = sub(item, "metadata", "annotations")
    if any(str(key).startswith(_HOOKS) for key in annotations):
        yield _found(
            "hook",
            "error",
            item,
            "a hook blocks every other sync until it is done, and runs again at each",
            "make it a plain object",
            "metadata.annotations",
        )
    yield from _sync_options(item, str(annotations.get(_SYNC_OPTIONS, "")).split(","), "metadata.annotations")
    if "suspend" in spec and "kueue.x-k8s.io/queue-name" in sub(item, "metadata", "labels"):
        yield _found(
            "kueue-suspend",
            "error",
            item,
            "Kueue changes spec.suspend; in Git it is drift",
            "leave it out",
            "spec.suspend",
        )
    pod = sub(item, "spec", "template", "spec")
    kind = kind_for(item)
    if kind and not kind.holds_groups and pod and "backoffLimit" not in spec and "backoffLimitPerIndex" not in spec:
        yield _found("backoff", "warning", item, "without backoffLimit it starts again six times", "say how often")


def _pod(item: dict[str, object]) -> Iterator[Finding]:
    if any(str(key).startswith(_HOOKS) for key in sub(item, "metadata", "annotations")):
        return
    yield _found(
        "bare-pod",
        "error",
        item,
        "a Pod of its own is lost with its node, and made again by the next commit",
        "wrap it in a Job with backoffLimit 0, or in a StatefulSet",
    )


def _sync_options(item: dict[str, object], options: list[object] | list[str], path: str) -> Iterator[Finding]:
    chosen = {str(option).strip() for option in options}
    if {"Replace=true", "Force=true"} <= chosen and "ApplyOutOfSyncOnly=true" not in chosen:
        yield _found(
            "replace",
            "error",
            item,
            "Force and Replace delete and make it again at every sync, changed or not",
            "name it after its content instead",
            path,
        )
    if "PruneLast=true" in chosen:
        yield _found(
            "prune-last",
            "error",
            item,
            "PruneLast keeps the old run, and what it holds, until the new one is done",
            "leave it out: pruning comes first",
            path,
        )


def _application(
    item: dict[str, object], spec: dict[str, object], annotations: Mapping[str, object], below: str
) -> Iterator[Finding]:
    policy = sub(spec, "syncPolicy")
    automated = sub(policy, "automated")
    options = policy.get("syncOptions")
    yield from _sync_options(item, options if isinstance(options, list) else [], f"{below}spec.syncPolicy.syncOptions")
    if automated.get("selfHeal") is True:
        yield _found(
            "self-heal",
            "warning",
            item,
            "selfHeal runs finished work again when it is gone",
            "selfHeal: false where the application holds Jobs",
            f"{below}spec.syncPolicy.automated",
        )
    if "automated" in policy and _PATHS not in annotations:
        yield _found(
            "generate-paths",
            "error",
            item,
            f"without the annotation {_PATHS} a commit to any file may run finished work again",
            f'add {_PATHS}: "."',
            f"{below}metadata.annotations",
        )
    for source in [sub(spec, "source"), *maps(spec, "sources")]:
        yield from _revision(item, source.get("targetRevision"), f"{below}spec.source.targetRevision")


def _revision(item: dict[str, object], revision: object, path: str) -> Iterator[Finding]:
    if isinstance(revision, str) and revision in ("main", "master", "HEAD", "develop"):
        yield _found(
            "revision",
            "warning",
            item,
            f'"{revision}" makes Argo CD load all refs to resolve it',
            f"refs/heads/{'main' if revision == 'HEAD' else revision}",
            path,
        )


def _application_set(item: dict[str, object]) -> Iterator[Finding]:
    template = sub(item, "spec", "template")
    yield from _application(item, sub(template, "spec"), sub(template, "metadata", "annotations"), "spec.template.")
    # The folders of a file may be guarded (CODEOWNERS), what it says is not.
    if "{{" in _PATH_SEGMENT.sub("", str(sub(template, "spec").get("project", ""))):
        yield _found(
            "templated-project",
            "error",
            item,
            "who may write the files chooses the project, and with it what is allowed",
            "write the project's name, or take it from the path: {{ index .path.segments 1 }}",
            "spec.template.spec.project",
        )
    for generator in maps(item.get("spec"), "generators"):
        git = sub(generator, "git")
        yield from _revision(item, git.get("revision"), "spec.generators.git.revision")
        for place in maps(git, "files"):
            path = str(place.get("path", ""))
            if path.rpartition("/")[2] in ("*.yaml", "*.json", "config.yaml", "config.json", "*"):
                yield _found(
                    "greedy-glob",
                    "warning",
                    item,
                    f'"{path}" also takes files further down: a * matches / there',
                    "give such files a suffix of their own",
                    "spec.generators.git.files",
                )


def _helm_release(item: dict[str, object]) -> Iterator[Finding]:
    for step in ("install", "upgrade"):
        options = sub(item, "spec", step)
        if options.get("disableWaitForJobs") is not True and options.get("disableWait") is not True:
            yield _found(
                "flux-wait",
                "error",
                item,
                "Flux waits five minutes for Jobs, calls longer ones failed, and may uninstall them",
                f"spec.{step}.disableWait: true and disableWaitForJobs: true",
                f"spec.{step}",
            )


def _found(rule: str, severity: Severity, item: dict[str, object], what: str, next: str, path: str = "") -> Finding:
    where = f"{title(item)}.{path}" if path else title(item)
    return Finding(rule=rule, severity=severity, path=where, what=what, next=next)
