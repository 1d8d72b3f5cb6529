"""The user, groups and capabilities of a container.

Source: kubernetes/kubernetes pkg/securitycontext/util.go; the default capabilities are containerd's.
"""

from __future__ import annotations

from tests.e2e.rig.api import Object

_NAMES = tuple(
    """
    CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
    NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
    SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
    MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
    """.split()  # noqa: SIM905 - forty quoted names would hide that their order is the kernel's numbering
)
_DEFAULT = {
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "NET_RAW",
    "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP",
}  # fmt: skip
_NOBODY = 65534


def identity_of(pod: Object, container: Object) -> Object:
    """Return the launcher's `user`, `group`, `groups`, `capabilities`, `no_new_privileges` and `read_only_root`.

    An image is assumed to set `nobody` if it must not run as root, else no user.
    """
    general, own = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    both = {**general, **own}
    user = both.get("runAsUser", _NOBODY if both.get("runAsNonRoot") else 0)
    group = both.get("runAsGroup", 0)
    groups = [*general.get("supplementalGroups", []), *([general["fsGroup"]] if "fsGroup" in general else [])]
    return {
        "user": user,
        "group": group,
        "groups": sorted({group, *groups}),
        "capabilities": _capabilities(own),
        "no_new_privileges": own.get("allowPrivilegeEscalation") is False and not own.get("privileged"),
        "read_only_root": bool(own.get("readOnlyRootFilesystem")),
    }


def _capabilities(own: Object) -> list[int]:
    if own.get("privileged"):
        return list(range(len(_NAMES)))
    asked = own.get("capabilities") or {}
    kept = set() if "ALL" in asked.get("drop", []) else _DEFAULT - set(asked.get("drop", []))
    kept |= set(_NAMES) if "ALL" in asked.get("add", []) else set(asked.get("add", []))
    return sorted(_NAMES.index(name.removeprefix("CAP_")) for name in kept)
