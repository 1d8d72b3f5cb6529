"""`symph gitops init` lays the template's files into a repository, and the objects that the cluster is given."""

from __future__ import annotations

import tempfile
from pathlib import Path

from symphony_charts.gitops.argocd.objects import ArgoSetup
from symphony_charts.gitops.bootstrap import argo_files, flux_files, health_checks
from symphony_charts.settings.project import Destination
from symphony_charts.system import package_data
from symphony_charts.system.scaffold import bake

__all__ = ["setup_files"]


def setup_files(
    setup: ArgoSetup,
    environments: dict[str, Destination],
    *,
    requirement: str,
    owners: str = "@platform",
    uses_flux: bool = False,
    sops_secret: str = "",
    suspended_as: str = "Suspended",
) -> dict[str, bytes]:
    """Every file by its path in the repository; `requirement` is what its check installs.

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
        "tool": "flux" if uses_flux else "argocd",
    }
    with tempfile.TemporaryDirectory(prefix="symph-gitops-") as scratch:
        baked = bake(package_data.path("gitops"), "charts", answers, Path(scratch))
        files = {path.relative_to(baked).as_posix(): path.read_bytes() for path in baked.rglob("*") if path.is_file()}
    if uses_flux:
        return {**files, **flux_files(setup.url, setup.branch, names, sops_secret)}
    checks = health_checks(package_data.folder("gitops"), suspended_as=suspended_as)
    return {**files, **argo_files(setup, environments, checks)}
