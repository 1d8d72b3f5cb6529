"""HTTP to a registry: TLS, redirects, and the logins of helm and docker."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

import urllib3

from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.system.subprocess_runner import progress_notice, run

# Sources: docker/cli, cli/config/configfile/file.go and docker/docker-credential-helpers, README.


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user and a password; both empty for anonymous access."""

    user: str = ""
    password: str = field(default="", repr=False)


def login_for(host: str) -> Login:
    """Return the login for `host` from helm's or docker's files, helm's first; empty if there is none."""
    names = [host, f"https://{host}", f"https://{host}/v1/", f"https://{host}/v2/"]
    if host == "registry-1.docker.io":
        names += ["https://index.docker.io/v1/", "docker.io"]
    for path in _files():
        try:
            config = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        login = _in_config(config, names, str(path)) if isinstance(config, dict) else None
        if login is not None:
            return login
    return Login()


def _files() -> Iterator[Path]:
    helm = os.environ.get("HELM_REGISTRY_CONFIG")
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    yield Path(helm) if helm else Path(base).expanduser() / "helm" / "registry" / "config.json"
    yield Path(os.environ.get("DOCKER_CONFIG") or "~/.docker").expanduser() / "config.json"


def _in_config(config: dict[str, object], names: list[str], at: str) -> Login | None:
    helpers, auths = config.get("credHelpers"), config.get("auths")
    for name in names:
        helper = helpers.get(name) if isinstance(helpers, dict) else None
        helper = helper or (config.get("credsStore") if isinstance(auths, dict) and name in auths else None)
        if isinstance(helper, str) and re.fullmatch(r"[\w.-]+", helper):
            login = _ask_helper(helper, name)
            if login is not None:
                return login
        entry = auths.get(name) if isinstance(auths, dict) else None
        if isinstance(entry, dict) and isinstance(entry.get("auth"), str):
            try:
                user, _, password = base64.b64decode(entry["auth"]).decode("utf-8", "replace").partition(":")
            except ValueError as error:
                what = f"the login for {name} is damaged: {error}"
                raise SpecError.one(what, f"auths, {name}", f"log in again: helm registry login {name}", at) from error
            if user:
                return Login(user=user, password=password.rstrip("\0"))
    return None


def _ask_helper(helper: str, host: str) -> Login | None:
    ended = run([f"docker-credential-{helper}", "get"], input=host.encode(), timeout_s=30, check=False)
    try:
        data = json.loads(ended.stdout) if ended.status == 0 else {}
    except ValueError:
        data = {}
    if not isinstance(data, dict) or not data.get("Username"):
        return None
    return Login(user=str(data["Username"]), password=str(data.get("Secret", "")))


_LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")
# Timeouts for connecting to a host and for its answer.
_CONNECT_S, _TIMEOUT_S = 5.0, 60.0
_MOST_REDIRECTS = 3
# Try again if the registry is busy, or closed an idle connection; not if it accepts no connection.
_RETRIES = urllib3.Retry(
    total=5,
    connect=0,
    read=1,
    status=4,
    status_forcelist=(408, 429, 500, 502, 503, 504),
    backoff_factor=0.2,
    allowed_methods=None,
    raise_on_status=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access to one registry, named like helm's flags; `login` overrides the files of helm and docker."""

    plain_http: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure_skip_tls_verify: bool = False
    login: Login | None = None

    @property
    def asks_for_tls(self) -> bool:
        """True if TLS is required, also on this machine."""
        return bool(self.ca_file or self.cert_file or self.insecure_skip_tls_verify)

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context for the flags. Raises SpecError for files without a certificate or key."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            # Go, and so helm, accepts CA certificates that Python 3.13 rejects as too old.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        except OSError as error:
            raise _unreadable("--ca-file", self.ca_file, error) from error
        if self.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file:
            try:
                context.load_cert_chain(self.cert_file, self.key_file or None)
            except OSError as error:
                raise _unreadable("--cert-file", self.cert_file, error) from error
        return context


def _unreadable(flag: str, path: str, error: OSError) -> SpecError:
    reason = "it does not contain a certificate and a key" if isinstance(error, ssl.SSLError) else error.strerror
    return SpecError.one(f"cannot use {path}: {reason}", flag, "give a PEM file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a registry; `headers` by names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The registry's own error text, shortened."""
        try:
            errors = json.loads(self.body)["errors"]
            return "; ".join(str(error.get("message") or error.get("code")) for error in errors)
        except (ValueError, KeyError, TypeError, AttributeError):
            return self.body[:200].decode("utf-8", "replace").strip() or http.client.responses.get(self.status, "")


class Transport:
    """The connections to one registry, and to hosts that it redirects to. Raises SpecError for unusable files."""

    def __init__(self, host: str, access: Access) -> None:
        self.host = host
        self.access = access
        is_local = _LOOPBACK.fullmatch(host) is not None and not access.asks_for_tls
        self._scheme = "http" if access.plain_http or is_local else "https"
        if access.insecure_skip_tls_verify:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        self._pool = urllib3.PoolManager(ssl_context=access.tls())

    def close(self) -> None:
        self._pool.clear()

    def may_be_plain(self, host: str) -> bool:
        """Return True if plain HTTP is allowed to a host that the registry names."""
        return self.access.plain_http or _LOOPBACK.fullmatch(host) is not None

    def place(self, location: str) -> SplitResult:
        """Resolve an address from the registry; never from TLS to plain HTTP."""
        address = urlsplit(urljoin(f"{self._scheme}://{self.host}", location))
        if address.netloc == self.host:
            return address._replace(scheme=self._scheme)
        return address if self.may_be_plain(address.netloc) else address._replace(scheme="https")

    def exchange(
        self, method: str, address: SplitResult, headers: dict[str, str], body: bytes | None = None, redirects: int = 0
    ) -> Answer:
        """Send a request and return the whole answer; follow redirects of GET, without credentials to other hosts.

        Raises ToolFailed if the host is unreachable.
        """
        try:
            with progress_notice(f"{address.scheme}://{address.netloc}"):
                response = self._pool.request(
                    method,
                    address.geturl(),
                    body=body,
                    headers={"User-Agent": "symphony-charts", **headers},
                    redirect=False,
                    retries=_RETRIES,
                    timeout=urllib3.Timeout(connect=_CONNECT_S, read=_TIMEOUT_S),
                )
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise _unreachable(address.netloc, error) from error
        answered = {name.lower(): value for name, value in response.headers.items()}
        answer = Answer(status=response.status, headers=answered, body=response.data)
        if answer.status in (301, 302, 303, 307, 308) and method == "GET" and redirects < _MOST_REDIRECTS:
            target = self.place(urljoin(address.geturl(), answer.headers.get("location", "")))
            is_same = target.netloc == address.netloc
            kept = {name: value for name, value in headers.items() if name != "Authorization" or is_same}
            return self.exchange(method, target, kept, None, redirects + 1)
        return answer


def _unreachable(host: str, error: Exception) -> ToolFailed:
    """Return the error for an exception of urllib3, which wraps that of Python."""
    cause: BaseException = error
    while isinstance(inner := getattr(cause, "reason", None) or cause.__cause__ or cause.__context__, BaseException):
        cause = inner
    what = f"cannot reach {host}: {cause}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ToolFailed(what, next="give the certificate of its authority: --ca-file FILE")
    if isinstance(cause, ssl.SSLError):
        return ToolFailed(what, next="if the registry has no TLS: --plain-http")
    return ToolFailed(what, next="check the address, and that the registry is running")
