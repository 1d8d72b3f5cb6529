"""The programs, their pinned versions, and which copies that already stand on a machine will do instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CONTROL_PLANE", "KUBERNETES", "TOOLS", "Tool"]

KUBERNETES = "1.36.3"
_STAMP = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program: `group` is the folder of its go.mod, `package` the Go main package.

    One that `is_dear` takes minutes to build, and is built only when it is asked for by name.
    `stamp` sets string variables at link time. `asks` are the arguments that make the program print its version; empty
    if it cannot say, and then no copy from elsewhere is trusted. A copy fits from version `oldest` on, and below
    `below` where the interface of later ones is not known.
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
        """Whether the first version number in `said`, the program's own words, is one that will do."""
        found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
        if not found or not self.asks:
            return False
        version = tuple(int(part or 0) for part in found.groups())
        return self.oldest <= version < self.below


def _kubernetes(name: str) -> Tool:
    """A part of the control plane. Unstamped it says v0.0.0, and helm refuses charts that have a `kubeVersion`."""
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


_ALL = (
    Tool(
        name="etcd", group="etcd", package="go.etcd.io/etcd/server/v3", asks=("--version",), oldest=(3, 4), below=(3, 7)
    ),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    Tool(
        name="ct",
        group="charts",
        package="github.com/helm/chart-testing/v3/ct",
        stamp={"github.com/helm/chart-testing/v3/ct/cmd.Version": "v3.14.0"},
        asks=("version",),
        oldest=(3, 11),
    ),
    Tool(
        name="kubeconform",
        group="charts",
        package="github.com/yannh/kubeconform/cmd/kubeconform",
        stamp={"main.version": "v0.7.0"},
        asks=("-v",),
        oldest=(0, 6),
    ),
    Tool(
        name="helm-docs",
        group="judges",
        package="github.com/norwoodj/helm-docs/cmd/helm-docs",
        stamp={"main.version": "1.14.2"},
        asks=("--version",),
        oldest=(1, 14),
    ),
    Tool(
        name="kube-score",
        group="judges",
        package="github.com/zegl/kube-score/cmd/kube-score",
        stamp={"main.version": "1.20.0"},
        asks=("version",),
        oldest=(1, 18),
    ),
    Tool(name="jobset", group="jobset", package="sigs.k8s.io/jobset"),
    Tool(name="kueue", group="kueue", package="sigs.k8s.io/kueue/cmd/kueue"),
    Tool(name="appwrapper", group="appwrapper", package="github.com/project-codeflare/appwrapper/cmd"),
    Tool(name="coscheduler", group="coscheduling", package="."),
    Tool(
        name="kubeseal",
        group="sealed-secrets",
        package="github.com/bitnami-labs/sealed-secrets/cmd/kubeseal",
        stamp={"main.VERSION": "0.36.6"},
        asks=("--version",),
        oldest=(0, 24),
    ),
    Tool(name="quantity", group="quantity", package="."),
    Tool(name="argocd", group="argocd", package="."),
    Tool(name="argo", group="argo", package="."),
    Tool(
        name="gitleaks",
        group="gitleaks",
        package="github.com/zricethezav/gitleaks/v8",
        stamp={"github.com/zricethezav/gitleaks/v8/version.Version": "8.30.1"},
        asks=("version",),
        oldest=(8, 30),
        below=(8, 31),
    ),
    Tool(
        name="actionlint",
        group="actionlint",
        package="github.com/rhysd/actionlint/cmd/actionlint",
        stamp={"github.com/rhysd/actionlint.version": "1.7.12"},
        asks=("-version",),
        oldest=(1, 7),
    ),
    Tool(name="sops", group="sops", package="github.com/getsops/sops/v3/cmd/sops", asks=("--version",), oldest=(3, 8)),
)

# Both link the libraries of all clouds: about five minutes of one core, where nothing is cached yet.
_DEAR = tuple(
    Tool(name=name, group="flux", package=f"github.com/fluxcd/{name}", is_dear=True)
    for name in ("source-controller", "kustomize-controller")
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*_ALL, *_DEAR)}
"""Every program by name, in the order in which they are built: what the tests wait for longest comes first."""

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""What a cluster is made of."""
