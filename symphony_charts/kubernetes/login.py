"""Read a kubeconfig: the cluster of a context, and the credentials of its user.

Only documented features of the client are used: `config.load_kube_config` fills a `Configuration`, whose hook renews
expired credentials. Errors that the client ignores (a failing login program) or raises untyped become typed errors
here. As with kubectl, the kubeconfig is only written when the issuer of an OIDC token returns a new refresh token.
"""

from __future__ import annotations

import binascii
import difflib
import ipaddress
import logging
import os
import ssl
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from symphony_charts.errors import SpecError, SymphError, ToolFailed

# Files merge as in kubectl, and so helm: the first file that defines a name wins. The official client uses the last
# file's current context, so it always gets the context explicitly.

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LISTS = {"contexts": "context", "clusters": "cluster", "users": "user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One named entry of a kubeconfig (a context, cluster or user) and its file."""

    name: str
    file: str
    fields: Mapping[str, object] = field(repr=False)

    def text(self, key: str) -> str:
        """Return the value of a key as text; empty if missing."""
        value = self.fields.get(key)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeContext:
    """A context with its cluster and user, and all files that were read; no user means anonymous."""

    name: str
    namespace: str
    cluster: Entry
    user: Entry
    files: tuple[str, ...]


def kubeconfig_files(kubeconfig: Path | None = None) -> list[str]:
    """Return the kubeconfig files: the given one, else those of the current $KUBECONFIG, else ~/.kube/config."""
    if kubeconfig is not None:
        return [str(kubeconfig.expanduser())]
    named = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return [str(Path(name).expanduser()) for name in named or ["~/.kube/config"]]


def read_context(kubeconfig: Path | None = None, name: str | None = None) -> KubeContext:
    """Return the context `name`, or the current one.

    Raises ToolFailed without a kubeconfig, and SpecError, with the file, for an unusable one.
    """
    wanted = kubeconfig_files(kubeconfig)
    files = [file for file in wanted if Path(file).exists()]
    if not files:
        what = f"no cluster is configured: {' or '.join(wanted)} does not exist"
        raise ToolFailed(what, next="set $KUBECONFIG, or give --kubeconfig FILE")
    documents = {file: _document(file) for file in files}
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in _LISTS}
    for kind, named in entries.items():
        for entry in (entry for file, document in documents.items() for entry in _entries(file, document, kind)):
            named.setdefault(entry.name, entry)
    chosen = name or next(
        (str(document["current-context"]) for document in documents.values() if document.get("current-context")), ""
    )
    context = _named(entries["contexts"], chosen, files)
    cluster = _referred(context, "cluster", entries["clusters"])
    if not cluster.text("server"):
        raise _broken(cluster.file, f'the cluster "{cluster.name}" has no server', "clusters")
    user = Entry(name="", file=context.file, fields={})
    if context.text("user"):
        user = _referred(context, "user", entries["users"])
    namespace = context.text("namespace") or "default"
    return KubeContext(name=context.name, namespace=namespace, cluster=cluster, user=user, files=tuple(files))


def _document(file: str) -> Mapping[str, object]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise _broken(file, f"cannot read the kubeconfig: {reason}") from error
    try:
        document = yaml.load(text, _LOADER)  # noqa: S506  # a safe loader, by another name
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{file}:{mark.line + 1}" if mark else file
        reason = getattr(error, "problem", None) or str(error)
        raise _broken(at, f"the kubeconfig is not YAML: {reason}") from error
    if document is None:
        raise _broken(file, "the kubeconfig is empty")
    if not isinstance(document, Mapping):
        raise _broken(file, f"the kubeconfig is a {type(document).__name__}, not a map")
    return document


def _entries(file: str, document: Mapping[str, object], kind: str) -> Iterator[Entry]:
    listed = document.get(kind) or []
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise _broken(file, f"{kind} is not a list", kind)
    for index, item in enumerate(listed):
        fields = (item.get(_LISTS[kind]) or {}) if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not item.get("name") or not isinstance(fields, Mapping):
            raise _broken(file, f"an entry must have `name` and `{_LISTS[kind]}`", f"{kind}[{index}]")
        yield Entry(name=str(item["name"]), file=file, fields=fields)


def _named(contexts: Mapping[str, Entry], name: str, files: Sequence[str]) -> Entry:
    if name in contexts:
        return contexts[name]
    names = ", ".join(contexts) or "none"
    near = difflib.get_close_matches(name, contexts, 1)
    what = f'unknown context "{name}"' if name else "current-context is not set"
    guess = f' (did you mean "{near[0]}"?)' if near else ""
    raise SpecError.one(what, next=f"choose one with --context: {names}{guess}", at=" ".join(files))


def _referred(context: Entry, kind: str, entries: Mapping[str, Entry]) -> Entry:
    name = context.text(kind)
    if name in entries:
        return entries[name]
    what = f'the context "{context.name}" refers to {kind} "{name}", which does not exist'
    raise SpecError.one(
        what, kind + "s", f"add it, or name one that exists: {', '.join(entries) or 'none'}", context.file
    )


def _broken(at: str, what: str, path: str = "") -> SpecError:
    return SpecError.one(what, path, "compare with the output of: kubectl config view", at)


# A user with one of these is not anonymous; a login without credentials has failed.
_CREDENTIALS = ("exec", "auth-provider", "token", "tokenFile", "username")
_CERTIFICATES = ("client-certificate", "client-certificate-data")


class Login:
    """Address and credentials of a context's cluster; thread-safe.

    Raises ToolFailed if no kubeconfig defines a cluster or a login program fails, SpecError for a broken file.
    """

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        self.context: KubeContext = read_context(kubeconfig, context)
        self.server: str = self.context.cluster.text("server").rstrip("/")
        if not _is_address(self.server):
            raise self._broken(f'the server "{self.server}" is not an http:// or https:// address', "clusters")
        self.server_name: str | None = self.context.cluster.text("tls-server-name") or None
        self.proxy: str | None = self.context.cluster.text("proxy-url") or _proxy_of_environment(self.server)
        if self.proxy and not _is_address(self.proxy):
            raise self._broken(
                "its proxy is not an http:// or https:// address: correct proxy-url or HTTPS_PROXY", "clusters"
            )
        self.has_tls = self.server.startswith("https:")
        self._lock = threading.Lock()
        self._certificate = b""
        self._configuration: Any = self._load()
        # Report unusable files at once.
        self.tls()

    def authorization(self) -> str | None:
        """Return the Authorization header; None with a certificate, or without credentials. Raises ToolFailed."""
        with self._lock, self._failures():
            value = self._configuration.get_api_key_with_prefix("BearerToken")
        # The final newline of a token file is not part of the token.
        return value.strip() if value else None

    def renew(self, refused: str | None) -> tuple[bool, bool]:
        """Log in again after a 401 for the header `refused`; return True for a new token and for a new certificate.

        Files may contain a new token or certificate; a login program may run before its credentials expire.
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
            # Go, and so kubectl and helm, accept CA certificates that newer Pythons reject as too old.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not settings.verify_ssl:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        except (OSError, ValueError) as error:
            raise self._broken(f"its certificate authority is unusable: {error}", "clusters") from error
        if settings.cert_file:
            try:
                # With an empty password an encrypted key is an error; without one, OpenSSL would prompt on the
                # terminal.
                context.load_cert_chain(settings.cert_file, settings.key_file, password="")
            except (OSError, ValueError) as error:
                raise self._broken(f"its client certificate is unusable: {error}", "users") from error
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
        """Raise ToolFailed for all errors that the client raises or only logs."""
        written: list[str] = []
        with _client_log(written):
            try:
                yield
            except SymphError:
                raise
            except binascii.Error as error:
                raise self._broken(f"it has invalid base64: {error}", "") from error
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
        return ToolFailed(what, user.file, hint.strip() or "log in again, or correct the user's entry in this file")

    def _broken(self, reason: str, path: str) -> SpecError:
        entry = self.context.user if path == "users" else self.context.cluster
        what = f'the context "{self.context.name}" is unusable: {reason}'
        return SpecError.one(what, f"{path}, {entry.name}" if path else "", "correct this file", entry.file)


@contextmanager
def _client_log(written: list[str]) -> Iterator[None]:
    """Keep the error messages of the client's kubeconfig reader to the root logger in this thread."""
    thread, handler = threading.get_ident(), logging.Handler(logging.ERROR)

    def emit(record: logging.LogRecord) -> None:
        if record.thread == thread and record.module == "kube_config":
            written.append(record.getMessage())

    handler.emit = emit  # type: ignore[method-assign]
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
    """Return the environment's proxy for the server, by Go's rules: never for this machine."""
    parts = urlsplit(server)
    host, proxies = parts.hostname or "", urllib.request.getproxies_environment()
    if host == "localhost" or urllib.request.proxy_bypass_environment(host, proxies):  # type: ignore[attr-defined]  # typeshed lacks it
        return None
    networks = ("127.0.0.0/8", "::1", *(name.strip() for name in proxies.get("no", "").split(",") if "/" in name))
    with suppress(ValueError):  # not an address
        address = ipaddress.ip_address(host)
        if any(address in ipaddress.ip_network(network, strict=False) for network in networks):
            return None
    proxy = proxies.get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
