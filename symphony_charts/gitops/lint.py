"""Check a repository that symph writes: pointers, charts, links, bootstrap objects, and its size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import yaml

from symphony_charts.chart.lint.finding import Finding, Severity, title
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.argocd import PROJECT_FILE, app_name, destination_fault, place_key
from symphony_charts.gitops.flux import FLUX_SOURCE_FILE
from symphony_charts.gitops.pointer import Pointer, parse_pointer, published_digest
from symphony_charts.gitops.published import values_problems

# Source: argoproj/argo-cd, controller/appcontroller.go (autoSync), controller/state.go, gitops-engine/pkg/sync;
# docs/operator-manual/high_availability.md, docs/user-guide/sync-options.md, sync-waves.md.

Object: TypeAlias = dict[str, object]
_PATHS = "argocd.argoproj.io/manifest-generate-paths"
_PATH_SEGMENT = re.compile(r"\{\{-?\s*index\s+\.path\.segments\s+\d+\s*-?\}\}")


def _sync_policy(item: Object) -> dict[str, object]:
    return sub(item, "spec", "template", "spec", "syncPolicy")


def _sync_options(item: Object) -> set[str]:
    options = _sync_policy(item).get("syncOptions")
    return {str(option).strip() for option in options} if isinstance(options, list) else set()


def _waits_for_jobs(item: Object) -> bool:
    steps = (sub(item, "spec", step) for step in ("install", "upgrade"))
    return any(step.get("disableWaitForJobs") is not True and step.get("disableWait") is not True for step in steps)


class _Rule(NamedTuple):
    """A rule: the finding about an object that breaks it, with the path of the fault in the object."""

    name: str
    severity: Severity
    path: str
    is_broken: Callable[[Object], bool]
    what: str
    next: str


_ARGO_RULES = (
    _Rule(
        "prune-last",
        "error",
        "spec.template.spec.syncPolicy.syncOptions",
        lambda item: "PruneLast=true" in _sync_options(item),
        "PruneLast keeps the old run, and what it holds, until the new one is done",
        "leave it out: pruning comes first",
    ),
    _Rule(
        "replace",
        "error",
        "spec.template.spec.syncPolicy.syncOptions",
        lambda item: (
            {"Replace=true", "Force=true"} <= _sync_options(item)
            and "ApplyOutOfSyncOnly=true" not in _sync_options(item)
        ),
        "Force and Replace delete and make it again at every sync, changed or not",
        "leave them out",
    ),
    _Rule(
        "self-heal",
        "warning",
        "spec.template.spec.syncPolicy.automated",
        lambda item: sub(_sync_policy(item), "automated").get("selfHeal") is True,
        "selfHeal runs finished work again when it is gone",
        "selfHeal: false where the application holds Jobs",
    ),
    _Rule(
        "generate-paths",
        "error",
        "spec.template.metadata.annotations",
        lambda item: (
            "automated" in _sync_policy(item) and _PATHS not in sub(item, "spec", "template", "metadata", "annotations")
        ),
        f"without the annotation {_PATHS} a commit to any file may run finished work again",
        f'add {_PATHS}: "."',
    ),
    # CODEOWNERS can protect the folders of a pointer, but not its content.
    _Rule(
        "templated-project",
        "error",
        "spec.template.spec.project",
        lambda item: "{{" in _PATH_SEGMENT.sub("", str(sub(item, "spec", "template", "spec").get("project", ""))),
        "who may write the files chooses the project, and with it what is allowed",
        "write the project's name, or take it from the path: {{ index .path.segments 1 }}",
    ),
)
_FLUX_RULES = (
    _Rule(
        "flux-wait",
        "error",
        "spec",
        _waits_for_jobs,
        "Flux waits five minutes for Jobs, calls longer ones failed, and may uninstall them",
        "disableWait: true and disableWaitForJobs: true in spec.install and spec.upgrade",
    ),
)


def check_manifest(item: Object) -> Iterator[Finding]:
    """Yield the faults of an ApplicationSet or a HelmRelease; other kinds have none."""
    rules = {"ApplicationSet": _ARGO_RULES, "HelmRelease": _FLUX_RULES}.get(str(item.get("kind")), ())
    for rule in rules:
        if rule.is_broken(item):
            path = f"{title(item)}.{rule.path}"
            yield Finding(rule=rule.name, severity=rule.severity, path=path, what=rule.what, next=rule.next)


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
    what = "a symbolic link that leads out of the repository stops every application of it"
    findings = [_error(path, "symlink", "", what, "put the file itself there") for path in tree.links]
    findings += [
        _error(path, "published-chart", "", "a published version never changes", "publish another: symph publish")
        for path in tree.changed
        if _published_charts([path])
    ]
    pointers: list[tuple[str, Pointer]] = []
    for path, content in sorted(tree.files.items()):
        if path.endswith(snapshot.POINTER_SUFFIX):
            try:
                pointers.append((path, parse_pointer(content, path)))
            except SpecError as error:
                findings.append(_error(path, "pointer", "", error.what, error.next))
        elif path.startswith(("bootstrap/", "flux/")) and path.endswith((".yaml", ".yml")):
            findings += _manifests(path, content)
    findings += _pointers(pointers, tree)
    return sorted(findings, key=lambda item: (item[0], item[1].rule, item[1].path))


def _error(path: str, rule: str, field: str, what: str, next: str) -> tuple[str, Finding]:
    return path, Finding(rule=rule, severity="error", path=field, what=what, next=next)


def is_repository(tree: RepositoryFiles) -> bool:
    """Return True if symph wrote the tree: it has a pointer, a published chart or files of `gitops init`."""
    return any(
        path in (PROJECT_FILE, FLUX_SOURCE_FILE) or snapshot.pointer_name(path) or _CHART.fullmatch(path)
        for path in tree.files
    )


def _published_charts(files: Iterable[str]) -> set[str]:
    """Return the folders ``charts/<team>/<experiment>/<version>`` among `files`."""
    return {"/".join(path.split("/")[:4]) for path in files if path.startswith("charts/") and path.count("/") > 3}


def _pointers(pointers: list[tuple[str, Pointer]], tree: RepositoryFiles) -> Iterator[tuple[str, Finding]]:
    charts = _published_charts(tree.files)
    digests: dict[str, str] = {}
    releases: dict[tuple[object, str], str] = {}
    applications: dict[str, str] = {}
    for path, pointer in pointers:
        place = (pointer.env, pointer.team, pointer.name)
        if snapshot.pointer_name(path) != place:
            what = f"it names {'/'.join(place)}, which does not match its path"
            yield _error(path, "pointer-place", "name", what, "move it, or correct it")
        if pointer.chart not in charts:
            what = f"there is no {pointer.chart}"
            yield _error(path, "pointer-chart", "chart", what, "roll back, or publish it again")
        else:
            digest = digests.setdefault(pointer.chart, published_digest(_chart_of(pointer, tree.files)))
            if digest != pointer.digest:
                yield _error(path, "pointer-digest", "digest", *_why_other(pointer, tree.files))
            yield from _values(path, pointer, tree.files)
        fault = destination_fault(tree.files.get(PROJECT_FILE), path.split("/")[1], pointer.destination)
        if fault:
            next_step = "correct it; or give .symph.yaml the place, run symph gitops init --force, and apply bootstrap/"
            yield _error(path, "pointer-destination", "destination", fault, next_step)
        application = app_name(*place)
        namesake = applications.setdefault(application, path)
        if namesake != path:
            what = f"{namesake} makes an application of the same name: {application}"
            yield _error(path, "same-application", "name", what, "give one another name: Argo CD refuses both")
        first = releases.setdefault((place_key(pointer.destination), pointer.name), path)
        if first != path:
            what = f"{first} makes a release of the same name in the same namespace"
            yield _error(path, "same-release", "destination", what, "give one another namespace, or another name")


def _values(path: str, pointer: Pointer, files: Mapping[str, bytes]) -> Iterator[tuple[str, Finding]]:
    """Yield values that the chart's schema refuses: Argo CD could never render them."""
    try:
        problems = values_problems(_chart_of(pointer, files), pointer.chart, pointer.values)
    except SpecError as error:
        problems = list(error.problems)
    for problem in problems:
        yield _error(path, "pointer-values", f"values.{problem.path}", problem.what, problem.next)


def _chart_of(pointer: Pointer, files: Mapping[str, bytes]) -> dict[str, bytes]:
    start = f"{pointer.chart}/"
    return {path.removeprefix(start): content for path, content in files.items() if path.startswith(start)}


def _why_other(pointer: Pointer, files: Mapping[str, bytes]) -> tuple[str, str]:
    own = _chart_of(pointer, files)
    attributes = "`charts/** -text -filter` as the last line of .gitattributes, then a fresh clone"
    if any(content.startswith(_LFS) for content in own.values()):
        return f"{pointer.chart} holds pointers of Git LFS in place of its files", attributes
    unix = {path: content.replace(b"\r\n", b"\n") for path, content in own.items()}
    if published_digest(unix) == pointer.digest:
        return f"{pointer.chart} has other line ends than were published: git translated them here", attributes
    return f"{pointer.chart} holds other content than was published", "restore it from Git"


def _manifests(path: str, content: bytes) -> Iterator[tuple[str, Finding]]:
    try:
        # Not our own strict reader: users may edit these files, and they only need to be YAML.
        documents = list(yaml.load_all(content.decode("utf-8", "replace"), Loader=_LOADER))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        yield _error(path, "yaml", f"line {mark.line + 1}" if mark else "", "cannot be read as YAML", "correct it")
        return
    for item in documents:
        if isinstance(item, dict):
            yield from ((path, finding) for finding in check_manifest(item))


_MANY_APPS, _MANY_FILES, _MANY_REFS = 2_000, 120_000, 5_000


def size_findings(files: Mapping[str, bytes], refs: int | None) -> Iterator[Finding]:
    """Yield the size of the repository, and advice for each exceeded limit. `refs` is None if unknown."""
    pointers = sum(1 for path in files if path.endswith(snapshot.POINTER_SUFFIX))
    charts = len(_published_charts(files))
    counted = f"{pointers} applications, {charts} chart versions, {len(files)} files"
    size = counted if refs is None else f"{counted}, {refs} refs"
    yield Finding(rule="size", severity="info", path="", what=size, next="")
    limits = (
        (
            pointers > _MANY_APPS,
            "many-applications",
            f"{pointers} applications in one repository are slow to reconcile",
            "a repository for each team",
        ),
        (
            len(files) > _MANY_FILES,
            "many-files",
            f"the repo-server checks out all {len(files)} files for every change",
            "symph gitops gc --keep 5",
        ),
        ((refs or 0) > _MANY_REFS, "many-refs", f"{refs} refs are listed at every poll", "delete merged branches"),
    )
    for is_exceeded, rule, what, next_step in limits:
        if is_exceeded:
            yield Finding(rule=rule, severity="warning", path="", what=what, next=next_step)
