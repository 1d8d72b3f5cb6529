"""The files that `symph gitops init` writes: bootstrap objects, CI checks and owners."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from symphony_charts.chart.lint.security import CHART_KINDS
from symphony_charts.errors import Conflict, SpecError
from symphony_charts.gitops.argocd import PROJECT_FILE, target_of, with_places_in_use
from symphony_charts.gitops.base import Change, destinations_in_use
from symphony_charts.gitops.flux import FLUX_SOURCE_FILE, flux_url, folder_keeper, source_in
from symphony_charts.gitops.pointer import parse_pointer, render_pointer
from symphony_charts.gitops.snapshot import POINTER_SUFFIX, Snapshot, flux_keeper_path, pointer_paths
from symphony_charts.kinds.registry import RENDERED
from symphony_charts.settings.project import Destination
from symphony_charts.system import package_data
from symphony_charts.system.package_data import bake

_HEALTH = "health/"
CONDUCTOR_ACCOUNT = "symph-conductor"
_FLUX_NAMESPACE = "flux-system"

# Kinds that Kueue starts and stops; it also sets the node selection of an AppWrapper.
_QUEUED = {
    (api.partition("/")[0], word): {"jqPathExpressions": [*kind.kueue_paths]} if kind.kueue_paths else {}
    for kind in RENDERED
    if kind.kueue_paths is not None
    for api, word in kind.gvks
}
# Only one tool reads a repository.
_OF_TOOLS = (
    *("bootstrap/applicationset.yaml", "bootstrap/argocd-cm.yaml", PROJECT_FILE),
    *("bootstrap/flux-accounts.yaml", "bootstrap/flux-releases.yaml", FLUX_SOURCE_FILE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FluxSetup:
    """Flux instead of Argo CD: the Secrets for reading the repository and for decrypting SOPS files."""

    git_secret: str = ""
    sops_secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a repository in the cluster that reads it.

    All its objects there begin with `name`, so that several repositories can share a cluster. `root` is the folder of
    the repository that holds everything, empty for its top. Argo CD keeps its objects in `namespace`; a `project` that
    exists replaces those per environment; `protects` keeps running objects if a pointer vanishes by accident;
    With `flux` it is for Flux instead.
    """

    url: str
    name: str
    branch: str = "main"
    root: str = ""
    namespace: str = "argocd"
    project: str = ""
    protects: bool = False
    flux: FluxSetup | None = None

    @property
    def data(self) -> dict[str, object]:
        """The values of the templates that are the same for all environments."""
        depth = len(self.root.split("/")) if self.root else 0
        return {
            **asdict(self),
            "flux_url": flux_url(self.url) if self.flux else "",
            # Argo CD resolves this form of a branch without loading every ref.
            "revision": f"refs/heads/{self.branch}",
            "sops_secret": self.flux.sops_secret if self.flux else "",
            # Segments of the path of a pointer, in the syntax of the ApplicationSet's template.
            "team": f"{{{{ index .path.segments {2 + depth} }}}}",
            "experiment": f'{{{{ trimSuffix "{POINTER_SUFFIX}" .path.filename }}}}',
            "queued": [
                {"group": group, "kind": kind, "jsonPointers": ["/spec/suspend"], **more}
                for (group, kind), more in _QUEUED.items()
            ],
            "kinds": [{"group": group, "kind": kind} for group, kind in CHART_KINDS],
            "checks": health_checks(package_data.folder("gitops")),
            "conductor": CONDUCTOR_ACCOUNT,
            # Server-side apply refuses to take over an object that another manager made.
            "manager": f"symph-{hashlib.sha256(self.url.encode()).hexdigest()[:8]}",
        }

    def environment(self, env: str, place: Destination) -> dict[str, object]:
        """Return the values of the templates for an environment."""
        accounts = {_FLUX_NAMESPACE: [_rule("helm.toolkit.fluxcd.io", "helmreleases")]}
        if place.is_own_cluster:
            accounts.setdefault(place.namespace, []).extend(_CHART_RULES)
        return {
            "name": env,
            "object": f"{self.name}-{env}",
            "project": self.project or f"{self.name}-{env}",
            "target": target_of(place),
            "namespace": place.namespace,
            "cluster": "" if place.is_own_cluster else place.name or place.server,
            "accounts": [{"namespace": namespace, "rules": rules} for namespace, rules in accounts.items()],
        }


def _rule(group: str, *resources: str) -> dict[str, object]:
    return {"apiGroups": [group], "resources": [*resources], "verbs": ["*"]}


def _plural(kind: str) -> str:
    lower = kind.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}es" if lower.endswith("s") else f"{lower}s"


# Helm keeps its releases in Secrets.
_CHART_RULES = [
    _rule(group, *(_plural(kind) for each, kind in CHART_KINDS if each == group), *([] if group else ["secrets"]))
    for group in dict.fromkeys(group for group, _ in CHART_KINDS)
]


def usual_name(team: str, url: str) -> str:
    """Return the default name of a repository's objects in a cluster: its team and its own name."""
    last = url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]
    base = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")
    return "-".join(dict.fromkeys(filter(None, (team, base)))) or "charts"


def health_checks(template: Mapping[str, bytes]) -> dict[str, str]:
    """Return the health checks by ``<group>_<Kind>`` from the template's folder ``gitops``."""
    names = (path for path in sorted(template) if path.startswith(_HEALTH))
    return {path.removeprefix(_HEALTH).removesuffix(".lua"): template[path].decode() for path in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialise:
    """Add `contents` (by path) to a repository; files under ``bootstrap/`` may be replaced, others never are.

    If it `converts`, pointers are rewritten in the form of the tool that reads the repository.
    """

    contents: Mapping[str, bytes]
    replaces: bool = False
    converts: bool = False

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        return list(self.contents)

    def change(self, tip: Snapshot) -> Change:
        """Return the missing files. Raises Conflict if a file of ``bootstrap/`` was changed."""
        contents = dict(self.contents)
        if PROJECT_FILE in contents:
            before = tip.read(PROJECT_FILE)
            contents[PROJECT_FILE] = with_places_in_use(contents[PROJECT_FILE], before, destinations_in_use(tip))
        present = {path: tip.read(path) for path in contents}
        other = [path for path, old in present.items() if old is not None and old != contents[path]]
        gone = [path for path in _OF_TOOLS if self.converts and path not in contents and tip.entry(path) is not None]
        ours = [path for path in other if path.startswith("bootstrap/")]
        if (gone or ours) and not self.replaces:
            what = f"these files exist with other content: {', '.join(ours)}"
            what = f"{gone[0]} already exists, for other settings or another tool" if gone else what
            raise Conflict(what, next="add --force to replace the files in bootstrap/, or keep them and do nothing")
        written = [path for path, old in present.items() if old is None or path in ours]
        edits: dict[str, bytes | None] = {path: contents[path] for path in written} | dict.fromkeys(gone)
        return Change(
            subject="init: files to apply to the cluster, and instructions",
            edits=edits | (self._pointers(tip) if self.converts else {}),
            trailers=(("Symph-Op", "init"),),
            facts={"written": sorted(written), "kept": sorted(set(other) - set(ours))},
        )

    def _pointers(self, tip: Snapshot) -> dict[str, bytes]:
        """Return the pointers that Argo CD or Flux could not read in their present form."""
        source = source_in(self.contents.get(FLUX_SOURCE_FILE))
        edits = {}
        for path, content in tip.read_all(pointer_paths(tip)).items():
            try:
                pointer = parse_pointer(content, path)
            except SpecError:
                continue  # lint and status report it
            if pointer.is_release != (source is not None):
                edits[path] = render_pointer(pointer, source, tip.root)
        return edits


_CI = {"github": ".github/", "gitlab": ".gitlab-ci.yml"}


def at_top(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the `files` that only work at the top of a repository, renamed so that they overwrite nothing."""
    found = {path: content for path, content in files.items() if path.startswith((*_CI.values(), "CODEOWNERS"))}
    return {path.replace("workflows/check", "workflows/symph-check"): content for path, content in found.items()}


def setup_files(
    setup: Setup, environments: Mapping[str, Destination], *, requirement: str, forge: str = "all"
) -> dict[str, bytes]:
    """Return every file by its path.

    `requirement` is the package that the checks in the CI of `forge` install; if empty, there is no requirements file
    and the user's CI must provide `symph`. `at_top` selects the files that forges read only at the top of a repository.
    Raises SpecError for an address that Flux cannot read, ToolFailed if the template fails.
    """
    names = list(environments)
    tool = "argocd" if setup.flux is None else "flux"
    # Values with an underscore are the user's text, which cookiecutter does not render.
    answers = {
        "_url": setup.url,
        "_branch": setup.branch,
        "environments": ", ".join(names),
        "first": names[0],
        "last": names[-1],
        "_requirement": requirement,
        "tool": tool,
        "_git_secret": setup.flux.git_secret if setup.flux else "",
        "_root": f"{setup.root}/" if setup.root else "",
        "_data": {**setup.data, "environments": [setup.environment(*item) for item in environments.items()]},
    }
    with tempfile.TemporaryDirectory(prefix="symph-gitops-") as scratch:
        baked = bake(package_data.path("gitops"), "charts", answers, Path(scratch))
        files = {path.relative_to(baked).as_posix(): path.read_bytes() for path in baked.rglob("*") if path.is_file()}
    others = [start for name, start in _CI.items() if forge not in ("all", name)]
    files = {
        path.replace(f"bootstrap-{tool}/", "bootstrap/"): content
        for path, content in files.items()
        if not path.startswith(tuple(others)) and (not path.startswith("bootstrap-") or f"-{tool}/" in path)
    }
    if not requirement:
        del files["ci/requirements.txt"]
    if setup.project:
        files.pop(PROJECT_FILE, None)
    if setup.flux is not None:
        # Flux fails if a folder of its sparse checkout is missing.
        files |= {flux_keeper_path(env): folder_keeper(env) for env in names}
        files["charts/README.md"] = b"Published charts, <team>/<experiment>/<version>. They never change.\n"
    return files
