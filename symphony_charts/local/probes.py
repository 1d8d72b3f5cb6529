"""How the readiness of a process is found out on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symphony_charts.local.records import Check
from symphony_charts.spec.model import Probe

__all__ = ["probe_check"]


def probe_check(probe: Probe, address: str, ports: Mapping[str, int]) -> Check:
    port: int | str = probe.tcp.port if probe.tcp else probe.http.port if probe.http else 0
    number = ports[port] if isinstance(port, str) and port in ports else int(port)
    common = Check(
        kind="tcp",
        host=address,
        port=number,
        initial_delay_s=probe.initial_delay,
        period_s=probe.period,
        timeout_s=probe.timeout,
    )
    if probe.http is not None:
        return replace(common, kind="http", path=probe.http.path, is_tls=probe.http.scheme == "HTTPS")
    if probe.exec is not None:
        return replace(common, kind="exec", command=tuple(probe.exec.command))
    return common
