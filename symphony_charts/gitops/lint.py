"""Check a repository that symph writes: pointers, charts, links, bootstrap objects, and its size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import yaml

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.lint.finding import Finding
from symphony_charts.chart.lint.security import check_rights
from symphony_charts.errors import SpecError, SymphError
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.argocd import PROJECT_FILE, app_name, destination_fault, place_key
from symphony_charts.gitops.flux import FLUX_SOURCE_FILE
from symphony_charts.gitops.pointer import Pointer, parse_pointer, published_digest
from symphony_charts.gitops.published import objects_of, values_problems

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
    what = "this symbolic link leads out of the repository; Argo CD and Flux then refuse the whole repository"
    findings = [_error(path, "symlink", "", what, "replace the link by the file") for path in tree.links]
    findings += [
        _error(path, "published-chart", "", "a published version never changes", "publish a new one: symph publish")
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
        elif path.startswith("bootstrap/") and path.endswith((".yaml", ".yml")):
            findings += _manifests(path, content)
    findings += _pointers(pointers, tree)
    for path in tree.files:
        pointer_file = path.removesuffix(snapshot.ENCRYPTED_SUFFIX) + snapshot.POINTER_SUFFIX
        if path.startswith("envs/") and path.endswith(snapshot.ENCRYPTED_SUFFIX) and pointer_file not in tree.files:
            findings.append(
                _error(path, "orphan-secret", "", f"Flux applies it, but {pointer_file} is missing", "delete it")
            )
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
    releases: dict[tuple[object, str], str] = {}
    applications: dict[str, str] = {}
    for path, pointer in pointers:
        place = (pointer.env, pointer.team, pointer.name)
        if snapshot.pointer_name(path) != place:
            what = f"the pointer is of {'/'.join(place)}, and its path is of another experiment"
            yield _error(path, "pointer-place", "name", what, "move the file, or correct its name, team and env")
        if pointer.is_release != (FLUX_SOURCE_FILE in tree.files):
            other = "Flux reads only HelmReleases, and this file has none"
            what = "Argo CD does not read HelmReleases" if pointer.is_release else other
            yield _error(path, "pointer-form", "", what, "convert it: symph gitops init --force")
        if pointer.unknown:
            what = f"a newer symph wrote {', '.join(sorted(pointer.unknown))}, which this one keeps unchanged"
            yield path, Finding(rule="pointer-newer", severity="warning", path="", what=what, next="update symph")
        if pointer.chart not in charts:
            what = f"{pointer.chart} does not exist"
            yield _error(path, "pointer-chart", "chart", what, "roll back, or publish it again")
        else:
            start = f"{pointer.chart}/"
            chart = {name.removeprefix(start): data for name, data in tree.files.items() if name.startswith(start)}
            if published_digest(chart) != pointer.digest:
                yield _error(path, "pointer-digest", "digest", *_why_other(pointer, chart))
            yield from _values(path, pointer, chart)
        fault = destination_fault(tree.files.get(PROJECT_FILE), path.split("/")[1], pointer.destination)
        if fault:
            next_step = "correct it; or add it to .symph.yaml, run symph gitops init --force, and apply bootstrap/"
            yield _error(path, "pointer-destination", "destination", fault, next_step)
        application = app_name(*place)
        namesake = applications.setdefault(application, path)
        if namesake != path:
            what = f"{namesake} defines an application of the same name: {application}"
            yield _error(path, "same-application", "name", what, "rename one of them: Argo CD refuses both")
        first = releases.setdefault((place_key(pointer.destination), pointer.name), path)
        if first != path:
            what = f"{first} defines a release of the same name in the same namespace"
            yield _error(path, "same-release", "destination", what, "give one of them another namespace or name")


def _values(path: str, pointer: Pointer, chart: Mapping[str, bytes]) -> Iterator[tuple[str, Finding]]:
    """Yield values that the chart's schema refuses, and objects that the project refuses: neither is ever synced."""
    try:
        problems = values_problems(chart, pointer.chart, pointer.values)
    except SpecError as error:
        problems = list(error.problems)
    for problem in problems:
        yield _error(path, "pointer-values", f"values.{problem.path}", problem.what, problem.next)
    if problems or not pointer.values:
        return  # a publish has checked the objects of a chart without other values
    release = Release(name=pointer.name, namespace=pointer.destination.namespace, is_draft=True)
    with suppress(SymphError):
        for finding in check_rights(objects_of(chart, pointer.chart, pointer.values, release)[0]):
            yield _error(path, "pointer-rights", "values", finding.what, finding.next)


def _why_other(pointer: Pointer, chart: Mapping[str, bytes]) -> tuple[str, str]:
    """Return why the digest of a pointer's `chart` is another one, and the next step."""
    attributes = "make `charts/** -text -filter` the last line of .gitattributes, then clone again"
    if any(content.startswith(_LFS) for content in chart.values()):
        return f"{pointer.chart} contains Git LFS pointers instead of its files", attributes
    unix = {path: content.replace(b"\r\n", b"\n") for path, content in chart.items()}
    if published_digest(unix) == pointer.digest:
        return f"{pointer.chart} has other line ends than the published chart: git converted them", attributes
    return f"{pointer.chart} differs from the published chart", "restore it from Git"


def _manifests(path: str, content: bytes) -> Iterator[tuple[str, Finding]]:
    try:
        # Not our own strict reader: users may edit these files, and they only need to be YAML.
        list(yaml.load_all(content.decode("utf-8", "replace"), Loader=_LOADER))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        yield _error(path, "yaml", f"line {mark.line + 1}" if mark else "", "the file is not valid YAML", "correct it")
