"""Argo CD: the names of its objects, and the places that its projects allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

import yaml

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.settings.project import Destination

# Source: argoproj/argo-cd, pkg/apis/application/v1alpha1/app_project_types.go (IsDestinationPermitted).

PROJECT_FILE = "bootstrap/project.yaml"
ENVIRONMENT_LABEL = "symph.dev/env"


def app_name(env: str, team: str, name: str) -> str:
    """Return the name of an Application or HelmRelease, below the name of the repository."""
    return f"{env}-{team}-{name}"


def target_of(destination: Destination) -> dict[str, str]:
    """Return a destination in the form of Argo CD's objects."""
    cluster = {"name": destination.name} if destination.name else {"server": destination.server}
    return {**cluster, "namespace": destination.namespace}


def place_key(destination: Destination) -> tuple[str, str]:
    """Return a key that is equal for destinations in the same cluster (by its text) and namespace."""
    name = destination.name or destination.server
    return "in-cluster" if name == Destination().server else name, destination.namespace


def with_places_in_use(content: bytes, before: bytes | None, in_use: Mapping[str, Iterable[Destination]]) -> bytes:
    """Return the projects in `content`, also allowing destinations that `before` allowed and that are still in use.

    Argo CD only prunes where the project allows it; `in_use` has the destinations of an environment's pointers. A
    pointer alone allows nothing, nor does another environment's project.
    """
    projects = list(_projects(content))
    taken = [place for project in projects for place in maps(project.get("spec"), "destinations")]
    for project in projects:
        env, spec = _environment(project), project["spec"]
        allowed = [each for each in in_use.get(env, ()) if before and not destination_fault(before, env, each)]
        more = [target for each in allowed if (target := target_of(each)) not in taken]
        if isinstance(spec, dict) and more:
            spec["destinations"] = [*maps(spec, "destinations"), *more]
    return dump_all(projects).encode()


def destination_fault(content: bytes | None, env: str, destination: Destination) -> str:
    """Return why the projects in the file of `content` forbid `destination` for `env`; empty if allowed.

    Projects without an environment label apply to all. Without a file or a project in it, everything is allowed.
    """
    projects = list(_projects(content))
    ours = [item for item in projects if _environment(item) in (env, "")]
    if not projects or any(_permits(item, destination) for item in ours):
        return ""
    if not ours:
        return f"{PROJECT_FILE} has no project for {env}"
    allowed = [f"{place.get('name') or place.get('server')}/{place.get('namespace')}" for place in _places(ours)]
    cluster = destination.name or destination.server
    return (
        f"{PROJECT_FILE} allows {env} in {', '.join(allowed) or 'no place'}, not in {cluster}/{destination.namespace}"
    )


def _projects(content: bytes | None) -> Iterator[Mapping[str, object]]:
    try:
        documents = list(yaml.load_all(content or b"", getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError):
        return  # other checks report an invalid file
    yield from (item for item in documents if isinstance(item, dict) and item.get("kind") == "AppProject")


def _environment(project: Mapping[str, object]) -> str:
    return str(sub(project, "metadata", "labels").get(ENVIRONMENT_LABEL, ""))


def _places(projects: list[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    for project in projects:
        yield from maps(project.get("spec"), "destinations")


def _permits(project: Mapping[str, object], destination: Destination) -> bool:
    matching = [place for place in _places([project]) if _matches(place, destination)]
    refused = any(
        str(place.get(key, "")).startswith("!") for place in matching for key in ("server", "name", "namespace")
    )
    return bool(matching) and not refused


def _matches(place: Mapping[str, object], destination: Destination) -> bool:
    key, cluster = ("name", destination.name) if destination.name else ("server", destination.server)
    is_other_form = not place.get(key)
    return (is_other_form or _glob(place.get(key), cluster)) and _glob(place.get("namespace"), destination.namespace)


def _glob(pattern: object, text: str) -> bool:
    return fnmatchcase(text, str(pattern or "").removeprefix("!"))
