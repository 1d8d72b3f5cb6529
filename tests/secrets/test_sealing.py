"""Sealing compared with the format itself: this module opens the result by the steps of the controller.

The real kubeseal opens our sealed Secrets in tests/e2e/test_sealed_secrets.py.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.cli.main import main
from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.secrets.files import SealStore

x509 = pytest.importorskip("cryptography.x509")
from cryptography.exceptions import InvalidTag  # noqa: E402 - after the skip
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402 - likewise
from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: E402 - likewise
from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: E402 - likewise
from cryptography.x509.oid import NameOID  # noqa: E402 - likewise

from symphony_charts.secrets.sealing import (  # noqa: E402 - likewise
    Certificate,
    fetch_certificate,
    label_of,
    read_certificate,
    seal,
    seal_all,
)

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def certificate(key: rsa.RSAPrivateKey = KEY) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sealed-secrets")])
    begins = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begins, begins + dt.timedelta(3650))
    return bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


CERTIFICATE: Certificate = read_certificate(certificate())


def unseal(text: str, label: bytes) -> bytes:
    data = base64.b64decode(text, validate=True)
    size = int.from_bytes(data[:2], "big")
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label)
    return AESGCM(KEY.decrypt(data[2 : 2 + size], oaep)).decrypt(bytes(12), data[2 + size :], None)


@given(st.binary(max_size=300), st.sampled_from(["strict", "namespace-wide", "cluster-wide"]))
def test_a_sealed_value_opens_with_the_label_of_its_scope(value: bytes, scope: str) -> None:
    label = label_of(scope, "rl", "rl-secrets")  # type: ignore[arg-type]  # one of the three
    assert unseal(seal(CERTIFICATE, value, label, os.urandom(32)), label) == value


def test_a_value_that_is_bound_to_one_secret_opens_for_no_other() -> None:
    sealed = seal(CERTIFICATE, b"value", label_of("strict", "rl", "a"), os.urandom(32))
    with pytest.raises((ValueError, InvalidTag)):
        unseal(sealed, label_of("strict", "rl", "b"))


def test_the_overhead_is_that_of_the_format() -> None:
    assert len(base64.b64decode(seal(CERTIFICATE, b"", b"", os.urandom(32)))) == 2 + 256 + 16


def test_an_unchanged_value_keeps_its_ciphertext_and_a_changed_one_does_not() -> None:
    store = SealStore(secret=b"k" * 32)
    first = seal_all(CERTIFICATE, {"a": b"1", "b": b"2"}, b"rl/s", store, os.urandom)
    again = seal_all(CERTIFICATE, {"a": b"1", "b": b"3"}, b"rl/s", SealStore(b"k" * 32, dict(store.sealed)), os.urandom)
    assert first["a"] == again["a"]
    assert first["b"] != again["b"]
    assert unseal(again["b"], b"rl/s") == b"3"


def test_another_certificate_or_label_is_sealed_anew() -> None:
    store = SealStore(secret=b"k" * 32)
    other = read_certificate(certificate(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
    made = {
        seal_all(each, {"a": b"1"}, label, store, os.urandom)["a"]
        for each, label in ((CERTIFICATE, b"x"), (CERTIFICATE, b"y"), (other, b"x"))
    }
    assert len(made) == 3


def test_what_is_kept_tells_nobody_the_value() -> None:
    store = SealStore(secret=os.urandom(32))
    seal_all(CERTIFICATE, {"a": b"hunter2"}, b"x", store, os.urandom)
    assert "hunter2" not in repr(store.sealed)
    assert store.name_of(CERTIFICATE.fingerprint, b"x", "a", b"hunter2") != SealStore(b"other" * 8).name_of(
        CERTIFICATE.fingerprint, b"x", "a", b"hunter2"
    )


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", b"hello"])
def test_what_is_no_certificate_is_refused_with_the_way_to_one(pem: bytes) -> None:
    with pytest.raises(SpecError, match="is not a certificate") as failure:
        read_certificate(pem, "cert.pem")
    assert "kubeseal --fetch-cert" in failure.value.next


def test_what_is_not_sealed_yet_is_looked_at_and_never_printed_to_be_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token.txt").write_text("hunter2-hunter2")
    process = {"image": "a:1", "command": ["x"]}
    data = {"name": "e", "secrets": ["token.txt"], "secret_source": {"source": "sealed"}, "processes": {"p": process}}
    (tmp_path / "e.json").write_text(json.dumps(data))
    for verb in (["validate", "e.json"], ["package", "e.json", "-d", "dist"]):
        assert main(verb) == 0
    render = ["render", "e.json", "-n", "rl"]
    for verb in (render, ["export", "manifests", "e.json", "-n", "rl"]):
        assert main(verb) == 3
        assert "no sealed value for token.txt" in capsys.readouterr().err
    (tmp_path / "cert.pem").write_bytes(certificate())
    assert main(["secrets", "seal", "e.json", "-n", "rl", "--cert", "cert.pem"]) == 0
    (tmp_path / "sealed.yaml").write_text(capsys.readouterr().out)
    assert main([*render, "-f", "sealed.yaml"]) == 0
    assert main(["render", "e.json", "-n", "other", "-f", "sealed.yaml"]) == 3
    assert "the values were sealed for rl/e-secrets, and this is other/e-secrets" in capsys.readouterr().err


def test_an_experiment_with_another_source_of_secrets_is_not_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token.txt").write_text("hunter2-hunter2")
    (tmp_path / "cert.pem").write_bytes(certificate())
    data = {"name": "e", "secrets": ["token.txt"], "processes": {"p": {"image": "a:1", "command": ["x"]}}}
    (tmp_path / "e.json").write_text(json.dumps(data))
    seal_it = ["secrets", "seal", "e.json", "--cert", "cert.pem"]
    assert main(seal_it) == 3
    assert "--spec-set secret_source.source=sealed" in capsys.readouterr().err
    assert main([*seal_it, "--spec-set", "secret_source.source=sealed"]) == 0


def test_an_address_that_is_not_of_a_web_server_is_no_bug() -> None:
    with pytest.raises(ToolFailed, match="cannot fetch the certificate"):
        fetch_certificate("https://127.0.0.1:9/a b")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        with pytest.raises(ToolFailed, match="cannot fetch the certificate"):
            fetch_certificate(f"http://127.0.0.1:{server.getsockname()[1]}/cert.pem")


def _greet(server: socket.socket) -> None:
    caller, _ = server.accept()
    with caller:
        caller.recv(1000)
        caller.sendall(b"220 mail.example.org\r\n")
