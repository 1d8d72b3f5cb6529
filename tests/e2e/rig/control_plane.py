"""The control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler on free loopback ports.

The state folder of a cluster holds everything about it: keys, kubeconfigs, logs, etcd's data, and the pids by which it
is stopped. The API server reaches kubelets by the InternalIP of their nodes, which is this machine's loopback.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from symphony_charts.errors import Conflict
from tests.e2e.rig.api import Api, ApiError
from tests.e2e.rig.pki import Authority, write_service_account_key
from tests.e2e.rig.process import Daemon, answers, free_ports, start, stop_all, wait_for
from tests.e2e.tools.build import find_tool

SERVICE_RANGE = "10.96.0.0/16"
ORDER = ("kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
"""The order in which the parts are stopped; other processes of the folder are stopped first."""

_CLIENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("symph-e2e-admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kubelet": ("symph-e2e-kubelet", ("system:masters",)),
}
_API_NAMES = ("127.0.0.1", "10.96.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


# Kubernetes' own gang scheduling, as 1.36 has it: all or nothing, and on nodes near each other.
_GANGS = ["--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"]
_GANGS_SERVED = ["--runtime-config=scheduling.k8s.io/v1alpha2=true"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """A control plane in the state folder `folder`, running or not."""

    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    def up(self, *, dies_with_us: bool = False, gangs: bool = False) -> None:
        """Start a cluster with an empty state folder; return when its first namespace takes pods.

        Raises Conflict if one runs there already, ToolMissing without the programs, ToolFailed if a part does not
        start.
        """
        if any(daemon.is_alive for daemon in self.daemons()):
            raise Conflict("a cluster is running already", at=str(self.folder), next="python -m tests.e2e.rig down")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        try:
            self._start(dies_with_us, gangs)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """Stop every process of the cluster; keep its logs."""
        stop_all(self.folder, last=ORDER)

    def daemons(self) -> list[Daemon]:
        return [Daemon.load(path) for path in sorted((self.folder / "run").glob("*.json"))]

    def api(self) -> Api:
        return Api(self.kubeconfig)

    def add_client(self, authority: Authority, name: str, server: str) -> None:
        common_name, groups = _CLIENTS[name]
        authority.leaf(name, common_name, groups, hosts=("127.0.0.1",) if name == "kubelet" else ())
        keys = {"client-certificate": str(self._pki / f"{name}.crt"), "client-key": str(self._pki / f"{name}.key")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "rig", "cluster": {"server": server, "certificate-authority": str(self._pki / "ca.crt")}}
            ],
            "users": [{"name": name, "user": keys}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": name}}],
            "current-context": "rig",
        }
        (self.folder / f"{name}.kubeconfig").write_text(yaml.safe_dump(config))

    @property
    def _pki(self) -> Path:
        return self.folder / "pki"

    def _start(self, dies_with_us: bool, gangs: bool) -> None:
        gates, served = (_GANGS, _GANGS_SERVED) if gangs else ([], [])
        ports = dict(
            zip(("etcd", "peer", "api", "kube-controller-manager", "kube-scheduler"), free_ports(5), strict=True)
        )
        authority = Authority(self._pki)
        authority.leaf("apiserver", "kube-apiserver", hosts=_API_NAMES)
        write_service_account_key(self._pki)
        for name in _CLIENTS:
            self.add_client(authority, name, f"https://127.0.0.1:{ports['api']}")

        def run(name: str, flags: Sequence[str]) -> Daemon:
            return start(self.folder, name, [str(find_tool(name)), *flags], dies_with_us=dies_with_us)

        etcd = run("etcd", _etcd_flags(self.folder, ports))
        wait_for(etcd, lambda: answers(f"http://127.0.0.1:{ports['etcd']}/health"), 30)
        server = run("kube-apiserver", [*_apiserver_flags(self._pki, ports), *gates, *served])
        with self.api() as api:
            wait_for(server, lambda: _is_ready(api), 90)
        own = {"kube-controller-manager": _manager_flags(self._pki), "kube-scheduler": []}
        manager, scheduler = (
            run(name, [*_component_flags(self.folder, name, ports[name]), *flags, *gates])
            for name, flags in own.items()
        )
        for daemon in (manager, scheduler):
            url = f"https://127.0.0.1:{ports[daemon.name]}/healthz"
            wait_for(daemon, partial(answers, url), 60)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        with self.api() as api:
            wait_for(manager, lambda: api.find(account) is not None, 60)


def _etcd_flags(folder: Path, ports: Mapping[str, int]) -> list[str]:
    client, peer = f"http://127.0.0.1:{ports['etcd']}", f"http://127.0.0.1:{ports['peer']}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--logger=zap",
        "--log-level=warn",
    ]


def _apiserver_flags(pki: Path, ports: Mapping[str, int]) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['api']}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--kubelet-client-certificate={pki / 'admin.crt'}",
        f"--kubelet-client-key={pki / 'admin.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-admission-plugins=ExtendedResourceToleration",  # as GKE does for its GPU taint
        f"--cert-dir={pki / 'generated'}",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def _component_flags(folder: Path, name: str, port: int) -> list[str]:
    config = folder / f"{name}.kubeconfig"
    return [
        *(f"--{use}kubeconfig={config}" for use in ("", "authentication-", "authorization-")),
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'pki' / 'generated'}",
        *("--leader-elect=false", "--kube-api-qps=300", "--kube-api-burst=600", "--profiling=false"),
    ]


def _manager_flags(pki: Path) -> list[str]:
    return [
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        "--controllers=*",
    ]


def _is_ready(api: Api) -> bool:
    try:
        return api.text("/readyz") == "ok"
    except ApiError:
        return False
