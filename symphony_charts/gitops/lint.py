"""Check a repository that symph writes: pointers, charts, links, bootstrap objects, and its size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import yaml

from symphony_charts.chart.lint.finding import Finding, Severity, title
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.argocd import PROJECT_FILE, app_name, destination_fault, place_key
from symphony_charts.gitops.flux import FLUX_SOURCE_FILE
from symphony_charts.gitops.pointer import Pointer, parse_pointer, published_digest
from symphony_charts.gitops.published import values_problems

# Source: argoproj/argo-cd, controller/appcontroller.go (autoSync), controller/state.go, gitops-engine/pkg/sync;
# docs/operator-manual/high_availability.md, docs/user-guide/sync-options.md, sync-waves.md.

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
    # CODEOWNERS can protect the folders of a pointer, but not its content.
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


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CHART = re.compile(r"charts/[^/]+/[^/]+/[^/]+/Chart\.yaml")
# The first line of a pointer file. Source: the specification of Git LFS.
_LFS = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryFiles:
    """A repository's tree: contents by path, the paths of symbolic links, and of files `changed` since a base."""

    files: Mapping[str, bytes]
    links: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def check_repository(tree: RepositoryFiles) -> list[tuple[str, Finding]]:
    """Return all findings, each with its file, in order of path."""
    findings = [*_links(tree), *_immutable(tree)]
    pointers: list[tuple[str, Pointer]] = []
    for path, content in sorted(tree.files.items()):
        if path.endswith(snapshot.POINTER_SUFFIX):
            try:
                pointers.append((path, parse_pointer(content, path)))
            except SpecError as error:
                findings.append((path, _error("pointer", "", error.what, error.next)))
        elif path.startswith(("bootstrap/", "flux/")) and path.endswith((".yaml", ".yml")):
            findings += [(path, finding) for finding in _manifests(content)]
    findings += _pointers(pointers, tree)
    return sorted(findings, key=lambda item: (item[0], item[1].rule, item[1].path))


def is_repository(tree: RepositoryFiles) -> bool:
    """Return True if symph wrote the tree: it has a pointer, a published chart or files of `gitops init`."""
    return any(
        path in (PROJECT_FILE, FLUX_SOURCE_FILE) or snapshot.pointer_name(path) or _CHART.fullmatch(path)
        for path in tree.files
    )


def _published_charts(files: Iterable[str]) -> set[str]:
    """Return the folders ``charts/<team>/<experiment>/<version>`` among `files`."""
    return {"/".join(path.split("/")[:4]) for path in files if path.startswith("charts/") and path.count("/") > 3}


def _links(tree: RepositoryFiles) -> Iterator[tuple[str, Finding]]:
    for path in tree.links:
        yield (
            path,
            _error(
                "symlink",
                "",
                "a symbolic link that leads out of the repository stops every application of it",
                "put the file itself there",
            ),
        )


def _immutable(tree: RepositoryFiles) -> Iterator[tuple[str, Finding]]:
    for path in tree.changed:
        if path.startswith("charts/") and path.count("/") > 3:
            yield (
                path,
                _error("published-chart", "", "a published version never changes", "publish another: symph publish"),
            )


def _pointers(pointers: list[tuple[str, Pointer]], tree: RepositoryFiles) -> Iterator[tuple[str, Finding]]:
    charts = _published_charts(tree.files)
    digests: dict[str, str] = {}
    releases: dict[tuple[object, str], str] = {}
    applications: dict[str, str] = {}
    for path, pointer in pointers:
        expected = snapshot.pointer_name(path)
        if expected != (pointer.env, pointer.team, pointer.name):
            experiment = f"{pointer.env}/{pointer.team}/{pointer.name}"
            yield (
                path,
                _error(
                    "pointer-place",
                    "name",
                    f"it names {experiment}, which does not match its path",
                    "move it, or correct it",
                ),
            )
        if pointer.chart not in charts:
            yield (
                path,
                _error("pointer-chart", "chart", f"there is no {pointer.chart}", "roll back, or publish it again"),
            )
        else:
            digest = digests.setdefault(pointer.chart, _digest(pointer, tree.files))
            if digest != pointer.digest:
                yield path, _error("pointer-digest", "digest", *_why_other(pointer, tree.files))
            yield from _values(path, pointer, tree.files)
        fault = destination_fault(tree.files.get(PROJECT_FILE), path.split("/")[1], pointer.destination)
        if fault:
            next_step = "correct it; or give .symph.yaml the place, run symph gitops init --force, and apply bootstrap/"
            yield path, _error("pointer-destination", "destination", fault, next_step)
        application = app_name(pointer.env, pointer.team, pointer.name)
        namesake = applications.setdefault(application, path)
        if namesake != path:
            what = f"{namesake} makes an application of the same name: {application}"
            yield path, _error("same-application", "name", what, "give one another name: Argo CD refuses both")
        release = (place_key(pointer.destination), pointer.name)
        first = releases.setdefault(release, path)
        if first != path:
            yield (
                path,
                _error(
                    "same-release",
                    "destination",
                    f"{first} makes a release of the same name in the same namespace",
                    "give one another namespace, or another name",
                ),
            )


def _values(path: str, pointer: Pointer, files: Mapping[str, bytes]) -> Iterator[tuple[str, Finding]]:
    """Yield values that the chart's schema refuses: Argo CD could never render them."""
    try:
        problems = values_problems(_chart_of(pointer, files), pointer.chart, pointer.values)
    except SpecError as error:
        problems = list(error.problems)
    for problem in problems:
        yield path, _error("pointer-values", f"values.{problem.path}", problem.what, problem.next)


def _digest(pointer: Pointer, files: Mapping[str, bytes]) -> str:
    return published_digest(pointer.chart, _chart_of(pointer, files))


def _chart_of(pointer: Pointer, files: Mapping[str, bytes]) -> dict[str, bytes]:
    start = f"{pointer.chart}/"
    return {path.removeprefix(start): content for path, content in files.items() if path.startswith(start)}


def _why_other(pointer: Pointer, files: Mapping[str, bytes]) -> tuple[str, str]:
    own = _chart_of(pointer, files)
    attributes = "`charts/** -text -filter` as the last line of .gitattributes, then a fresh clone"
    if any(content.startswith(_LFS) for content in own.values()):
        return f"{pointer.chart} holds pointers of Git LFS in place of its files", attributes
    unix = {path: content.replace(b"\r\n", b"\n") for path, content in own.items()}
    if published_digest(pointer.chart, unix) == pointer.digest:
        return f"{pointer.chart} has other line ends than were published: git translated them here", attributes
    return f"{pointer.chart} holds other content than was published", "restore it from Git"


def _manifests(content: bytes) -> Iterator[Finding]:
    try:
        # Not our own strict reader: users may edit these files, and they only need to be YAML.
        documents = list(yaml.load_all(content.decode("utf-8", "replace"), Loader=_LOADER))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        yield _error("yaml", f"line {mark.line + 1}" if mark else "", "cannot be read as YAML", "correct it")
        return
    for item in documents:
        if isinstance(item, dict):
            yield from check_manifest(item)


def _error(rule: str, path: str, what: str, next: str) -> Finding:
    return Finding(rule=rule, severity="error", path=path, what=what, next=next)


_MANY_APPS, _MANY_FILES, _MANY_REFS = 2_000, 120_000, 5_000


def size_findings(files: Mapping[str, bytes], refs: int | None) -> Iterator[Finding]:
    """Yield the size of the repository, and advice for each exceeded limit. `refs` is None if unknown."""
    pointers = sum(1 for path in files if path.endswith(snapshot.POINTER_SUFFIX))
    charts = len(_published_charts(files))
    counted = f"{pointers} applications, {charts} chart versions, {len(files)} files"
    yield _said("size", "info", counted if refs is None else f"{counted}, {refs} refs", "")
    if pointers > _MANY_APPS:
        yield _said(
            "many-applications",
            "warning",
            f"{pointers} applications in one repository are slow to reconcile",
            "a repository for each team",
        )
    if len(files) > _MANY_FILES:
        yield _said(
            "many-files",
            "warning",
            f"the repo-server checks out all {len(files)} files for every change",
            "symph gitops gc --keep 5",
        )
    if refs is not None and refs > _MANY_REFS:
        yield _said("many-refs", "warning", f"{refs} refs are listed at every poll", "delete merged branches")


def _said(rule: str, severity: str, what: str, next: str) -> Finding:
    return Finding(rule=rule, severity="warning" if severity == "warning" else "info", path="", what=what, next=next)
