"""The process kubelet refuses what a real one refuses.

A kubelet that does too little fails the other tests here; a lax one would hide faults of charts.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.programs import Programs
from tests.e2e.release import describe
from tests.waiting import eventually

Fields = dict[str, Any]


class Here:
    """The test's namespace, and shorthands."""

    def __init__(self, programs: Programs, namespace: str) -> None:
        self.programs, self.namespace = programs, namespace

    def apply(self, *objects: Fields) -> None:
        self.programs.apply(*objects, namespace=self.namespace)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.programs.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def pod(self, name: str, command: list[str], more: Fields | None = None, **container: Any) -> None:
        """Start a pod of one container `main`; `more` are fields of its spec."""
        main = {"name": "main", "image": "none:1", "command": command, **container}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main], **(more or {})}
        labels = {"app": name}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec})

    def status(self, name: str) -> Fields:
        status: Fields = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"]
        return status

    def wait(self, name: str, *phases: str) -> Fields:
        """Return the pod's status once it is in one of `phases`."""

        def there() -> Fields | None:
            status = self.status(name)
            return status if status.get("phase") in phases else None

        return eventually(there, 60, lambda: describe(self.programs, self.namespace))

    def main_state(self, name: str) -> Fields:
        entries: list[Fields] = self.status(name).get("containerStatuses", [])
        return next((entry for entry in entries if entry["name"] == "main"), {"state": {}, "lastState": {}})

    def output(self, name: str) -> str:
        self.wait(name, "Succeeded")
        return self.kubectl("logs", name, "-c", "main")


@pytest.fixture
def here(programs: Programs, namespace: str) -> Here:
    return Here(programs, namespace)


def _config_map(name: str, **data: str) -> Fields:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_files_of_maps_and_secrets_have_their_modes_and_cannot_be_written(here: Here) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hush"}}
    here.apply(_config_map("m", **{"a.txt": "plain"}), secret)
    volumes = [
        {"name": "m", "configMap": {"name": "m", "items": [{"key": "a.txt", "path": "sub/b.txt", "mode": 0o600}]}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
    ]
    mounts = [{"name": "m", "mountPath": "/etc/symph/config"}, {"name": "s", "mountPath": "/etc/secrets"}]
    script = "cd /etc; cat symph/config/sub/b.txt secrets/key; stat -L -c ' %a' symph/config/sub/b.txt secrets/key;"
    script += " touch secrets/x 2>&1 || true"
    here.pod("files", ["sh", "-c", script], {"volumes": volumes}, volumeMounts=mounts)
    said = here.output("files")
    assert "plainhush 600\n 400\n" in said
    assert "Read-only file system" in said


def test_a_pod_has_the_rights_of_its_account_and_no_more(here: Here, namespace: str) -> None:
    """Kubectl finds the API server and the token by itself, and RBAC decides."""
    rbac = "rbac.authorization.k8s.io"
    kubectl = "kubectl get pods -o name; kubectl get secrets; kubectl auth whoami -o jsonpath={.status.userInfo}; true"
    here.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader"}],
        },
    )
    here.pod("asks", ["sh", "-c", f"exec 2>&1; {kubectl}"], {"serviceAccountName": "reader"})
    said = here.output("asks")
    assert "pod/asks\n" in said
    assert "secrets is forbidden" in said
    assert f'"username":"system:serviceaccount:{namespace}:reader"' in said
    here.pod("mute", ["sh", "-c", f"exec 2>&1; {kubectl}"], {"automountServiceAccountToken": False})
    assert "system:serviceaccount" not in here.output("mute")


def test_a_host_path_is_seen_and_not_written(here: Here) -> None:
    volumes = [{"name": "h", "hostPath": {"path": "/usr/share"}}]
    mounts = [{"name": "h", "mountPath": "/host"}]
    here.pod(
        "host", ["sh", "-c", "ls -d /host/doc; touch /host/x 2>&1 || true"], {"volumes": volumes}, volumeMounts=mounts
    )
    said = here.output("host")
    assert "/host/doc" in said
    assert "Read-only file system" in said


def test_what_a_container_writes_stays_in_it(here: Here) -> None:
    here.pod("writer", ["sh", "-c", "for d in /etc /tmp; do echo x > $d/of-this-container; done; cat /tmp/of-this-*"])
    assert here.output("writer") == "x\n"
    here.pod("reader", ["sh", "-c", "ls /etc/of-this-container /tmp/of-this-container 2>/dev/null; echo end"])
    assert here.output("reader") == "end\n"
    assert not Path("/etc/of-this-container").exists()
    assert not Path("/tmp/of-this-container").exists()


@pytest.mark.skipif(not Path("~root/.bashrc").expanduser().is_file(), reason="this machine has no such file")
def test_a_shell_of_a_container_does_not_run_the_startup_file_of_this_machine(here: Here) -> None:
    here.pod("shell", ["sh", "-c", "cat ~/.bashrc; echo end"])
    assert here.output("shell") == "end\n"


def test_a_restricted_container_is_nobody_and_reads_only(here: Here) -> None:
    security = {"runAsNonRoot": True, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False}
    script = "id -u; touch /x 2>&1; python -c 'print(1)'; grep -E 'CapEff|NoNewPrivs' /proc/self/status"
    here.pod("locked", ["sh", "-c", script], securityContext={**security, "capabilities": {"drop": ["ALL"]}})
    said = here.output("locked")
    assert said.startswith("65534\n")
    assert "Read-only file system\n1\n" in said
    assert "CapEff:\t0000000000000000\nNoNewPrivs:\t1" in said


def test_term_comes_first_and_kill_after_the_grace(here: Here) -> None:
    polite = "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.1; done"
    here.pod("polite", ["sh", "-c", polite], {"terminationGracePeriodSeconds": 300})
    here.pod("deaf", ["sh", "-c", "trap '' TERM; echo up; while true; do sleep 0.1; done"])
    for name in ("polite", "deaf"):
        here.wait(name, "Running")
        eventually(partial(here.kubectl, "logs", name), 60, "the trap is set")
    here.kubectl("delete", "pod", "polite", "deaf", "--timeout=60s")


def _service(name: str, port: int, target: int, **spec: Any) -> Fields:
    ports = [{"name": "p", "port": port, "targetPort": target}]
    fields = {"selector": {"app": name}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": fields}


# A Service leads to a ready pod once its controller, the node and DNS know it.
_AT_LAST = """
import time
def at_last(answer):
    while True:
        try:
            if found := answer():
                return found
        except OSError:
            pass
        time.sleep(0.1)
"""


def test_a_service_is_dialled_by_any_of_its_names_and_cannot_be_bound(here: Here, namespace: str) -> None:
    here.apply(_service("web", 80, 8080))
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    here.pod("web", ["python", "-m", "http.server", "8080"], readinessProbe=probe)
    eventually(lambda: here.main_state("web").get("ready"), 60, lambda: str(here.status("web")))
    script = f"""
{_AT_LAST}
import socket, urllib.request as u
for host in ("web", "web.{namespace}", "web.{namespace}.svc", "web.{namespace}.svc.cluster.local"):
    print(at_last(lambda: u.urlopen(f"http://{{host}}/", timeout=5).status))
try:
    socket.create_server(("web", 80))
except OSError as error:
    print(error.strerror)
try:
    socket.create_connection(("web", 81), 5)
except OSError as error:
    print(error.strerror)
"""
    here.pod("dialler", ["python", "-c", script])
    said = here.output("dialler").splitlines()
    assert said[:4] == ["200"] * 4
    assert said[4].startswith("Cannot assign requested address")
    assert said[5] == "Connection refused"
