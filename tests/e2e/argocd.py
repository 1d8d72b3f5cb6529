"""Argo CD on the test cluster: its controllers, its repository server and their cache, as processes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.programs import Programs
from tests.e2e.rig.process import Daemon, free_ports, start
from tests.e2e.tools.build import find_tool
from tests.e2e.tools.modules import ARGO_CD, module_folder

_CONFIG_MAPS = (
    "argocd-cm",
    "argocd-rbac-cm",
    "argocd-cmd-params-cm",
    "argocd-tls-certs-cm",
    "argocd-ssh-known-hosts-cm",
)
_POLL = "2s"
"""The interval of polling Git; Argo CD's default is three minutes."""
_PORTS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoCd:
    """A running Argo CD that keeps its objects in `namespace`."""

    namespace: str
    programs: Programs
    parts: tuple[Daemon, ...]

    def application(self, name: str) -> dict[str, Any]:
        return self.programs.get("-n", self.namespace, "application", name)

    def synced(self, name: str) -> str:
        """Return the path of the last applied chart, if Git still has that revision and it succeeded; else ""."""
        app = self.application(name)
        status = app.get("status", {})
        last = status.get("operationState", {})
        wanted = app.get("spec", {}).get("source")
        is_done = last.get("phase") == "Succeeded" and status.get("sync", {}).get("status") == "Synced"
        applied = last.get("syncResult", {}).get("source")
        return str(wanted["path"]) if is_done and wanted and wanted == applied else ""

    def health(self, name: str) -> str:
        return str(self.application(name).get("status", {}).get("health", {}).get("status", ""))

    def place(self, name: str) -> str:
        """Return the namespace of the last applied objects; the last compared revision may not be applied yet."""
        last = self.application(name).get("status", {}).get("operationState", {}).get("syncResult", {})
        applied = {str(item["namespace"]) for item in last.get("resources", []) if item.get("status") == "Synced"}
        return ",".join(sorted(applied))

    def conditions(self, name: str) -> set[str]:
        return {str(item["type"]) for item in self.application(name).get("status", {}).get("conditions", [])}

    def describe(self) -> str:
        apps = self.programs.get("-n", self.namespace, "applications,applicationsets").get("items", [])
        states = [f"{app['metadata']['name']}: {json.dumps(app.get('status', {}))[:1500]}" for app in apps]
        return "\n".join([*states, *(f"--- {part.name}\n{part.last_words(12)}" for part in self.parts)])


@contextmanager
def argo_cd(folder: Path, namespace: str, programs: Programs, helm: Path) -> Iterator[ArgoCd]:
    """Run Argo CD for the cluster of `programs`, rendering with `helm`, until the block ends."""
    _prepare(namespace, programs)
    env = _environment(folder, namespace, programs, helm)
    ports = free_ports(_PORTS)
    parts = []
    try:
        for name, arguments in _command_lines(ports, namespace):
            argv = [str(folder / "bin" / name), *arguments]
            parts.append(start(folder, name, argv, dies_with_us=True, env=env))
        yield ArgoCd(namespace=namespace, programs=programs, parts=tuple(parts))
    finally:
        for part in reversed(parts):
            part.stop()


def _prepare(namespace: str, programs: Programs) -> None:
    programs.define(ARGO_CD, "manifests/crds/*-crd.yaml")
    objects = [_part_of("ConfigMap", name) for name in _CONFIG_MAPS]
    secret = _part_of("Secret", "argocd-secret") | {"stringData": {"server.secretkey": "for tests"}}
    programs.apply(*objects, secret, namespace=namespace)


def _part_of(kind: str, name: str) -> dict[str, object]:
    metadata = {"name": name, "labels": {"app.kubernetes.io/part-of": "argocd"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def _environment(folder: Path, namespace: str, programs: Programs, helm: Path) -> Mapping[str, str]:
    """Return environment variables: paths below `folder` for Argo CD's fixed paths, and no delays."""
    program = find_tool("argocd").resolve()
    places = {name: folder / name.lower() for name in ("TLS_DATA_PATH", "SSH_DATA_PATH", "GPG_DATA_PATH", "GNUPGHOME")}
    for place in (*places.values(), folder / "bin", folder / "tmp", folder / "plugins"):
        place.mkdir(parents=True, mode=0o700)
    for name, _ in _command_lines([0] * _PORTS, namespace):
        (folder / "bin" / name).symlink_to(program)
    (folder / "bin" / "argocd-git-ask-pass").symlink_to(program)
    (folder / "bin" / "helm").symlink_to(helm)
    for script in ("git-verify-wrapper.sh", "gpg-wrapper.sh"):
        copy = folder / "bin" / script
        copy.write_bytes((module_folder(ARGO_CD) / "hack" / script).read_bytes())
        copy.chmod(0o755)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_bytes(programs.kubeconfig.read_bytes())
    argv = [str(programs.kubectl_path), "--kubeconfig", str(kubeconfig), "config", "set-context", "--current"]
    subprocess.run([*argv, "--namespace", namespace], check=True, timeout=30, capture_output=True)
    return {
        **programs.environment(),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(folder / "tmp"),
        "KUBECONFIG": str(kubeconfig),
        **{f"ARGOCD_{name}": str(place) for name, place in places.items()},
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_PLUGINSOCKFILEPATH": str(folder / "plugins"),
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_SYNC_WAVE_DELAY": "0",
        "ARGOCD_RECONCILIATION_TIMEOUT": _POLL,
        "ARGOCD_RECONCILIATION_JITTER": "0s",
        "ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER": _POLL,
        "HOSTNAME": "argocd-application-controller-0",
        "REDIS_PASSWORD": "",
    }


def _command_lines(ports: list[int], namespace: str) -> list[tuple[str, list[str]]]:
    cache, repo = f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}"
    served = [
        "--address",
        "127.0.0.1",
        "--port",
        str(ports[1]),
        "--metrics-address",
        "127.0.0.1",
        "--disable-tls",
        "--client-ca-path=",
    ]
    reads = ["--namespace", namespace, "--repo-server-plaintext"]
    app = [*reads, "--repo-server", repo, "--redis", cache, "--metrics-port", str(ports[3])]
    listens = (("--metrics-addr", ports[4]), ("--webhook-addr", ports[5]), ("--probe-addr", ports[6]))
    sets = [f"{option}=127.0.0.1:{port}" for option, port in listens]
    return [
        ("redis-server", [cache]),
        ("argocd-repo-server", ["--redis", cache, *served, "--metrics-port", str(ports[2])]),
        ("argocd-application-controller", app),
        ("argocd-applicationset-controller", [*reads, "--argocd-repo-server", repo, *sets]),
    ]
