"""Helm's flags for registries: own TLS certificates, plain HTTP, user name and password."""

from __future__ import annotations

import datetime as dt
import io
import ipaddress
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.test_push import Place, place, run_helm
from tests.registry import running_registry

x509 = pytest.importorskip("cryptography.x509")
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402 - after the skip
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402 - likewise
from cryptography.x509.oid import NameOID  # noqa: E402 - likewise

__all__ = ["place"]


def write_certificates(folder: Path) -> None:
    """Write an authority (ca.pem) and the certificates of a server on this machine and a client (.pem, .key)."""
    begins = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "server", "client")}
    names = {name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in keys}
    local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    for number, (name, key) in enumerate(keys.items(), 1):
        ends = begins + dt.timedelta(3650)
        builder = x509.CertificateBuilder(names["ca"], names[name], key.public_key(), number, begins, ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
        builder = builder.add_extension(local, critical=False)
        signed = builder.sign(keys["ca"], hashes.SHA256())
        (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.key").write_bytes(pem)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory, need_tool: Callable[[str], str]) -> Iterator[tuple[str, Path]]:
    """Yield a registry on this machine that accepts only TLS, and the folder of its certificates."""
    folder = tmp_path_factory.mktemp("tls")
    write_certificates(folder)
    files = f"{{certificate: {folder}/server.pem, key: {folder}/server.key}}"
    with running_registry(need_tool("docker-registry"), folder, tls=files) as host:
        yield host, folder


def test_an_authority_of_ones_own_is_trusted_as_by_helm(place: Place, tls: tuple[str, Path], tmp_path: Path) -> None:
    host, folder = tls
    ca = ("--ca-file", str(folder / "ca.pem"))
    assert place.push(f"oci://{host}/charts", *ca)["state"] == "pushed"
    assert place.push(f"oci://{host}/charts", *ca)["state"] == "there already"
    ended = run_helm("4.3", tmp_path, "pull", f"oci://{host}/charts/rl", "--version", "0.1.0", *ca, "-d", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "rl-0.1.0.tgz").read_bytes() == place.archive.read_bytes()


def test_any_certificate_is_taken_where_that_is_asked_for(place: Place, tls: tuple[str, Path]) -> None:
    host, folder = tls
    assert place.push(f"oci://{host}/any", "--insecure-skip-tls-verify")["state"] == "pushed"
    status, _, err = place.symph("push", str(place.archive), f"oci://{host}/any", "--ca-file", f"{folder}/client.pem")
    assert (status, "--ca-file" in err) == (6, True)


def test_a_registry_that_wants_a_certificate_is_shown_one(
    place: Place, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    write_certificates(tmp_path)
    files = f"{{certificate: {tmp_path}/server.pem, key: {tmp_path}/server.key, clientcas: [{tmp_path}/ca.pem]}}"
    ca = ("--ca-file", f"{tmp_path}/ca.pem")
    with running_registry(need_tool("docker-registry"), tmp_path, tls=files) as host:
        assert place.symph("push", str(place.archive), f"oci://{host}/charts", *ca)[0] == 6
        shown = ("--cert-file", f"{tmp_path}/client.pem", "--key-file", f"{tmp_path}/client.key")
        assert place.push(f"oci://{host}/charts", *ca, *shown)["state"] == "pushed"


def test_plain_http_is_spoken_to_another_host_only_where_that_is_asked_for(
    place: Place, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    with running_registry(need_tool("docker-registry"), tmp_path) as host:
        # A loopback address in an unusual notation.
        target = f"oci://{host.replace('127.0.0.1', '127.1')}/charts"
        status, _, err = place.symph("push", str(place.archive), target)
        assert (status, "--plain-http" in err) == (6, True)
        assert place.push(target, "--plain-http")["state"] == "pushed"


def test_the_password_comes_from_stdin_and_goes_over_what_helm_keeps(
    place: Place, tmp_path: Path, need_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # bcrypt of "correct horse", made once.
    line = "ann:$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n"
    (tmp_path / "config.json").write_text(json.dumps({"auths": {}}))
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "config.json"))
    login = ("--username", "ann", "--password-stdin")
    with running_registry(need_tool("docker-registry"), tmp_path, line) as host:
        target = f"oci://{host}/charts"
        monkeypatch.setattr(sys, "stdin", io.StringIO("wrong-S3cr3t\n"))
        status, out, err = place.symph("push", str(place.archive), target, *login)
        assert (status, "S3cr3t" in out + err, "--password-stdin" in err) == (6, False, True)
        monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse\n"))
        assert place.push(target, *login)["state"] == "pushed"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--username", "ann"], 2),
        (["--password-stdin"], 2),
        (["--plain-http", "--ca-file", "x.pem"], 2),
        (["--key-file", "x.pem"], 2),
        (["--ca-file", "none.pem"], 3),
        (["--ca-file", "rl.yaml"], 3),
        (["--cert-file", "rl.yaml"], 3),
    ],
)
def test_flags_that_cannot_be_meant_are_refused_before_anything_is_asked(
    words: list[str], status: int, place: Place
) -> None:
    ended, _, err = place.symph("push", str(place.archive), "oci://127.0.0.1:1/charts", *words)
    assert ended == status, err
