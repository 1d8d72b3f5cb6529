"""The projects of a repository's bootstrap say in which places the applications of each environment may run.

Source: argoproj/argo-cd, pkg/apis/application/v1alpha1/app_project_types.go (IsDestinationPermitted).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

import yaml

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.settings.project import Destination

__all__ = [
    "ENVIRONMENT_LABEL",
    "PROJECT_FILE",
    "destination_fault",
    "is_one_cluster",
    "place_key",
    "project_name",
    "target_of",
    "with_places_in_use",
]

PROJECT_FILE = "bootstrap/project.yaml"
ENVIRONMENT_LABEL = "symph.dev/env"


def project_name(project: str, env: str) -> str:
    return f"{project}-{env}"


def target_of(destination: Destination) -> dict[str, str]:
    """Return a destination as Argo CD's objects write it."""
    cluster = {"name": destination.name} if destination.name else {"server": destination.server}
    return {**cluster, "namespace": destination.namespace}


def is_one_cluster(first: Destination, second: Destination) -> bool:
    """Return True if two destinations are in one cluster, as far as their words tell."""
    return place_key(first)[0] == place_key(second)[0]


def place_key(destination: Destination) -> tuple[str, str]:
    """Return a key that is equal for two destinations in the same cluster, by its text, and namespace."""
    name = destination.name or destination.server
    return "in-cluster" if name == Destination().server else name, destination.namespace


def with_places_in_use(content: bytes, before: bytes | None, in_use: Mapping[str, Iterable[Destination]]) -> bytes:
    """Return the projects in the file of `content`, allowing also what those of `before` allowed and still is in use.

    What an environment runs is pruned only where its project allows it; `in_use` has the destinations of its pointers.
    A pointer alone allows nothing, nor does what another environment's project allows now.
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

    Projects without a label of an environment are for all. A file that is absent, or holds none, says nothing.
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
        f"{PROJECT_FILE} lets {env} run in {', '.join(allowed) or 'no place'}, not in {cluster}/{destination.namespace}"
    )


def _projects(content: bytes | None) -> Iterator[Mapping[str, object]]:
    try:
        documents = list(yaml.load_all(content or b"", getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError):
        return  # What is wrong with the file itself is said by others.
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
