"""Argo CD's objects: projects, the ApplicationSet, health checks, and the reasons for unsynced Applications."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import yaml

from symphony_charts.backend.diagnosis import Diagnosis
from symphony_charts.chart.lint.security import CHART_KINDS
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.gitops.snapshot import POINTER_SUFFIX, below
from symphony_charts.kinds.base import Object
from symphony_charts.kinds.registry import RENDERED
from symphony_charts.settings.project import Destination

# Source: argoproj/argo-cd, pkg/apis/application/v1alpha1/app_project_types.go (IsDestinationPermitted).

PROJECT_FILE = "bootstrap/project.yaml"
ENVIRONMENT_LABEL = "symph.dev/env"


def project_name(project: str, env: str) -> str:
    return f"{project}-{env}"


def target_of(destination: Destination) -> dict[str, str]:
    """Return a destination in the form of Argo CD's objects."""
    cluster = {"name": destination.name} if destination.name else {"server": destination.server}
    return {**cluster, "namespace": destination.namespace}


def is_one_cluster(first: Destination, second: Destination) -> bool:
    """Return True if two destinations are in the same cluster, judged by their text."""
    return place_key(first)[0] == place_key(second)[0]


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
        f"{PROJECT_FILE} lets {env} run in {', '.join(allowed) or 'no place'}, not in {cluster}/{destination.namespace}"
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


# The rules for finite work determine the fields: an existing Job is never pruned late, replaced or healed, and commits
# to other experiments leave it alone (docs/gitops.md gives the reasons). Source: argoproj/argo-cd,
# docs/operator-manual.

DEFAULT_VERSION = (3, 4)
_OLDEST, _NEWEST = (3, 2), (3, 6)

# Kinds that Kueue starts and stops; it also sets the node selection of an AppWrapper.
_QUEUED = {
    (api.partition("/")[0], word): {"jqPathExpressions": [*kind.kueue_paths]} if kind.kueue_paths else {}
    for kind in RENDERED
    if kind.kueue_paths is not None
    for api, word in kind.gvks
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoSetup:
    """The settings of a repository in Argo CD. `protects` keeps running objects if a pointer vanishes by accident.

    `root` is the folder of the repository that holds everything, empty for its top.
    """

    url: str
    branch: str = "main"
    version: tuple[int, int] = DEFAULT_VERSION
    project: str = "symph"
    namespace: str = "argocd"
    protects: bool = False
    gpg_keys: tuple[str, ...] = ()
    root: str = ""

    def segment(self, number: int) -> str:
        """Return a segment of a pointer's path, in the syntax of the ApplicationSet's template."""
        return f"{{{{ index .path.segments {number + len(self.root.split('/')) * bool(self.root)} }}}}"

    @property
    def revision(self) -> str:
        """Return the branch in the form that Argo CD resolves without loading every ref."""
        return f"refs/heads/{self.branch}"


def parse_version(text: str) -> tuple[int, int]:
    """Return ``3.5`` or ``v3.5.1`` as a pair of numbers. Raises SpecError for an unsupported version."""
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.\d+.*)?", text)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if not _OLDEST <= version <= _NEWEST:
        supported = f"{_OLDEST[0]}.{_OLDEST[1]} to {_NEWEST[0]}.{_NEWEST[1]}"
        raise SpecError.one(f'no objects for Argo CD "{text}"', "argocd-version", f"give one of {supported}")
    return version


def app_name(env: str, team: str, name: str) -> str:
    return f"{env}-{team}-{name}"


def app_project(setup: ArgoSetup, env: str, destinations: Iterable[Destination]) -> dict[str, object]:
    """Return the AppProject of an environment: this repository, these destinations, the kinds of our charts."""
    spec: dict[str, object] = {
        "description": f"Experiments that symph publishes to {env}",
        "sourceRepos": [setup.url],
        "destinations": [target_of(destination) for destination in destinations],
        "clusterResourceWhitelist": [],
        "namespaceResourceWhitelist": [{"group": group, "kind": kind} for group, kind in CHART_KINDS],
    }
    if setup.gpg_keys:
        spec |= _integrity(setup)
    labels = {ENVIRONMENT_LABEL: env}
    return _object("AppProject", project_name(setup.project, env), setup.namespace, spec, labels)


def application_set(setup: ArgoSetup) -> dict[str, object]:
    """Return the ApplicationSet that makes one Application per pointer."""
    files = [{"path": below(setup.root, f"envs/*/*/*{POINTER_SUFFIX}")}]
    generator = {"git": {"repoURL": setup.url, "revision": setup.revision, "files": files}}
    spec: dict[str, object] = {
        "goTemplate": True,
        "goTemplateOptions": ["missingkey=error"],
        "generators": [generator],
        "template": {"metadata": _template_metadata(setup), "spec": _template_spec(setup)},
    }
    if setup.protects:
        spec["syncPolicy"] = {"preserveResourcesOnDeletion": True, "applicationsSync": "create-update"}
    return _object("ApplicationSet", setup.project, setup.namespace, spec)


def health_config(checks: Mapping[str, str], namespace: str = "argocd") -> dict[str, object]:
    """Return the part of ConfigMap argocd-cm that holds health `checks`: Lua by ``<group>_<Kind>``.

    Apply it server-side, so that the other settings in the ConfigMap remain.
    """
    metadata = {"name": "argocd-cm", "namespace": namespace, "labels": {"app.kubernetes.io/part-of": "argocd"}}
    data = {f"resource.customizations.health.{kind}": text for kind, text in sorted(checks.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


_ANNOTATIONS = {
    # Avoids rendering for commits elsewhere. It does not protect deleted work: Argo CD 3.5 was seen to recreate a
    # finished Job, deleted by hand, at the next commit.
    "argocd.argoproj.io/manifest-generate-paths": ".",
    # Fields set by admission webhooks do not count as drift.
    "argocd.argoproj.io/compare-options": "ServerSideDiff=true",
}

# Use the path of a pointer, not its content: write access to a folder can be controlled, file content cannot.
_ENV_SEGMENT, _TEAM_SEGMENT = 1, 2
_NAME = f'{{{{ trimSuffix "{POINTER_SUFFIX}" .path.filename }}}}'


def _template_metadata(setup: ArgoSetup) -> dict[str, object]:
    env, team = setup.segment(_ENV_SEGMENT), setup.segment(_TEAM_SEGMENT)
    return {
        "name": app_name(env, team, _NAME),
        "labels": {"symph.dev/experiment": _NAME, "symph.dev/team": team, "symph.dev/env": env},
        "annotations": _ANNOTATIONS,
        "finalizers": ["resources-finalizer.argocd.argoproj.io"],
    }


def _template_spec(setup: ArgoSetup) -> dict[str, object]:
    return {
        # Never from the pointer's content: its author could choose a project with more rights.
        "project": project_name(setup.project, setup.segment(_ENV_SEGMENT)),
        "source": {
            "repoURL": setup.url,
            "targetRevision": setup.revision,
            "path": below(setup.root, "{{ .chart }}"),
            # The final newline matters: helm drops a values file of certain lengths without one.
            "helm": {"releaseName": _NAME, "values": "{{ .values | toJson }}\n"},
        },
        "destination": {
            "server": "{{ if not .destination.name }}{{ .destination.server }}{{ end }}",
            "name": "{{ .destination.name }}",
            "namespace": "{{ .destination.namespace }}",
        },
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": False},
            "syncOptions": [
                "ApplyOutOfSyncOnly=true",
                "FailOnSharedResource=true",
                "RespectIgnoreDifferences=true",
                "ServerSideApply=true",
            ],
            "retry": {"limit": 5, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "5m"}},
        },
        # Kueue starts and stops workloads by this field; it does not count as drift.
        "ignoreDifferences": [
            {"group": group, "kind": kind, "jsonPointers": ["/spec/suspend"], **more}
            for (group, kind), more in _QUEUED.items()
        ],
        "info": [{"name": "version", "value": "{{ .version }}"}, {"name": "digest", "value": "{{ .digest }}"}],
    }


def _integrity(setup: ArgoSetup) -> dict[str, object]:
    """Return the setting that requires signed commits (GPG only). Source: docs/user-guide/source-integrity.md (3.5)."""
    if setup.version < (3, 5):
        return {"signatureKeys": [{"keyID": key} for key in setup.gpg_keys]}
    gpg = {"mode": "head", "keys": list(setup.gpg_keys)}
    return {"sourceIntegrity": {"git": {"policies": [{"repos": [{"url": setup.url}], "gpg": gpg}]}}}


def _object(
    kind: str, name: str, namespace: str, spec: dict[str, object], labels: dict[str, str] | None = None
) -> dict[str, object]:
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


# Sources: argoproj/argo-cd, pkg/apis/application/v1alpha1/types.go (OperationState, ResourceResult, conditions);
# kubernetes/apimachinery, pkg/api/validation (messages about immutable fields).

_IMMUTABLE = re.compile(
    r"(?P<kind>\w+)(?:\.[\w.-]+)? \"(?P<name>[^\"]+)\" is invalid: (?P<field>[\w.\[\]]+): .*?"
    r"(?:field is immutable|are forbidden|may not change)",
    re.DOTALL,
)
_FAILED = ("Failed", "Error")


def why_unsynced(application: Object) -> Diagnosis | None:
    """Return why an Application is not synced with Git; None if it is synced."""
    meta, status = application["metadata"], application.get("status") or {}
    place = str(((application.get("spec") or {}).get("destination") or {}).get("namespace") or "default")
    look = f"kubectl -n {meta.get('namespace', 'argocd')} describe application {meta['name']}"
    for text in _refusals(status):
        match = _IMMUTABLE.search(text)
        if match:
            kind, name = match["kind"].lower(), match["name"]
            said = f"Argo CD cannot apply it: {match['field']} of {match['kind']}/{name} is immutable"
            return Diagnosis(cause="immutable", text=said, next=f"kubectl -n {place} delete {kind}/{name}")
    for text in (*_refusals(status), *_conditions(status)):
        return Diagnosis(cause="sync", text=f"Argo CD cannot apply it: {_first_line(text)}", next=look)
    differing = [item for item in status.get("resources") or [] if item.get("status") == "OutOfSync"]
    is_busy = (status.get("operationState") or {}).get("phase") == "Running"
    if (status.get("sync") or {}).get("status") == "OutOfSync" and differing and not is_busy:
        first = f"{differing[0].get('kind')}/{differing[0].get('name')}"
        more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
        return Diagnosis(cause="drift", text=f"it is not as Git says: {first}{more}", next=look)
    return None


def _refusals(status: Object) -> Iterator[str]:
    operation = status.get("operationState") or {}
    for item in (operation.get("syncResult") or {}).get("resources") or []:
        if item.get("status") == "SyncFailed":
            yield str(item.get("message") or "")
    if operation.get("phase") in _FAILED:
        yield str(operation.get("message") or operation["phase"])


def _conditions(status: Object) -> Iterator[str]:
    for condition in status.get("conditions") or []:
        if str(condition.get("type", "")).endswith("Error"):
            yield str(condition.get("message") or condition["type"])


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]
