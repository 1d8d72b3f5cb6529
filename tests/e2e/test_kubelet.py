"""What the process kubelet does with pods, by hand-written manifests: each claim is one of Kubernetes' own."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.programs import Programs
from tests.e2e.release import describe
from tests.waiting import eventually

pytestmark = pytest.mark.rig

Fields = dict[str, Any]


class Here:
    """The test's namespace, and shorthand for what tests do in it."""

    def __init__(self, programs: Programs, namespace: str) -> None:
        self.programs, self.namespace = programs, namespace

    def apply(self, *objects: Fields) -> None:
        """Create objects."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "-f", "-", stdin=text)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints."""
        return self.programs.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def pod(self, name: str, command: list[str], more: Fields | None = None, **container: Any) -> None:
        """Start a pod of one container `main`; `more` are fields of its spec."""
        main = {"name": "main", "image": "none:1", "command": command, **container}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main], **(more or {})}
        labels = {"app": name}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec})

    def status(self, name: str) -> Fields:
        """The status of a pod."""
        status: Fields = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"]
        return status

    def wait(self, name: str, *phases: str) -> Fields:
        """The pod's status once it is in one of `phases`."""

        def there() -> Fields | None:
            status = self.status(name)
            return status if status.get("phase") in phases else None

        return eventually(there, 60, lambda: describe(self.programs, self.namespace))

    def is_running(self, name: str) -> bool:
        """Whether the pod is there and runs."""
        return self.kubectl("get", "pod", name, "--ignore-not-found", "-o", "jsonpath={.status.phase}") == "Running"

    def main_state(self, name: str) -> Fields:
        """The entry of container `main` in the pod's status."""
        entries: list[Fields] = self.status(name).get("containerStatuses", [])
        return next((entry for entry in entries if entry["name"] == "main"), {"state": {}, "lastState": {}})

    def output(self, name: str) -> str:
        """The log of a pod that has ended well."""
        self.wait(name, "Succeeded")
        return self.kubectl("logs", name, "-c", "main")


@pytest.fixture
def here(programs: Programs, namespace: str) -> Here:
    return Here(programs, namespace)


def _config_map(name: str, **data: str) -> Fields:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_the_environment_is_the_containers_own(here: Here) -> None:
    here.apply(_config_map("given", FROM_MAP="map", BOTH="map"))
    env = [
        {"name": "BOTH", "value": "own"},
        {"name": "REFERS", "value": "$(FROM_MAP)-$(BOTH)-$(LATER)-$$(BOTH)"},
        {"name": "LATER", "value": "late"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ]
    source = [{"configMapRef": {"name": "given"}}]
    more = {"enableServiceLinks": False}
    here.pod("env", ["env"], more, env=env, envFrom=source, resources={"limits": {"cpu": "250m"}})
    lines = set(here.output("env").splitlines())
    status = here.status("env")
    assert {"FROM_MAP=map", "BOTH=own", "REFERS=map-own-$(LATER)-$(BOTH)", "CPU=250"} <= lines
    assert f"IP={status['podIP']}" in lines
    assert not any(line.startswith(("KUBECONFIG", "PYTHONPATH", "SYMPH")) for line in lines)


def test_a_failed_container_keeps_its_exit_code(here: Here) -> None:
    here.pod("bad", ["sh", "-c", "echo why >&2; exit 7"])
    here.wait("bad", "Failed")
    assert here.main_state("bad")["state"]["terminated"]["exitCode"] == 7
    assert here.kubectl("logs", "bad") == "why\n"


def test_process_one_is_safe_from_its_children_as_in_a_container(here: Here) -> None:
    here.pod("one", ["sh", "-c", "echo $$$$; sh -c 'kill -9 $PPID'; echo alive"])
    assert here.output("one") == "1\nalive\n"


def test_a_signal_that_ends_a_child_becomes_the_shells_exit_code(here: Here) -> None:
    here.pod("shot", ["sh", "-c", "sh -c 'kill -9 $$$$'; exit $?"])
    here.wait("shot", "Failed")
    assert here.main_state("shot")["state"]["terminated"]["exitCode"] == 137


def test_a_program_that_does_not_exist_cannot_start(here: Here) -> None:
    here.pod("typo", ["no-such-program"])
    here.wait("typo", "Failed")
    ended = here.main_state("typo")["state"]["terminated"]
    assert ended["reason"] == "StartError"
    assert 'exec: "no-such-program": executable file not found in $PATH' in ended["message"]


def test_a_pod_waits_for_its_config_map(here: Here) -> None:
    here.pod("waits", ["env"], envFrom=[{"configMapRef": {"name": "late"}}])
    eventually(
        lambda: here.main_state("waits")["state"].get("waiting", {}).get("reason") == "CreateContainerConfigError",
        60,
        lambda: describe(here.programs, here.namespace),
    )
    assert 'configmap "late" not found' in here.main_state("waits")["state"]["waiting"]["message"]
    here.apply(_config_map("late", CAME="yes"))
    assert "CAME=yes" in here.output("waits")


def test_init_containers_run_in_turn_and_share_volumes(here: Here) -> None:
    mount = [{"name": "work", "mountPath": "/a/new/place"}]
    steps = [
        {
            "name": f"step-{n}",
            "image": "none:1",
            "command": ["sh", "-c", f"echo {n} >> /a/new/place/log"],
            "volumeMounts": mount,
        }
        for n in (1, 2)
    ]
    more = {"initContainers": steps, "volumes": [{"name": "work", "emptyDir": {}}]}
    here.pod("steps", ["cat", "/a/new/place/log"], more, volumeMounts=mount)
    assert here.output("steps") == "1\n2\n"


def test_a_failed_init_container_fails_the_pod(here: Here) -> None:
    more = {"initContainers": [{"name": "bad", "image": "none:1", "command": ["false"]}]}
    here.pod("stuck", ["true"], more)
    here.wait("stuck", "Failed")
    assert "waiting" in here.main_state("stuck")["state"]


def test_a_sidecar_runs_before_and_ends_after_the_work(here: Here) -> None:
    sidecar = {
        "name": "helper",
        "image": "none:1",
        "restartPolicy": "Always",
        "command": ["python", "-m", "http.server", "9000"],
        "startupProbe": {"tcpSocket": {"port": 9000}, "periodSeconds": 1, "failureThreshold": 20},
    }
    script = "import urllib.request as u; print(u.urlopen('http://localhost:9000').status)"
    here.pod("work", ["python", "-c", script], {"initContainers": [sidecar]})
    assert here.output("work") == "200\n"
    (helper,) = here.status("work")["initContainerStatuses"]
    assert "terminated" in helper["state"]


def test_a_container_that_fails_is_started_again(here: Here) -> None:
    script = "test -e /keep/once && exit 0; touch /keep/once; exit 1"
    more = {"restartPolicy": "OnFailure", "volumes": [{"name": "keep", "emptyDir": {}}]}
    here.pod("again", ["sh", "-c", script], more, volumeMounts=[{"name": "keep", "mountPath": "/keep"}])
    here.wait("again", "Succeeded")
    assert here.main_state("again")["restartCount"] == 1
    assert here.main_state("again")["lastState"]["terminated"]["exitCode"] == 1


def test_readiness_follows_the_probe(here: Here) -> None:
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    here.pod("slow", ["sleep", "60"], readinessProbe=probe)
    here.wait("slow", "Running")
    assert not here.main_state("slow")["ready"]
    here.kubectl("exec", "slow", "--", "touch", "/tmp/ready")
    eventually(lambda: here.main_state("slow")["ready"], 60, lambda: describe(here.programs, here.namespace))


def test_a_container_that_is_not_alive_is_started_again(here: Here) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}
    here.pod("ill", ["sleep", "60"], {"restartPolicy": "Always"}, livenessProbe=probe)
    eventually(lambda: here.main_state("ill").get("restartCount", 0) > 0, 60, lambda: str(here.status("ill")))


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


def test_an_empty_dir_in_memory_has_its_size(here: Here) -> None:
    volumes = [{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    script = "stat -f -c %T /m; head -c 2000000 /dev/zero > /m/big 2>&1 || echo full"
    here.pod("memory", ["sh", "-c", script], {"volumes": volumes}, volumeMounts=[{"name": "m", "mountPath": "/m"}])
    said = here.output("memory")
    assert said.startswith("tmpfs\n")
    assert said.endswith("full\n")


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


def test_logs_follow_until_the_container_ends(here: Here) -> None:
    here.pod("talker", ["sh", "-c", "for i in 1 2 3 4; do echo line $i; sleep 0.5; done"])
    here.wait("talker", "Running", "Succeeded")
    assert here.kubectl("logs", "-f", "talker").splitlines() == [f"line {i}" for i in (1, 2, 3, 4)]
    assert here.kubectl("logs", "--tail=1", "talker") == "line 4\n"
    assert here.kubectl("logs", "--timestamps", "--tail=1", "talker").startswith("20")


def _service(name: str, port: int, target: int, **spec: Any) -> Fields:
    ports = [{"name": "p", "port": port, "targetPort": target}]
    fields = {"selector": {"app": name}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": fields}


# A Service leads to a ready pod once its controller, the node and the names have heard of it.
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


def test_a_pod_reaches_itself_through_its_service(here: Here) -> None:
    # Not called like the pod: its own name leads it to itself, without the Service.
    here.apply(_service("own", 80, 8080, publishNotReadyAddresses=True, selector={"app": "self"}))
    script = f"""
{_AT_LAST}
import os, socket
server = socket.create_server((os.environ["IP"], 8080))
at_last(lambda: socket.create_connection(("own", 80), 5))
server.accept()
print("met")
"""
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    here.pod("self", ["python", "-c", script], env=env)
    assert here.output("self") == "met\n"


def test_pods_behind_a_headless_service_have_names(here: Here) -> None:
    here.apply(_service("peers", 7000, 7000, clusterIP="None", publishNotReadyAddresses=True))
    template = {
        "metadata": {"labels": {"app": "peers"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none:1", "command": ["sleep", "60"]}],
        },
    }
    spec = {"serviceName": "peers", "replicas": 2, "podManagementPolicy": "Parallel", "template": template}
    spec["selector"] = {"matchLabels": {"app": "peers"}}
    here.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "peers"}, "spec": spec})
    for name in ("peers-0", "peers-1"):
        eventually(partial(here.is_running, name), 60, "two peers")
    script = f"""
{_AT_LAST}
import socket
second = at_last(lambda: socket.gethostbyname("peers-1.peers"))
print(second, *at_last(lambda: (found := sorted(socket.gethostbyname_ex("peers")[2])) and found[1:] and found))
"""
    here.pod("asks", ["python", "-c", script])
    first, second = (here.status(name)["podIP"] for name in ("peers-0", "peers-1"))
    assert here.output("asks").split() == [second, *sorted([first, second])]


def test_a_load_balancer_gets_an_address_that_leads_to_its_pods(here: Here) -> None:
    here.apply(_service("open", 80, 8080, type="LoadBalancer", publishNotReadyAddresses=True))
    here.pod("open", ["python", "-m", "http.server", "8080"])
    path = "jsonpath={.status.loadBalancer.ingress[0].ip}"
    address = eventually(lambda: here.kubectl("get", "service", "open", "-o", path), 60, "an address")
    script = f"""
{_AT_LAST}
import urllib.request as u
print(at_last(lambda: u.urlopen("http://{address}/", timeout=5).status))
"""
    here.pod("visitor", ["python", "-c", script])
    assert here.output("visitor") == "200\n"


def test_a_pod_that_no_node_can_hold_says_why(here: Here) -> None:
    here.pod("greedy", ["true"], resources={"limits": {"nvidia.com/gpu": "8"}})
    events = partial(here.kubectl, "get", "events", "--field-selector", "reason=FailedScheduling", "-o", "json")
    eventually(lambda: "Insufficient nvidia.com/gpu" in events(), 60, events)


def test_a_gpu_pod_lands_on_the_gpu_pool(here: Here) -> None:
    here.pod("gpu", ["true"], resources={"limits": {"nvidia.com/gpu": "1"}})
    here.wait("gpu", "Succeeded")
    assert here.kubectl("get", "pod", "gpu", "-o", "jsonpath={.spec.nodeName}") == "gpu-0"


def test_a_deadline_ends_a_pod(here: Here) -> None:
    here.pod("late", ["sleep", "60"], {"activeDeadlineSeconds": 2})
    assert here.wait("late", "Failed")["reason"] == "DeadlineExceeded"


def test_exec_runs_in_the_container_and_keeps_the_exit_code(here: Here) -> None:
    here.pod("host-of", ["sleep", "60"], env=[{"name": "MINE", "value": "yes"}])
    here.wait("host-of", "Running")
    assert here.kubectl("exec", "host-of", "--", "sh", "-c", "echo $MINE; cat /proc/1/comm") == "yes\nsleep\n"
    assert here.kubectl("exec", "-i", "host-of", "--", "tr", "a-z", "A-Z", stdin="up\n") == "UP\n"
    argv = [str(here.programs.kubectl_path), "-n", here.namespace, "exec", "host-of", "--"]
    done = here.programs.try_run([*argv, "sh", "-c", "echo bad >&2; exit 5"])
    assert (done.code, done.err.splitlines()[0]) == (5, "bad")
    assert "executable file not found" in here.programs.try_run([*argv, "no-such-program"]).err


def test_much_output_of_an_exec_arrives_whole(here: Here) -> None:
    here.pod("big", ["sleep", "60"])
    here.wait("big", "Running")
    assert len(here.kubectl("exec", "big", "--", "head", "-c", "3000000", "/dev/zero")) == 3_000_000


def test_a_forwarded_port_leads_into_the_pod(here: Here) -> None:
    # kubectl ends with the first connection that is refused: a pod that runs does not listen yet.
    listens = ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 8080), 5)"]
    probe = {"exec": {"command": listens}, "periodSeconds": 1, "timeoutSeconds": 10}
    here.pod("web", ["python", "-m", "http.server", "8080", "--bind", "127.0.0.1"], readinessProbe=probe)
    eventually(lambda: here.main_state("web").get("ready"), 60, lambda: describe(here.programs, here.namespace))
    argv = [str(here.programs.kubectl_path), "-n", here.namespace, "port-forward", "pod/web", ":8080"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(here.programs.environment())) as forwarder:
        assert forwarder.stdout
        port = forwarder.stdout.readline().split(" -> ")[0].rpartition(":")[2]
        try:
            assert eventually(partial(_status_of, int(port)), 60, "an answer through the port") == 200
            assert _status_of(int(port)) == 200
        finally:
            forwarder.terminate()


def _status_of(port: int) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()
