"""Files from Go modules: custom resource definitions, which projects ship in their sources."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from symphony_charts.errors import ToolFailed
from tests.e2e.tools.build import FOLDER, cache_folder
from tests.e2e.tools.go import environment, find_go

ARGO_CD = "github.com/argoproj/argo-cd/v3@v3.5.1"
HELM_CONTROLLER = "github.com/fluxcd/helm-controller@v1.6.3"
KUSTOMIZE_CONTROLLER = "github.com/fluxcd/kustomize-controller@v1.9.5"
SOURCE_CONTROLLER = "github.com/fluxcd/source-controller@v1.9.1"
SEALED_SECRETS = "github.com/bitnami-labs/sealed-secrets@v0.36.0"
JOBSET = "sigs.k8s.io/jobset@v0.12.0"
KUEUE = "sigs.k8s.io/kueue@v0.19.2"
SCHEDULER_PLUGINS = "sigs.k8s.io/scheduler-plugins@v0.34.7"
APPWRAPPER = "github.com/project-codeflare/appwrapper@v1.2.2"
MCAD = "github.com/project-codeflare/multi-cluster-app-dispatcher@v1.40.0"
VOLCANO = "volcano.sh/volcano@v1.15.1"
ARGO_WORKFLOWS = "github.com/argoproj/argo-workflows/v3@v3.7.3"
GITLEAKS = "github.com/zricethezav/gitleaks/v8@v8.30.1"

MODULES = (
    ARGO_CD,
    HELM_CONTROLLER,
    KUSTOMIZE_CONTROLLER,
    SOURCE_CONTROLLER,
    SEALED_SECRETS,
    JOBSET,
    KUEUE,
    SCHEDULER_PLUGINS,
    APPWRAPPER,
    MCAD,
    VOLCANO,
    ARGO_WORKFLOWS,
    GITLEAKS,
)
"""The modules whose definitions the tests use."""


def keep() -> None:
    """Point `FOLDER` at all modules, so that tests, which have another home, need not download them again."""
    for module in MODULES:
        link = _link_of(module)
        folder = module_folder(module)
        if link != folder:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(folder)


def module_folder(module: str) -> Path:
    """Return the unpacked sources of ``path@version``, downloaded if need be. Raises ToolFailed if that fails."""
    kept = _link_of(module)
    return kept if (kept / "go.mod").exists() else _download(module)


def _link_of(module: str) -> Path:
    return FOLDER / "modules" / module.replace("/", "+")


def _download(module: str) -> Path:
    go = find_go(cache_folder())
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "go.mod").write_text("module crds\n\ngo 1.24\n")
        argv = [str(go.path), "mod", "download", "-json", module]
        done = subprocess.run(
            argv, cwd=scratch, capture_output=True, text=True, timeout=600, env=environment(), check=False
        )
    try:
        return Path(json.loads(done.stdout)["Dir"])
    except (ValueError, KeyError) as error:
        raise ToolFailed(f"cannot download {module}: {done.stdout[-300:]}{done.stderr[-300:]}") from error
