"""The programs, their pinned versions, and the acceptable versions of copies already on a machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KUBERNETES = "1.36.3"
_STAMP = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program: `group` is the folder of its go.mod, `package` the Go main package.

    `is_dear` programs take minutes to build, and are built only on request by name.
    `stamp` sets string variables at link time. `asks` are the arguments that make the program print its version; if
    empty, no copy from elsewhere is trusted. A copy fits from version `oldest` on, and below `below`, from which on
    the interface is unknown.
    """

    name: str
    group: str
    package: str
    stamp: Mapping[str, str] = field(default_factory=dict)
    asks: tuple[str, ...] = ()
    oldest: tuple[int, ...] = ()
    is_dear: bool = False
    below: tuple[int, ...] = (1 << 30,)

    def fits(self, said: str) -> bool:
        """Return True if the first version number in `said`, the program's own output, is acceptable."""
        found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
        if not found or not self.asks:
            return False
        version = tuple(int(part or 0) for part in found.groups())
        return self.oldest <= version < self.below


def _kubernetes(name: str) -> Tool:
    """Return a part of the control plane. Unstamped it is v0.0.0, and helm refuses charts that have a `kubeVersion`."""
    major, minor, _ = KUBERNETES.split(".")
    return Tool(
        name=name,
        group="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        stamp={f"{_STAMP}.gitVersion": f"v{KUBERNETES}", f"{_STAMP}.gitMajor": major, f"{_STAMP}.gitMinor": minor},
        asks=("--version",),
        oldest=(1, 34),
        below=(1, 38),
    )


def _tool(name: str, package: str, asks: str = "", oldest: tuple[int, ...] = (), **more: Any) -> Tool:
    """Return a tool whose group is its name by default."""
    return Tool(
        **{"name": name, "group": name, "package": package, "asks": tuple(asks.split()), "oldest": oldest, **more}
    )


_CT = "github.com/helm/chart-testing/v3/ct"
_GITLEAKS = "github.com/zricethezav/gitleaks/v8"
_SEALED = "github.com/bitnami-labs/sealed-secrets/cmd/kubeseal"
_ALL = (
    _tool("etcd", "go.etcd.io/etcd/server/v3", "--version", (3, 4), below=(3, 7)),
    *map(_kubernetes, ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
    _tool("ct", _CT, "version", (3, 11), group="charts", stamp={f"{_CT}/cmd.Version": "v3.14.0"}),
    _tool(
        "kubeconform",
        "github.com/yannh/kubeconform/cmd/kubeconform",
        "-v",
        (0, 6),
        group="charts",
        stamp={"main.version": "v0.7.0"},
    ),
    _tool(
        "helm-docs",
        "github.com/norwoodj/helm-docs/cmd/helm-docs",
        "--version",
        (1, 14),
        group="judges",
        stamp={"main.version": "1.14.2"},
    ),
    _tool(
        "kube-score",
        "github.com/zegl/kube-score/cmd/kube-score",
        "version",
        (1, 18),
        group="judges",
        stamp={"main.version": "1.20.0"},
    ),
    _tool("jobset", "sigs.k8s.io/jobset"),
    _tool("kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    _tool("appwrapper", "github.com/project-codeflare/appwrapper/cmd"),
    _tool("coscheduler", ".", group="coscheduling"),
    _tool("kubeseal", _SEALED, "--version", (0, 24), group="sealed-secrets", stamp={"main.VERSION": "0.36.6"}),
    *(_tool(name, ".") for name in ("quantity", "argocd", "argo")),
    _tool("gitleaks", _GITLEAKS, "version", (8, 30), below=(8, 31), stamp={f"{_GITLEAKS}/version.Version": "8.30.1"}),
    _tool(
        "actionlint",
        "github.com/rhysd/actionlint/cmd/actionlint",
        "-version",
        (1, 7),
        stamp={"github.com/rhysd/actionlint.version": "1.7.12"},
    ),
    _tool("sops", "github.com/getsops/sops/v3/cmd/sops", "--version", (3, 8)),
)

# Both link the libraries of all clouds: about five minutes of one core with a cold cache.
_DEAR = tuple(
    Tool(name=name, group="flux", package=f"github.com/fluxcd/{name}", is_dear=True)
    for name in ("source-controller", "kustomize-controller")
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*_ALL, *_DEAR)}
"""Every program by name, in build order: the ones that tests wait for longest come first."""
