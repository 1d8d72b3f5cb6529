"""Security rules: the Pod Security Standards, and the kinds of objects that Argo CD accepts from Git.

Source: Kubernetes docs, "Pod Security Standards" (baseline and restricted).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from symphony_charts.chart.lint.finding import Finding, Objects, error, info, pods_in, warning
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.base import is_conductor
from symphony_charts.kinds.registry import RENDERED

CHART_KINDS = (
    ("", "ConfigMap"),
    ("", "Service"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("gateway.networking.k8s.io", "HTTPRoute"),
    ("bitnami.com", "SealedSecret"),
    ("external-secrets.io", "ExternalSecret"),
    *dict.fromkeys((api.partition("/")[0], word) for kind in RENDERED for api, word in (*kind.gvks, *kind.further)),
    ("scheduling.volcano.sh", "PodGroup"),
    ("scheduling.x-k8s.io", "PodGroup"),
    ("scheduling.k8s.io", "PodGroup"),
)
"""API group and kind of all chart objects; Argo CD's project accepts no others from the repository."""

Level = Literal["privileged", "baseline", "restricted"]
# The most permissive standard that a pod violates, the path in the pod, and the fault.
Violation = tuple[Literal["baseline", "restricted"], str, str]

# fmt: off
_BASELINE_CAPABILITIES = frozenset([
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
])
# fmt: on
_RESTRICTED_VOLUMES = frozenset(
    ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"]
)
_SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_syncookies",
    }
)

_REMEDY: dict[Level, str] = {
    "privileged": "label the namespace `pod-security.kubernetes.io/enforce: privileged`",
    "baseline": "take it out, or set `security: {level: privileged}` and label the namespace so",
    "restricted": "take it out, or set `security: {level: baseline}`, or `privileged` where that forbids it too",
}
# A pod below baseline is reported at every level; the user may intend it.
_FINDING = {"privileged": info, "baseline": warning, "restricted": error}


def check_security(objects: Objects, level: Level) -> Iterator[Finding]:
    """Yield violations of `level` (at least `baseline`), and the changes that `restricted` would need."""
    wanting: dict[str, None] = {}
    for path, pod in pods_in(objects):
        for broken, where, what in violations(pod):
            if broken == "baseline" or level == "restricted":
                fault = f"{what}; Pod Security {broken} does not allow that"
                yield _FINDING[level]("pod-security", f"{path}{where}", fault, _REMEDY[level])
            elif level == "baseline":
                wanting[what] = None
    if wanting:
        what = f"Pod Security restricted would not take them: {'; '.join(wanting)}"
        step = "set `security: {level: restricted}` and give images that run without root"
        yield info("pod-security-restricted", "security.level", what, step)


def check_rights(objects: Objects) -> Iterator[Finding]:
    """Yield kinds of objects that Argo CD's project, and so `symph publish`, refuses; helm installs them."""
    refused = refused_kinds(objects)
    rights = [kind for kind in refused if kind != "AggregatorConfig"]
    if rights:
        what = f"the project in Argo CD takes no {', '.join(rights)} from Git: anyone who can push could grant rights"
        step = "make the account by hand and name it: `service_account`, or workload.argo.service_account of a Workflow"
        yield warning("rights", "workload", what, step)
    if "AggregatorConfig" in refused:
        what = "the project in Argo CD takes no AggregatorConfig from Git: it configures the whole cluster"
        step = "set `replicas: 0` of the aggregator, and apply its AggregatorConfig by hand once: symph render"
        yield warning("rights", "workload", what, step)


def refused_kinds(objects: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the kinds of `objects` that Argo CD's project refuses, such as Role."""
    kinds = {
        (str(item["apiVersion"]).rpartition("/")[0], str(item["kind"]))
        for item in objects
        if "helm.sh/hook" not in sub(item, "metadata", "annotations") and not is_conductor(item)
    }
    return sorted(kind for group, kind in kinds - set(CHART_KINDS))


def violations(pod: dict[str, object]) -> Iterator[Violation]:
    """Yield the most permissive standard that a pod violates, the path in the pod, and the fault."""
    spec = sub(pod, "spec")
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield "baseline", f"spec.{key}", f"{key} is on"
    for sysctl in maps(sub(spec, "securityContext"), "sysctls"):
        if str(sysctl.get("name")) not in _SAFE_SYSCTLS:
            yield "baseline", "spec.securityContext.sysctls", f"sysctl {sysctl.get('name')} is set"
    yield from _volumes(spec)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for member in maps(spec, kind):
            where = f"spec.{kind}.{member.get('name')}"
            yield from _baseline(spec, member, where)
            yield from _restricted(spec, member, where)


def _volumes(spec: dict[str, object]) -> Iterator[Violation]:
    for volume in maps(spec, "volumes"):
        where = f"spec.volumes.{volume.get('name')}"
        kinds = sorted(set(volume) - {"name"})
        if "hostPath" in kinds:
            yield "baseline", where, "a path of the node is mounted"
        elif kinds and not _RESTRICTED_VOLUMES.issuperset(kinds):
            yield "restricted", where, f"a volume of kind {kinds[0]} is mounted"


def _baseline(spec: dict[str, object], member: dict[str, object], where: str) -> Iterator[Violation]:
    context = sub(member, "securityContext")
    if context.get("privileged"):
        yield "baseline", f"{where}.securityContext.privileged", "the container is privileged"
    added = sub(context, "capabilities").get("add")
    for capability in added if isinstance(added, list) else []:
        if str(capability) not in _BASELINE_CAPABILITIES:
            yield "baseline", f"{where}.securityContext.capabilities", f"capability {capability} is added"
    if context.get("procMount", "Default") != "Default":
        yield "baseline", f"{where}.securityContext.procMount", "procMount is not Default"
    for holder in (context, sub(spec, "securityContext")):
        if sub(holder, "seccompProfile").get("type") == "Unconfined":
            yield "baseline", f"{where}.securityContext.seccompProfile", "seccomp is Unconfined"
    for port in maps(member, "ports"):
        if port.get("hostPort"):
            yield "baseline", f"{where}.ports", f"host port {port['hostPort']} is taken"


def _restricted(spec: dict[str, object], member: dict[str, object], where: str) -> Iterator[Violation]:
    context, of_pod = sub(member, "securityContext"), sub(spec, "securityContext")
    if context.get("allowPrivilegeEscalation") is not False:
        yield "restricted", f"{where}.securityContext", "privilege escalation is allowed"
    if context.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
        yield "restricted", f"{where}.securityContext", "it may run as root"
    if context.get("runAsUser", of_pod.get("runAsUser")) == 0:
        yield "restricted", f"{where}.securityContext.runAsUser", "it runs as root"
    profile = sub(context, "seccompProfile").get("type") or sub(of_pod, "seccompProfile").get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield "restricted", f"{where}.securityContext", "no seccomp profile is set"
    capabilities = sub(context, "capabilities")
    dropped, added = capabilities.get("drop"), capabilities.get("add")
    if not isinstance(dropped, list) or "ALL" not in dropped:
        yield "restricted", f"{where}.securityContext.capabilities", "capabilities are not dropped"
    if isinstance(added, list) and set(map(str, added)) - {"NET_BIND_SERVICE"}:
        yield "restricted", f"{where}.securityContext.capabilities", f"{', '.join(map(str, added))} are added"
