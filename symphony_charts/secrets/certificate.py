"""A sealed-secrets controller's certificate is read from a file, an address, or the cluster itself."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.system.subprocess_runner import run

__all__ = ["fetch_certificate"]

_TIMEOUT_S = 20.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Source: bitnami-labs/sealed-secrets, cmd/kubeseal: the controller's service, and the path that it answers on.
_IN_CLUSTER = "/api/v1/namespaces/{namespace}/services/http:{service}:/proxy/v1/cert.pem"


def fetch_certificate(
    source: str, *, namespace: str = "kube-system", service: str = "sealed-secrets-controller"
) -> bytes:
    """The PEM text of the certificate: a path, an ``https://`` address, or ``cluster`` to ask the controller.

    Raises ToolFailed where it cannot be had, SpecError for a file that cannot be read and for an address that others
    could change on its way.
    """
    if source == "cluster":
        path = _IN_CLUSTER.format(namespace=namespace, service=service)
        return run(["kubectl", "get", "--raw", path], timeout_s=_TIMEOUT_S).stdout
    if "://" in source:
        return _fetch(source)
    try:
        return Path(source).expanduser().read_bytes()
    except OSError as error:
        hint = "kubeseal --fetch-cert > FILE, or --cert cluster"
        raise SpecError.one(f"cannot read the certificate {source}: {error.strerror}", next=hint) from error


def _fetch(address: str) -> bytes:
    # 12 ms, which nobody pays who asks for no address.
    import urllib.request

    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise SpecError.one(f"{address} is not safe: anybody on the way could change it", "cert", "use https://")
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the scheme was looked at
            content: bytes = answer.read(1 << 20)
    except OSError as error:
        raise ToolFailed(f"cannot fetch the certificate: {error}", address, "give a file: --cert FILE") from error
    return content
