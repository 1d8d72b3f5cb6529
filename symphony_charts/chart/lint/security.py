"""The Pod Security Standards, and what of them an experiment promises.

Source: Kubernetes docs, "Pod Security Standards" (baseline and restricted).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from symphony_charts.chart.lint.finding import Finding, Objects, Severity, pod_of, title
from symphony_charts.formats.data import maps, sub

__all__ = ["Level", "check_security", "violations"]

Level = Literal["privileged", "baseline", "restricted"]

_BASELINE_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
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


_WAY_OUT: dict[Level, str] = {
    "privileged": "label the namespace `pod-security.kubernetes.io/enforce: privileged`",
    "baseline": "take it out, or set `security: {level: privileged}` and label the namespace so",
    "restricted": "take it out, or set `security: {level: baseline}`, or `privileged` where that forbids it too",
}
# A pod that is less than baseline is said whatever the experiment promises; it may be meant so.
_SEVERITY: dict[Level, Severity] = {"privileged": "info", "baseline": "warning", "restricted": "error"}


def check_security(objects: Objects, level: Level) -> Iterator[Finding]:
    """What keeps the pods out of a namespace that enforces `level`, or `baseline`, and what `restricted` would need."""
    wanting: dict[str, None] = {}
    for item in objects:
        found = pod_of(item)
        if found is None:
            continue
        for broken, where, what in violations(found[1]):
            if broken == "baseline" or level == "restricted":
                yield Finding(
                    rule="pod-security",
                    severity=_SEVERITY[level],
                    path=f"{title(item)}.{found[0]}{where}",
                    what=f"{what}; Pod Security {broken} does not allow that",
                    next=_WAY_OUT[level],
                )
            elif level == "baseline":
                wanting[what] = None
    if wanting:
        yield Finding(
            rule="pod-security-restricted",
            severity="info",
            path="security.level",
            what=f"Pod Security restricted would not take them: {'; '.join(wanting)}",
            next="set `security: {level: restricted}` and give images that run without root",
        )


def violations(pod: dict[str, object]) -> Iterator[tuple[Literal["baseline", "restricted"], str, str]]:
    """The standard that is broken (the laxest one), where in the pod, and how."""
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


def _volumes(spec: dict[str, object]) -> Iterator[tuple[Literal["baseline", "restricted"], str, str]]:
    for volume in maps(spec, "volumes"):
        where = f"spec.volumes.{volume.get('name')}"
        kinds = sorted(set(volume) - {"name"})
        if "hostPath" in kinds:
            yield "baseline", where, "a path of the node is mounted"
        elif kinds and not _RESTRICTED_VOLUMES.issuperset(kinds):
            yield "restricted", where, f"a volume of kind {kinds[0]} is mounted"


def _baseline(
    spec: dict[str, object], member: dict[str, object], where: str
) -> Iterator[tuple[Literal["baseline", "restricted"], str, str]]:
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


def _restricted(
    spec: dict[str, object], member: dict[str, object], where: str
) -> Iterator[tuple[Literal["baseline", "restricted"], str, str]]:
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
        yield (
            "restricted",
            f"{where}.securityContext.capabilities",
            f"{', '.join(map(str, added))} are added",
        )
