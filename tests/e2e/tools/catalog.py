"""The programs and their pinned versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KUBERNETES = "1.36.3"
_STAMP = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program: `group` is the folder of its go.mod, `package` the Go main package.

    `is_dear` programs take minutes to build, and are built only on request by name. `stamp` sets string variables at
    link time.
    """

    name: str
    group: str
    package: str
    stamp: Mapping[str, str] = field(default_factory=dict)
    is_dear: bool = False


def _kubernetes(name: str) -> Tool:
    """Return a part of the control plane. Unstamped it is v0.0.0, and helm refuses charts that have a `kubeVersion`."""
    major, minor, _ = KUBERNETES.split(".")
    return Tool(
        name=name,
        group="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        stamp={f"{_STAMP}.gitVersion": f"v{KUBERNETES}", f"{_STAMP}.gitMajor": major, f"{_STAMP}.gitMinor": minor},
    )


def _tool(name: str, package: str = ".", group: str = "", **stamp: str) -> Tool:
    """Return a tool whose group is its name by default, and whose main package is the group's own."""
    return Tool(name=name, group=group or name, package=package, stamp=stamp)


_CT = "github.com/helm/chart-testing/v3/ct"
_GITLEAKS = "github.com/zricethezav/gitleaks/v8"
_ALL = (
    _tool("etcd", "go.etcd.io/etcd/server/v3"),
    *map(_kubernetes, ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
    _tool("ct", _CT, "charts", **{f"{_CT}/cmd.Version": "v3.14.0"}),
    _tool("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", "charts", **{"main.version": "v0.7.0"}),
    _tool("helm-docs", "github.com/norwoodj/helm-docs/cmd/helm-docs", "judges", **{"main.version": "1.14.2"}),
    _tool("kube-score", "github.com/zegl/kube-score/cmd/kube-score", "judges", **{"main.version": "1.20.0"}),
    _tool("jobset", "sigs.k8s.io/jobset"),
    _tool("kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    _tool("appwrapper", "github.com/project-codeflare/appwrapper/cmd"),
    _tool("coscheduler", group="coscheduling"),
    _tool(
        "kubeseal",
        "github.com/bitnami-labs/sealed-secrets/cmd/kubeseal",
        "sealed-secrets",
        **{"main.VERSION": "0.36.6"},
    ),
    *(_tool(name) for name in ("quantity", "argocd", "argo")),
    _tool("gitleaks", _GITLEAKS, **{f"{_GITLEAKS}/version.Version": "8.30.1"}),
    _tool(
        "actionlint", "github.com/rhysd/actionlint/cmd/actionlint", **{"github.com/rhysd/actionlint.version": "1.7.12"}
    ),
    _tool("sops", "github.com/getsops/sops/v3/cmd/sops"),
)

# Each links the libraries of all clouds: about five minutes of one core with a cold cache.
_DEAR = (
    *(
        Tool(name=name, group="flux", package=f"github.com/fluxcd/{name}", is_dear=True)
        for name in ("source-controller", "kustomize-controller")
    ),
    Tool(
        name="workflow-controller",
        group="argo",
        package="github.com/argoproj/argo-workflows/v3/cmd/workflow-controller",
        is_dear=True,
    ),
    Tool(name="argoexec", group="argo", package="./executor", is_dear=True),
    Tool(
        name="vc-controller-manager", group="volcano", package="volcano.sh/volcano/cmd/controller-manager", is_dear=True
    ),
    Tool(name="vc-scheduler", group="volcano", package="volcano.sh/volcano/cmd/scheduler", is_dear=True),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*_ALL, *_DEAR)}
"""Every program by name, in build order: the ones that tests wait for longest come first."""
