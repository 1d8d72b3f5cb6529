"""A helm release in a namespace of the test cluster: its verbs, its objects, its pods, and a check that it works."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from symphony_charts.kinds.base import is_conductor
from tests.e2e.programs import Output, Programs
from tests.e2e.rig.api import Api, Object
from tests.waiting import eventually

READY_TIMEOUT_S = 60.0
SERVICE_TIMEOUT_S = 20.0
DIAL_TIMEOUT_S = 20
_HOLD = ("--set", "tests.hold=true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release `name` in `namespace`, handled by one version of helm."""

    name: str
    namespace: str
    helm_path: Path
    programs: Programs
    api: Api

    # --- helm's verbs ---

    def helm(self, *arguments: str, timeout_s: float = 120) -> Output:
        """Return helm's output; raise AssertionError if it failed."""
        return self.programs.run([*self._helm, *arguments], timeout_s=timeout_s)

    def try_helm(self, *arguments: str, timeout_s: float = 120) -> Output:
        return self.programs.try_run([*self._helm, *arguments], timeout_s=timeout_s)

    def install(self, chart: Path, *arguments: str) -> None:
        self.helm("install", self.name, str(chart), *arguments)

    def upgrade(self, chart: Path, *arguments: str) -> None:
        self.helm("upgrade", self.name, str(chart), *arguments)

    def uninstall(self) -> None:
        self.helm("uninstall", self.name)

    def render(self, chart: Path, *arguments: str) -> list[Object]:
        """Return the objects of ``helm template``, without tests."""
        text = self.helm("template", self.name, str(chart), "--no-hooks", *arguments).out
        return [document for document in yaml.safe_load_all(text) if document]

    # --- objects in the cluster ---

    def objects(self, kind: str, *, with_conductor: bool = False) -> list[Object]:
        """Return the objects of one kind (``jobs``, ``pods``...) that have the release's label.

        Without those of its conductor, which ends a run and is no part of the experiment.
        """
        selector = f"app.kubernetes.io/instance={self.name}"
        argv = ["-n", self.namespace, "get", kind, "-l", selector, "-o", "json"]
        items = json.loads(self.programs.kubectl(*argv))["items"]
        return [item for item in items if with_conductor or not is_conductor(item)]

    def pods(self, *, with_tests: bool = False) -> list[Object]:
        """Return its pods, by default without those of ``helm test``."""
        return [p for p in self.objects("pods") if with_tests or not _is_test(p)]

    def runs(self) -> set[str]:
        return {job["metadata"]["labels"]["symph.dev/run"] for job in self.objects("jobs")}

    def log(self, group: str, container: str | None = None) -> str:
        """Return the logs of the containers of one group, pods in order of name."""
        pods = sorted(p["metadata"]["name"] for p in self.pods() if _label(p, "group") == group)
        assert pods, f"no pod of group {group} in {self.namespace}"
        which = ["-c", container] if container else []
        return "".join(self.programs.kubectl("-n", self.namespace, "logs", pod, *which) for pod in pods)

    def wait_finished(self, timeout_s: float = 60) -> None:
        eventually(self._are_jobs_complete, timeout_s, lambda: f"complete\n{describe(self.programs, self.namespace)}")

    def wait_started(self, timeout_s: float = 60) -> None:
        def is_so() -> bool:
            phases = [pod["status"]["phase"] for pod in self.pods()]
            return bool(phases) and "Pending" not in phases

        eventually(is_so, timeout_s, lambda: f"started\n{describe(self.programs, self.namespace)}")

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Return when every pod is ready and there is one for each StatefulSet and Job that is not suspended."""
        eventually(self._are_pods_ready, timeout_s, lambda: f"ready\n{describe(self.programs, self.namespace)}")

    def wait_gone(self, timeout_s: float = 60) -> None:
        kinds = "jobs,statefulsets,services,configmaps,secrets,pods,networkpolicies,ingresses"
        kinds += ",serviceaccounts,roles,rolebindings"
        eventually(
            lambda: not [o for o in self.objects(kinds, with_conductor=True) if not _is_test(o)],
            timeout_s,
            lambda: "gone: " + ", ".join(_title(o) for o in self.objects(kinds, with_conductor=True)),
        )

    @property
    def _helm(self) -> list[str]:
        return [str(self.helm_path), "-n", self.namespace]

    def _are_jobs_complete(self) -> bool:
        jobs = self.objects("jobs")
        for job in jobs:
            failed = _condition(job, "Failed")
            assert not failed, f"{_title(job)} failed: {failed}\n{describe(self.programs, self.namespace)}"
        ended = [job for job in jobs if "symph.dev/ended" in job["metadata"].get("annotations", {})]
        return bool(jobs) and all(_condition(job, "Complete") or job in ended for job in jobs)

    def _are_pods_ready(self) -> bool:
        wanted = sum(o["spec"].get("parallelism", 1) for o in self.objects("jobs") if not o["spec"].get("suspend"))
        wanted += sum(o["spec"].get("replicas", 1) for o in self.objects("statefulsets"))
        ready = [p for p in self.pods() if _condition(p, "Ready") and "deletionTimestamp" not in p["metadata"]]
        return bool(wanted) and len(ready) == wanted


Releases = Callable[..., Release]
"""A factory of releases in the test's namespace: ``release("ring")``, by default with the newest helm."""


def prove(release: Release, chart: Path, arguments: Sequence[str] = ()) -> None:
    """Install `chart` with its processes kept running, and check every object, pod and Service in the cluster.

    Raises AssertionError with a message that names the object at fault.
    """
    dry_run(release, release.render(chart, *arguments))
    release.install(chart, *_HOLD, *arguments)
    release.wait_ready(READY_TIMEOUT_S)
    eventually(
        lambda: not _without_pods(release),
        SERVICE_TIMEOUT_S,
        lambda: f"Services without a ready pod: {', '.join(_without_pods(release))}",
    )
    silent = _silent_services(release)
    assert not silent, f"nobody answers at {', '.join(silent)}\n{describe(release.programs, release.namespace)}"
    # The pod of a successful test is removed at once, and helm 3 would look for its logs after that.
    tested = release.try_helm("test", release.name, "--timeout", "60s")
    assert tested.code == 0, (
        f"helm test: {tested.out}\n{tested.err}\n{_test_logs(release)}\n{describe(release.programs, release.namespace)}"
    )


def dry_run(release: Release, objects: Iterable[Object]) -> None:
    """Check every object in a dry run on the API server, with strict field validation."""
    for item in objects:
        argv = [str(release.programs.kubectl_path), "-n", release.namespace, "apply", "--server-side"]
        argv += ["--dry-run=server", "--validate=strict", "-f", "-"]
        done = release.programs.try_run(argv, stdin=yaml.safe_dump(item))
        assert done.code == 0, f"the API server refuses {_title(item)}: {done.err}"


def describe(programs: Programs, namespace: str) -> str:
    """Describe a namespace for debugging: pods, their states, warnings, ends of logs."""
    pods = json.loads(programs.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
    lines = [line for pod in pods for line in _pod_lines(programs, namespace, pod)]
    columns = "custom-columns=OBJECT:.involvedObject.name,WHY:.reason,WHAT:.message"
    argv = ["-n", namespace, "get", "events", "--field-selector", "type=Warning", "-o", columns]
    return "\n".join([*lines, programs.kubectl(*argv)])


def _pod_lines(programs: Programs, namespace: str, pod: Object) -> list[str]:
    name, status = pod["metadata"]["name"], pod["status"]
    lines = [f"Pod/{name} {status.get('phase')}"]
    for entry in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        lines.append(f"  {entry['name']}: {json.dumps(entry['state'])} ready={entry['ready']}")
        argv = [str(programs.kubectl_path), "-n", namespace, "logs", name, "-c", entry["name"], "--tail=15"]
        lines += [f"    | {line}" for line in programs.try_run(argv).out.splitlines()]
    return lines


def _without_pods(release: Release) -> list[str]:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{release.namespace}/endpointslices"
    served = set()
    for piece in release.api.get(path)["items"]:
        if any(e.get("conditions", {}).get("ready") for e in piece.get("endpoints") or []):
            served.add(piece["metadata"]["labels"]["kubernetes.io/service-name"])
    services = [s for s in release.objects("services") if s["spec"].get("selector")]
    return [_title(service) for service in services if service["metadata"]["name"] not in served]


def start_pod(programs: Programs, namespace: str, name: str, command: Sequence[str]) -> None:
    """Start a pod outside any release that runs `command` once, with Python; return when it runs or has run."""
    container = {"name": name, "image": "python:3.12-slim", "command": list(command)}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    programs.apply(pod, namespace=namespace)
    has_begun = ("Running", "Succeeded", "Failed")
    eventually(lambda: _phase(programs, namespace, name) in has_begun, 60, lambda: describe(programs, namespace))


def pod_result(programs: Programs, namespace: str, name: str, timeout_s: float = 60) -> str:
    is_over = ("Succeeded", "Failed")
    eventually(lambda: _phase(programs, namespace, name) in is_over, timeout_s, lambda: describe(programs, namespace))
    return programs.kubectl("-n", namespace, "logs", name)


def _phase(programs: Programs, namespace: str, name: str) -> str:
    return programs.kubectl("-n", namespace, "get", "pod", name, "-o", "jsonpath={.status.phase}")


_DIAL = """
import socket, sys, threading, time
deadline = time.monotonic() + float(sys.argv[1])
def dial(address):
    host, port = address.rsplit(":", 1)
    while True:
        try:
            return socket.create_connection((host, int(port)), 2).close()
        except OSError:
            if time.monotonic() > deadline:
                return print(address, flush=True)
            time.sleep(0.2)
threads = [threading.Thread(target=dial, args=(address,)) for address in sys.argv[2:]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def _silent_services(release: Release) -> list[str]:
    """Return the ports of Services that refuse connections from a pod beside the release."""
    services = [s for s in release.objects("services") if s["spec"].get("selector") and s["spec"].get("ports")]
    addresses = [f"{s['metadata']['name']}:{p['port']}" for s in services for p in s["spec"]["ports"]]
    command = ["python", "-c", _DIAL, str(DIAL_TIMEOUT_S), *addresses]
    start_pod(release.programs, release.namespace, f"dial-{release.name}", command)
    silent = pod_result(release.programs, release.namespace, f"dial-{release.name}")
    return [f"Service/{address}" for address in silent.split()]


def _test_logs(release: Release) -> str:
    pods = [p["metadata"]["name"] for p in release.pods(with_tests=True) if _is_test(p)]
    return "\n".join(release.programs.kubectl("-n", release.namespace, "logs", pod) for pod in pods)


def _label(item: Object, name: str) -> str:
    return str(item["metadata"].get("labels", {}).get(f"symph.dev/{name}", ""))


def _is_test(item: Object) -> bool:
    return "helm.sh/hook" in item["metadata"].get("annotations", {})


def _condition(item: Object, kind: str) -> str:
    """Return the message (or type) of a condition that is true, else ""."""
    for condition in item["status"].get("conditions", []):
        if condition["type"] == kind and condition["status"] == "True":
            return str(condition.get("message") or kind)
    return ""


def _title(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"
