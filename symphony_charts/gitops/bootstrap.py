"""The files that `symph gitops init` writes: bootstrap objects, CI checks and owners."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import Conflict
from symphony_charts.formats.yaml_write import dump, dump_all
from symphony_charts.gitops.argocd import (
    PROJECT_FILE,
    ArgoSetup,
    app_project,
    application_set,
    health_config,
    with_places_in_use,
)
from symphony_charts.gitops.base import Change, destinations_in_use
from symphony_charts.gitops.flux import FLUX_SOURCE_FILE, folder_keeper, git_repository, release_kustomization
from symphony_charts.gitops.snapshot import Snapshot, flux_keeper_path
from symphony_charts.settings.project import Destination
from symphony_charts.system import package_data
from symphony_charts.system.package_data import bake

_HEALTH = "health/"
# Groups whose kinds all report their state in the same way: one file serves them.
_ALIKE = {"kubeflow.org": ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")}


def health_checks(template: Mapping[str, bytes]) -> dict[str, str]:
    """Return the health checks by ``<group>_<Kind>`` from the template's folder ``gitops``."""
    checks: dict[str, str] = {}
    for path, content in template.items():
        if path.startswith(_HEALTH):
            name = path.removeprefix(_HEALTH).removesuffix(".lua")
            names = [f"{name}_{kind}" for kind in _ALIKE.get(name, ())] or [name]
            checks |= dict.fromkeys(names, content.decode())
    return dict(sorted(checks.items()))


def argo_files(
    setup: ArgoSetup, environments: Mapping[str, Destination], checks: Mapping[str, str]
) -> dict[str, bytes]:
    """Return Argo CD's files below ``bootstrap/``: a project for each environment, and shared objects."""
    projects = [app_project(setup, env, [place]) for env, place in environments.items()]
    return {
        PROJECT_FILE: dump_all(projects).encode(),
        "bootstrap/applicationset.yaml": dump(application_set(setup)).encode(),
        "bootstrap/argocd-cm.yaml": dump(health_config(checks, setup.namespace)).encode(),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FluxSetup:
    """Flux instead of Argo CD: the Secrets for reading the repository and for decrypting SOPS files."""

    git_secret: str = ""
    sops_secret: str = ""


def flux_files(setup: ArgoSetup, flux: FluxSetup, environments: Iterable[str]) -> dict[str, bytes]:
    """Return Flux's files: the source, and for each environment a Kustomization and its folder."""
    source = git_repository(setup.url, setup.branch, secret=flux.git_secret, root=setup.root)
    releases = [release_kustomization(env, sops_secret=flux.sops_secret, root=setup.root) for env in environments]
    return {
        FLUX_SOURCE_FILE: dump(source).encode(),
        "bootstrap/flux-releases.yaml": "".join(f"---\n{dump(item)}" for item in releases).encode(),
        **{flux_keeper_path(env): folder_keeper(env) for env in environments},
        # Flux fails if a folder of its sparse checkout is missing.
        "charts/README.md": b"Published charts, <team>/<experiment>/<version>. They never change.\n",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialise:
    """Add `contents` (by path) to a repository; files under ``bootstrap/`` may be replaced, others never are."""

    contents: Mapping[str, bytes]
    replaces: bool = False

    def folders(self) -> Iterable[str]:
        return {path.rpartition("/")[0] for path in self.contents} - {""}

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
        ours = [path for path in other if path.startswith("bootstrap/")]
        if ours and not self.replaces:
            raise Conflict(
                f"{', '.join(ours)} {'is' if len(ours) == 1 else 'are'} there already, and different",
                next="add --force to replace the files in bootstrap/, or keep them and do nothing",
            )
        written = [path for path, old in present.items() if old is None or path in ours]
        return Change(
            subject="init: what the cluster is given, and how to work with it",
            edits={path: contents[path] for path in written},
            trailers=(("Symph-Op", "init"),),
            facts={"written": sorted(written), "kept": sorted(set(other) - set(ours))},
        )


_CI = {"github": ".github/", "gitlab": ".gitlab-ci.yml"}


def at_top(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the `files` that only work at the top of a repository, renamed so that they overwrite nothing."""
    found = {path: content for path, content in files.items() if path.startswith((*_CI.values(), "CODEOWNERS"))}
    return {path.replace("workflows/check", "workflows/symph-check"): content for path, content in found.items()}


def setup_files(
    setup: ArgoSetup,
    environments: dict[str, Destination],
    *,
    requirement: str,
    owners: str = "@platform",
    flux: FluxSetup | None = None,
    forge: str = "all",
) -> dict[str, bytes]:
    """Return every file by its path.

    `requirement` is the package that the checks in the CI of `forge` install; if empty, there is no requirements file
    and the user's CI must provide `symph`. `at_top` selects the files that forges read only at the top of a repository.
    Raises ToolFailed if the template fails.
    """
    names = list(environments)
    # Values with an underscore are the user's text, which cookiecutter does not render.
    answers = {
        "_url": setup.url,
        "_branch": setup.branch,
        "environments": ", ".join(names),
        "first": names[0],
        "last": names[-1],
        "_owners": owners,
        "_requirement": requirement,
        "tool": "argocd" if flux is None else "flux",
        "_git_secret": flux.git_secret if flux else "",
        "_root": f"{setup.root}/" if setup.root else "",
    }
    with tempfile.TemporaryDirectory(prefix="symph-gitops-") as scratch:
        baked = bake(package_data.path("gitops"), "charts", answers, Path(scratch))
        files = {path.relative_to(baked).as_posix(): path.read_bytes() for path in baked.rglob("*") if path.is_file()}
    others = [start for name, start in _CI.items() if forge not in ("all", name)]
    files = {path: content for path, content in files.items() if not path.startswith(tuple(others))}
    if not requirement:
        del files["ci/requirements.txt"]
    if flux is not None:
        return {**files, **flux_files(setup, flux, names)}
    return {**files, **argo_files(setup, environments, health_checks(package_data.folder("gitops")))}
