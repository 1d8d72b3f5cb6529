"""`symph gitops init` lays the template's files into a repository, and the objects that the cluster is given."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.gitops.argocd.objects import ArgoSetup
from symphony_charts.gitops.bootstrap import argo_files, flux_files, health_checks
from symphony_charts.settings.project import Destination
from symphony_charts.system import package_data
from symphony_charts.system.scaffold import bake

__all__ = ["FluxSetup", "at_top", "setup_files"]

_CI = {"github": ".github/", "gitlab": ".gitlab-ci.yml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FluxSetup:
    """Flux instead of Argo CD: the Secrets with which it reads the repository, and opens SOPS files."""

    git_secret: str = ""
    sops_secret: str = ""


def at_top(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the `files` that only work at the top of a repository, under names that spare existing files."""
    found = {path: content for path, content in files.items() if path.startswith((*_CI.values(), "CODEOWNERS"))}
    return {path.replace("workflows/check", "workflows/symph-check"): content for path, content in found.items()}


def setup_files(
    setup: ArgoSetup,
    environments: dict[str, Destination],
    *,
    requirement: str,
    owners: str = "@platform",
    flux: FluxSetup | None = None,
    suspended_as: str = "Suspended",
    forge: str = "all",
) -> dict[str, bytes]:
    """Return every file by its path; `requirement` is what the check installs, in the CI of `forge`.

    An empty one is no file: somebody else's CI then brings `symph` itself.

    Those that forges read at the top of a repository alone are told apart by `at_top`.

    Raises ToolFailed when the template does not work.
    """
    names = list(environments)
    # Those with an underscore are users' own text, which cookiecutter takes as it is; it renders the others.
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
        secrets = {"git_secret": flux.git_secret, "sops_secret": flux.sops_secret}
        return {**files, **flux_files(setup.url, setup.branch, names, **secrets, root=setup.root)}
    checks = health_checks(package_data.folder("gitops"), suspended_as=suspended_as)
    return {**files, **argo_files(setup, environments, checks)}
