"""Read the cluster's address and the user's credentials from a kubeconfig by the official client.

Of the client only what it documents is used: `config.load_kube_config` fills a `Configuration`, whose hook renews what
expires. Everything that it lets pass in silence (a login program that fails) or raises bare is a typed failure here.
A kubeconfig is written to in one case, as by kubectl: when the issuer of an OIDC token hands out the next one.
"""

from __future__ import annotations

import binascii
import ipaddress
import logging
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from symphony_charts.errors import SpecError, SymphError, ToolFailed
from symphony_charts.kubernetes.kubeconfig import KubeContext, read_context

__all__ = ["Login"]

# With one of these a user is not anonymous, and a login that yields nothing has failed.
_CREDENTIALS = ("exec", "auth-provider", "token", "tokenFile", "username")
_CERTIFICATES = ("client-certificate", "client-certificate-data")


class Login:
    """Address and credentials of a context's cluster; usable from many threads.

    Raises ToolFailed where no kubeconfig leads to a cluster or a login program fails, SpecError for a broken file.
    """

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        self.context: KubeContext = read_context(kubeconfig, context)
        self.server: str = self.context.cluster.text("server").rstrip("/")
        if not _is_address(self.server):
            raise self._broken(f'the server "{self.server}" is no http:// or https:// address', "clusters")
        self.server_name: str | None = self.context.cluster.text("tls-server-name") or None
        self.proxy: str | None = self.context.cluster.text("proxy-url") or _proxy_of_environment(self.server)
        if self.proxy and not _is_address(self.proxy):
            raise self._broken(
                "its proxy is no http:// or https:// address: mend proxy-url, or HTTPS_PROXY", "clusters"
            )
        self.has_tls = self.server.startswith("https:")
        self._lock = threading.Lock()
        self._certificate = b""
        self._configuration: Any = self._load()
        # A file that cannot be used is said at once.
        self.tls()

    def authorization(self) -> str | None:
        """Return the Authorization header; None with a certificate, or without credentials. Raises ToolFailed."""
        with self._lock, self._failures():
            value = self._configuration.get_api_key_with_prefix("BearerToken")
        # A token file ends with a newline, which is no part of the token.
        return value.strip() if value else None

    def renew(self, refused: str | None) -> tuple[bool, bool]:
        """Log in again after the server said 401 to `refused`; whether token and certificate are others now.

        A file may hold a new token or certificate, and a login program may be asked before its time.
        """
        with self._lock:
            before = self._certificate
            self._configuration = self._load()
            has_certificate = self._certificate != before
        return self.authorization() != refused, has_certificate

    def tls(self) -> ssl.SSLContext | None:
        """Return a new TLS context; None for plain HTTP. Raises SpecError for unusable files."""
        if not self.has_tls:
            return None
        settings = self._configuration
        try:
            context = ssl.create_default_context(cafile=settings.ssl_ca_cert or None)
            # Go, and so kubectl and helm, take authorities that newer Pythons find too old-fashioned.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not settings.verify_ssl:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        except (OSError, ValueError) as error:
            raise self._broken(f"its certificate authority cannot be used: {error}", "clusters") from error
        if settings.cert_file:
            try:
                # With an empty password an encrypted key is an error; without one, OpenSSL would ask on the terminal.
                context.load_cert_chain(settings.cert_file, settings.key_file, password="")
            except (OSError, ValueError) as error:
                raise self._broken(f"its client certificate cannot be used: {error}", "users") from error
        return context

    def _load(self) -> Any:
        from kubernetes import client, config

        configuration = client.Configuration()
        files = ":".join(self.context.files)
        with self._failures():
            config.load_kube_config(config_file=files, context=self.context.name, client_configuration=configuration)
        keys = (*_CREDENTIALS, *(_CERTIFICATES if self.has_tls else ()))
        wanted = [key for key in keys if self.context.user.text(key)]
        if wanted and not configuration.api_key and not configuration.cert_file:
            raise self._failure(f"its {wanted[0]} yields neither a token nor a certificate")
        with self._failures():
            self._certificate = Path(configuration.cert_file).read_bytes() if configuration.cert_file else b""
        return configuration

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise ToolFailed for whatever the client raises, or writes to the log and goes on without."""
        written: list[str] = []
        with _client_log(written):
            try:
                yield
            except SymphError:
                raise
            except binascii.Error as error:
                raise self._broken(f"what it holds as base64 is none: {error}", "") from error
            except Exception as error:  # odd files make the client raise KeyError, TypeError, its own, requests' own...
                raise self._failure(str(error) or type(error).__name__) from error
        if written:
            raise self._failure(written[-1])

    def _failure(self, reason: str) -> SymphError:
        context, user = self.context, self.context.user
        if "File does not exist" in reason:
            return self._broken(reason[0].lower() + reason[1:], "")
        program = user.fields.get("exec")
        hint = str(program.get("installHint") or "") if isinstance(program, dict) else ""
        command = f"; its login program is {program.get('command')}" if isinstance(program, dict) else ""
        what = f'the user "{user.name}" of context {context.name} cannot log in{command}: {reason}'
        return ToolFailed(what, user.file, hint.strip() or "log in again, or mend the user's entry in this file")

    def _broken(self, reason: str, path: str) -> SpecError:
        entry = self.context.user if path == "users" else self.context.cluster
        what = f'the context "{self.context.name}" cannot be used: {reason}'
        return SpecError.one(what, f"{path}, {entry.name}" if path else "", "mend this file", entry.file)


class _Keep(logging.Handler):
    """A handler that keeps the messages of the client's kubeconfig reader, of the thread that made it."""

    def __init__(self, written: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._written, self._thread = written, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and record.module == "kube_config":
            self._written.append(record.getMessage())


@contextmanager
def _client_log(written: list[str]) -> Iterator[None]:
    """Keep what the client's kubeconfig reader writes to the root logger at level error, in this thread."""
    handler = _Keep(written)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _proxy_of_environment(server: str) -> str | None:
    """Return the environment's proxy for the server, as Go reads it: never for this machine."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxies = urllib.request.getproxies_environment()
    unproxied = ["localhost", "127.0.0.0/8", "::1", *(name.strip() for name in proxies.get("no", "").split(","))]
    if any(_is_within(host, name) for name in unproxied if name):
        return None
    proxy = proxies.get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _is_within(host: str, name: str) -> bool:
    """Return True if an entry of NO_PROXY covers the host: ``*``, an address, network or domain."""
    domain = name.partition(":")[0].lstrip("*.") if name.count(":") == 1 else name.lstrip("*.")
    if name == "*" or host in (name, domain) or host.endswith(f".{domain}"):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return False
