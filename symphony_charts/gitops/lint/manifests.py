"""Rules for the objects in `bootstrap/` and `flux/`: settings that run finished work again, lose it or block it.

Source: argoproj/argo-cd, controller/appcontroller.go (autoSync), controller/state.go, gitops-engine/pkg/sync;
docs/operator-manual/high_availability.md, docs/user-guide/sync-options.md, sync-waves.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding, Severity, title
from symphony_charts.formats.data import maps, sub

__all__ = ["check_manifest"]

_PATHS = "argocd.argoproj.io/manifest-generate-paths"
_PATH_SEGMENT = re.compile(r"\{\{-?\s*index\s+\.path\.segments\s+\d+\s*-?\}\}")


def check_manifest(item: dict[str, object]) -> Iterator[Finding]:
    """Yield the faults of an ApplicationSet or a HelmRelease; other kinds have none."""
    if item.get("kind") == "ApplicationSet":
        yield from _application(item)
        yield from _generators(item)
    elif item.get("kind") == "HelmRelease":
        yield from _helm_release(item)


def _application(item: dict[str, object]) -> Iterator[Finding]:
    template = sub(item, "spec", "template")
    spec, policy = sub(template, "spec"), sub(template, "spec", "syncPolicy")
    yield from _sync_options(item, policy.get("syncOptions"))
    if sub(policy, "automated").get("selfHeal") is True:
        yield _found(
            "self-heal",
            "warning",
            item,
            "selfHeal runs finished work again when it is gone",
            "selfHeal: false where the application holds Jobs",
            "spec.template.spec.syncPolicy.automated",
        )
    if "automated" in policy and _PATHS not in sub(template, "metadata", "annotations"):
        yield _found(
            "generate-paths",
            "error",
            item,
            f"without the annotation {_PATHS} a commit to any file may run finished work again",
            f'add {_PATHS}: "."',
            "spec.template.metadata.annotations",
        )
    for source in [sub(spec, "source"), *maps(spec, "sources")]:
        yield from _revision(item, source.get("targetRevision"), "spec.template.spec.source.targetRevision")
    # CODEOWNERS may guard the folders of a pointer, but not its content.
    if "{{" in _PATH_SEGMENT.sub("", str(spec.get("project", ""))):
        yield _found(
            "templated-project",
            "error",
            item,
            "who may write the files chooses the project, and with it what is allowed",
            "write the project's name, or take it from the path: {{ index .path.segments 1 }}",
            "spec.template.spec.project",
        )


def _sync_options(item: dict[str, object], options: object) -> Iterator[Finding]:
    chosen = {str(option).strip() for option in options} if isinstance(options, list) else set()
    path = "spec.template.spec.syncPolicy.syncOptions"
    if {"Replace=true", "Force=true"} <= chosen and "ApplyOutOfSyncOnly=true" not in chosen:
        yield _found(
            "replace",
            "error",
            item,
            "Force and Replace delete and make it again at every sync, changed or not",
            "leave them out",
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


def _generators(item: dict[str, object]) -> Iterator[Finding]:
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


def _found(rule: str, severity: Severity, item: dict[str, object], what: str, next: str, path: str) -> Finding:
    return Finding(rule=rule, severity=severity, path=f"{title(item)}.{path}", what=what, next=next)
