"""The kubeconfigs of the login table: every way to log in, and every known failure."""

from __future__ import annotations

import datetime as dt
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.kubernetes.kube_peer import Peer, jwt

EXEC = "/api/v1/namespaces/x/pods/p/exec"
BOTH = ["/version", EXEC]


class Cases:
    """The kubeconfigs of one run, written below `folder`."""

    def __init__(self, folder: Path, there: Peer, proxies: str) -> None:
        self.folder, self.peer, self.proxies = folder, there, proxies
        self.found: list[dict[str, object]] = []

    def add(
        self,
        name: str,
        user: Mapping[str, object] | None = None,
        *,
        cluster: Mapping[str, object] | None = None,
        text: str | None = None,
        **more: object,
    ) -> Path:
        file = self.folder / f"{len(self.found)}.yaml"
        authority = {"certificate-authority-data": self.peer.data("ca.crt")}
        base: dict[str, object] = {"server": self.peer.plain, **authority}
        merged = {key: value for key, value in {**base, **(cluster or {})}.items() if value is not None}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": merged}],
            "users": [{"name": "u", "user": user or {}}],
        }
        file.write_text(yaml.safe_dump(document) if text is None else text)
        self.found.append({"name": name, "file": str(file), **more})
        return file

    def program(self, name: str, script: str) -> str:
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\nimport json, os, pathlib, sys\nhere = pathlib.Path(__file__)\n{script}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


def _credential(version: str, status: str) -> str:
    return (
        f"api = 'client.authentication.k8s.io/{version}'\n"
        "count = here.with_suffix('.count')\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        f"print(json.dumps({{'apiVersion': api, 'kind': 'ExecCredential', 'status': {status}}}))\n"
    )


def _login_program(cases: Cases, name: str, version: str, status: str, **more: object) -> dict[str, object]:
    command = cases.program(name, _credential(version, status))
    entry = {"apiVersion": f"client.authentication.k8s.io/{version}", "command": command, "interactiveMode": "Never"}
    return {"exec": {**entry, **more}}


def good_logins(cases: Cases) -> None:
    there = cases.peer
    token = cases.folder / "token"
    token.write_text("from-file\n")
    later = (dt.datetime.now(dt.timezone.utc) + dt.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    certificate = {"client-certificate-data": there.data("user.crt"), "client-key-data": there.data("user.key")}
    files = {"client-certificate": "pki/user.crt", "client-key": "pki/user.key"}
    issuer = {
        "client-id": "id",
        "client-secret": "s",
        "idp-issuer-url": there.plain,
        "idp-certificate-authority-data": there.data("ca.crt"),
        "refresh-token": "first",
    }
    cases.add("client certificate", certificate, paths=BOTH)
    cases.add("client certificate in files beside", files, paths=BOTH)
    cases.add("token", {"token": "word"}, paths=BOTH)
    cases.add("token file", {"tokenFile": str(token)}, paths=BOTH)
    moved = cases.folder / "moved"
    moved.write_text("stale")
    cases.add("token file that was renewed", {"tokenFile": str(moved)}, write={str(moved): "new\n"}, paths=BOTH)
    cases.add("name and password", {"username": "ann", "password": "secret"}, paths=BOTH)
    cases.add("nobody", {}, paths=BOTH)
    for version in ("v1beta1", "v1"):
        status = f"{{'token': f'made-{{n}}', 'expirationTimestamp': '{later}'}}"
        cases.add(f"program {version}", _login_program(cases, f"good-{version}", version, status), paths=BOTH)
    old = "{'token': f'made-{n}', 'expirationTimestamp': '2020-01-01T00:00:00Z'}"
    cases.add("program whose token expires", _login_program(cases, "old", "v1", old), paths=BOTH)
    revoked = f"{{'token': 'stale' if n == 1 else 'second', 'expirationTimestamp': '{later}'}}"
    cases.add("program whose token is revoked", _login_program(cases, "revoked", "v1", revoked), paths=BOTH)
    pair = "{'clientCertificateData': open(%r).read(), 'clientKeyData': open(%r).read()}"
    pair %= (str(there.folder / "user.crt"), str(there.folder / "user.key"))
    cases.add("program that gives a certificate", _login_program(cases, "pair", "v1", pair), paths=BOTH)
    cases.add("OIDC", {"auth-provider": {"name": "oidc", "config": {**issuer, "id-token": jwt(3600, "held")}}})
    cases.add("OIDC that expired", {"auth-provider": {"name": "oidc", "config": {**issuer, "id-token": jwt(-60, "x")}}})
    insecure = {"insecure-skip-tls-verify": True, "certificate-authority-data": None, "server": there.named}
    cases.add("insecure", {"token": "word"}, cluster=insecure, paths=BOTH)
    cases.add("proxy", {"token": "word"}, cluster={"proxy-url": cases.proxies}, paths=BOTH)
    named = {"server": there.named, "tls-server-name": "api.internal"}
    cases.add("another server name", {"token": "word"}, cluster=named, paths=BOTH)


def bad_logins(cases: Cases) -> None:
    there = cases.peer
    strange = cases.folder / "other" / "ca.crt"
    cases.add(
        "a strange authority", cluster={"certificate-authority-data": None, "certificate-authority": str(strange)}
    )
    cases.add(
        "a stream to a strange authority",
        cluster={"certificate-authority": str(strange), "certificate-authority-data": None},
        paths=[EXEC],
    )
    cases.add("no authority", cluster={"certificate-authority-data": "bm9uZQ=="})
    cases.add("an authority that is no base64", cluster={"certificate-authority-data": "abc"})
    cases.add(
        "an authority that is not there",
        cluster={"certificate-authority-data": None, "certificate-authority": "no.crt"},
    )
    cases.add("the wrong server name", cluster={"server": there.named})
    cases.add("a proxy that is not there", cluster={"proxy-url": "http://127.0.0.1:9"})
    cases.add("a proxy that wants a password", cluster={"proxy-url": cases.proxies.replace("user:word@", "")})
    cases.add("a SOCKS proxy", cluster={"proxy-url": "socks5://127.0.0.1:9"})
    cases.add("a proxy that is no address", cluster={"proxy-url": "http://[::1"})
    cases.add("no server", cluster={"server": "https://127.0.0.1:9"})
    cases.add("half a certificate", {"client-certificate-data": there.data("user.crt")})
    cases.add(
        "a key of another",
        {"client-certificate-data": there.data("user.crt"), "client-key-data": there.data("server.key")},
    )
    cases.add("no token file", {"tokenFile": "/no/such"})
    missing = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login", "interactiveMode": "Never"}
    cases.add("a program that is not there", {"exec": {**missing, "installHint": "install no-such-login first"}})
    failing = cases.program("failing", "sys.exit('your session has ended')")
    cases.add("a program that fails", {"exec": {**missing, "command": failing}})
    lost = _credential("v1", "{'token': 'made', 'expirationTimestamp': '2020-01-01T00:00:00Z'}")
    once = cases.program("once", f"if here.with_suffix('.count').exists(): sys.exit('gone')\n{lost}")
    cases.add("a program that fails later", {"exec": {**missing, "command": once}})
    cases.add("a program that says nothing", {"exec": {**missing, "command": cases.program("mute", "")}})
    cases.add("an unknown provider", {"auth-provider": {"name": "azure", "config": {}}})
    cases.add("a token that nobody takes", {"token": "stale"}, paths=["/version"])
    cases.add("a login page", {"token": "word"}, paths=["/page"])
    cases.add("a redirection", {"token": "word"}, paths=["/elsewhere"])
    cases.add("a redirected stream", {"token": "word"}, paths=["/elsewhere/exec"])


KUBECONFIGS = {
    "no YAML": "a: [b\nc: d: e",
    "tabs": "clusters:\n\t- name: c\n",
    "a list": "[1, 2]",
    "a word": "kubeconfig",
    "empty": "",
    "only a comment": "# nothing\n",
    "no contexts": "apiVersion: v1\nkind: Config\n",
    "no current context": "contexts: [{name: a, context: {cluster: c}}, {name: b, context: {cluster: c}}]\n",
    "contexts that are no list": "current-context: a\ncontexts: {a: b}\n",
    "an entry without a name": "current-context: a\ncontexts: [{context: {}}]\n",
    "an entry that is a word": "current-context: a\ncontexts: [a]\n",
    "a missing cluster": "current-context: a\ncontexts: [{name: a, context: {cluster: gone, user: u}}]\n",
    "a missing user": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: gone}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\n"
    ),
    "a missing server": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]\n"
    ),
    "a server that is half an address": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://[::1'}}]\n"
    ),
    "a server that is no address": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: x}}]\n"
    ),
}
