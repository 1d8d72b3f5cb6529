"""Argo CD is given a project, an ApplicationSet over all pointers, and settings of its own, once.

The rules for finite work decide the fields: a Job that is there is never pruned late, never replaced, never healed,
and left alone by commits to other experiments (docs/gitops.md says why). Source: argoproj/argo-cd,
docs/operator-manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from symphony_charts.chart.lint.security import CHART_KINDS
from symphony_charts.errors import SpecError
from symphony_charts.gitops.argocd.projects import ENVIRONMENT_LABEL, project_name, target_of
from symphony_charts.gitops.layout import POINTER_SUFFIX
from symphony_charts.kinds.registry import RENDERED
from symphony_charts.settings.project import Destination

__all__ = [
    "DEFAULT_VERSION",
    "ArgoSetup",
    "app_name",
    "app_project",
    "application_set",
    "health_config",
    "parse_version",
]

DEFAULT_VERSION = (3, 4)
_OLDEST, _NEWEST = (3, 2), (3, 6)

# Started and stopped by Kueue, which also tells an AppWrapper where its pods go.
_QUEUED = {
    (api.partition("/")[0], word): {"jqPathExpressions": [*kind.kueue_paths]} if kind.kueue_paths else {}
    for kind in RENDERED
    if kind.kueue_paths is not None
    for api, word in kind.gvks
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoSetup:
    """The settings of a repository in Argo CD. `protects` keeps what runs when a pointer vanishes by accident.

    `root` is the folder of the repository in which everything stands, empty for its top.
    """

    url: str
    branch: str = "main"
    version: tuple[int, int] = DEFAULT_VERSION
    project: str = "symph"
    namespace: str = "argocd"
    protects: bool = False
    gpg_keys: tuple[str, ...] = ()
    root: str = ""

    def below(self, path: str) -> str:
        """Return a path of ours in the whole repository."""
        return f"{self.root}/{path}" if self.root else path

    def segment(self, number: int) -> str:
        """Return a part of the path of a pointer, as the ApplicationSet's template has it."""
        return f"{{{{ index .path.segments {number + len(self.root.split('/')) * bool(self.root)} }}}}"

    @property
    def revision(self) -> str:
        """The branch as Argo CD resolves it without loading every ref."""
        return f"refs/heads/{self.branch}"


def parse_version(text: str) -> tuple[int, int]:
    """``3.5`` or ``v3.5.1`` as a pair. Raises SpecError for what is no version that this was made for."""
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.\d+.*)?", text)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if not _OLDEST <= version <= _NEWEST:
        supported = f"{_OLDEST[0]}.{_OLDEST[1]} to {_NEWEST[0]}.{_NEWEST[1]}"
        raise SpecError.one(f'no objects for Argo CD "{text}"', "argocd-version", f"give one of {supported}")
    return version


def app_name(env: str, team: str, name: str) -> str:
    return f"{env}-{team}-{name}"


def app_project(setup: ArgoSetup, env: str, destinations: Iterable[Destination]) -> dict[str, object]:
    """Return the AppProject of an environment: this repository, these places, the kinds of our charts."""
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
    """Return the ApplicationSet that makes one Application of each pointer."""
    files = [{"path": setup.below(f"envs/*/*/*{POINTER_SUFFIX}")}]
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

    It is to be applied server-side, so that the other settings in there stay.
    """
    metadata = {"name": "argocd-cm", "namespace": namespace, "labels": {"app.kubernetes.io/part-of": "argocd"}}
    data = {f"resource.customizations.health.{kind}": text for kind, text in sorted(checks.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


_ANNOTATIONS = {
    # Spares rendering for commits elsewhere. It does not bring peace to work that is gone: Argo CD 3.5 was seen to make
    # a finished Job that somebody had deleted again at the next commit.
    "argocd.argoproj.io/manifest-generate-paths": ".",
    # What webhooks of the cluster fill in does not look like drift.
    "argocd.argoproj.io/compare-options": "ServerSideDiff=true",
}

# By the place of a pointer and not by what it says: who may write a folder may be known, what they write is not.
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
        # Never out of a pointer: who may write one could choose a project with more rights.
        "project": project_name(setup.project, setup.segment(_ENV_SEGMENT)),
        "source": {
            "repoURL": setup.url,
            "targetRevision": setup.revision,
            "path": setup.below("{{ .chart }}"),
            # A newline at the end: helm drops a values file of certain lengths without one.
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
        # Kueue starts and stops by this field; to Git it means nothing.
        "ignoreDifferences": [
            {"group": group, "kind": kind, "jsonPointers": ["/spec/suspend"], **more}
            for (group, kind), more in _QUEUED.items()
        ],
        "info": [{"name": "version", "value": "{{ .version }}"}, {"name": "digest", "value": "{{ .digest }}"}],
    }


def _integrity(setup: ArgoSetup) -> dict[str, object]:
    """Only signed commits; Argo CD knows GPG alone. Source: docs/user-guide/source-integrity.md (3.5)."""
    if setup.version < (3, 5):
        return {"signatureKeys": [{"keyID": key} for key in setup.gpg_keys]}
    gpg = {"mode": "head", "keys": list(setup.gpg_keys)}
    return {"sourceIntegrity": {"git": {"policies": [{"repos": [{"url": setup.url}], "gpg": gpg}]}}}


def _object(
    kind: str, name: str, namespace: str, spec: dict[str, object], labels: dict[str, str] | None = None
) -> dict[str, object]:
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
