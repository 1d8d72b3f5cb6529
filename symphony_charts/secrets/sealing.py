"""Seal secret files for the controller of sealed-secrets."""

from __future__ import annotations

import base64
import json
import os
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from symphony_charts.chart.build.faults import sealed_for
from symphony_charts.errors import SpecError, ToolFailed, ToolMissing
from symphony_charts.formats.data import Values
from symphony_charts.secrets.files import SealStore, open_store, read_secrets
from symphony_charts.spec.files import SpecFile
from symphony_charts.system.files import write_file
from symphony_charts.system.subprocess_runner import run

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256

    _IS_INSTALLED = True
except ImportError:
    _IS_INSTALLED = False

# Format of one value: two bytes (big endian) with the length of the encrypted session key, that key (RSA-OAEP with
# SHA-256, MGF1 with SHA-256, with the scope of the value as its label), then AES-256-GCM of the value under the session
# key with a nonce of twelve zero bytes, all in standard base64. Source: bitnami-labs/sealed-secrets,
# pkg/crypto/crypto.go, pkg/apis/sealedsecrets/v1alpha1/sealedsecret_expansion.go.

Scope: TypeAlias = Literal["strict", "namespace-wide", "cluster-wide"]
_KEY_BYTES, _NONCE = 32, bytes(12)
_TIMEOUT_S = 20.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Source: bitnami-labs/sealed-secrets, cmd/kubeseal: the controller's service, and the path of its certificate.
_IN_CLUSTER = "/api/v1/namespaces/kube-system/services/http:sealed-secrets-controller:/proxy/v1/cert.pem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A controller's certificate: its SHA-256 fingerprint (hex) and its public key."""

    fingerprint: str
    public_key: RSAPublicKey


def fetch_certificate(source: str) -> bytes:
    """Return the PEM text of the certificate of a sealed-secrets controller.

    `source` is a path, an `https://` address, or `cluster` to ask the controller. Raises ToolFailed if an address or
    the cluster does not answer, and SpecError for a file that cannot be read or an address without TLS.
    """
    if source == "cluster":
        return run(["kubectl", "get", "--raw", _IN_CLUSTER], timeout_s=_TIMEOUT_S).stdout
    if "://" in source:
        return _fetch(source)
    try:
        return Path(source).expanduser().read_bytes()
    except OSError as error:
        hint = "fetch it: kubeseal --fetch-cert > FILE, or use --cert cluster"
        raise SpecError.one(f"cannot read the certificate {source}: {error.strerror}", next=hint) from error


def _fetch(address: str) -> bytes:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise SpecError.one(
            f"{address} has no TLS, so an attacker could replace the certificate", "cert", "use https://"
        )
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the scheme was looked at
            content: bytes = answer.read(1 << 20)
    except (OSError, HTTPException) as error:
        raise ToolFailed(f"cannot fetch the certificate: {error}", address, "give a file: --cert FILE") from error
    return content


def read_certificate(pem: bytes, at: str = "") -> Certificate:
    """Return the certificate in `pem`. Raises SpecError if it is invalid, ToolMissing without the extra `seal`."""
    if not _IS_INSTALLED:
        raise ToolMissing("sealing secrets needs the package cryptography", extra="seal")
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        hint = "fetch the right one: kubeseal --fetch-cert"
        raise SpecError.one("this is not a certificate of a sealed-secrets controller", at=at, next=hint) from error
    key = certificate.public_key()
    if not isinstance(key, RSAPublicKey):
        raise SpecError.one("the certificate has no RSA key", at=at, next="fetch the right one: kubeseal --fetch-cert")
    return Certificate(fingerprint=certificate.fingerprint(SHA256()).hex(), public_key=key)


def label_of(scope: Scope, namespace: str, name: str) -> bytes:
    """Return the scope of a value: a Secret, a namespace, or nothing."""
    return sealed_for(scope, namespace, name).encode()


def seal(certificate: Certificate, value: bytes, label: bytes, session_key: bytes) -> str:
    """Return `value` sealed with a random `session_key` of 32 bytes, which must never be reused."""
    if len(session_key) != _KEY_BYTES:
        raise ValueError("the session key must have 32 bytes")
    encrypted = certificate.public_key.encrypt(session_key, OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=label))
    body = AESGCM(session_key).encrypt(_NONCE, value, None)
    return base64.b64encode(len(encrypted).to_bytes(2, "big") + encrypted + body).decode()


def seal_all(
    certificate: Certificate,
    contents: Mapping[str, bytes],
    label: bytes,
    store: SealStore,
    random_bytes: Callable[[int], bytes],
) -> dict[str, str]:
    """Return all `contents` (by key) sealed; reuse ciphertexts in `store`, and add new ones to it."""
    sealed = {}
    for key in sorted(contents):
        name = store.name_of(certificate.fingerprint, label, key, contents[key])
        if name not in store.sealed:
            store.sealed[name] = seal(certificate, contents[key], label, random_bytes(_KEY_BYTES))
        sealed[key] = store.sealed[name]
    return sealed


def sealed_values(spec: SpecFile, certificate: Certificate, namespace: str, name: str) -> Values:
    """Return the sealed files of `spec` for one namespace as values; unchanged files keep their ciphertext.

    Raises SpecError for files that cannot be read.
    """
    contents = read_secrets(spec)
    label = label_of(spec.experiment.secret_source.scope, namespace, name)
    store, path = open_store(certificate.fingerprint)
    before = dict(store.sealed)
    sealed = seal_all(certificate, contents, label, store, os.urandom)
    if store.sealed != before:
        write_file(path, json.dumps(store.sealed, indent=1, sort_keys=True).encode(), mode=0o600)
    bound = {"sealedFor": label.decode()} if label else {}
    return {"secrets": {"encryptedData": sealed, **bound}}
