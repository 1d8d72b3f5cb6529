"""Sealing makes ciphertext that only the controller in a cluster can read, without kubeseal.

Format, one value: two bytes (big endian) with the length of the encrypted session key, that key (RSA-OAEP with
SHA-256, MGF1 with SHA-256, the label being what the value is bound to), then AES-256-GCM of the value under the
session key with a nonce of twelve zero bytes, all in standard base64. Source: bitnami-labs/sealed-secrets,
pkg/crypto/crypto.go, pkg/apis/sealedsecrets/v1alpha1/sealedsecret_expansion.go.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from symphony_charts.chart.build.checks import sealed_for
from symphony_charts.errors import SpecError, ToolMissing

__all__ = ["Certificate", "Scope", "SealStore", "label_of", "read_certificate", "seal", "seal_all"]

Scope: TypeAlias = Literal["strict", "namespace-wide", "cluster-wide"]
_KEY_BYTES, _NONCE = 32, bytes(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A controller's certificate: its SHA-256 fingerprint (hex) and its public key."""

    fingerprint: str
    public_key: object


def read_certificate(pem: bytes, at: str = "") -> Certificate:
    """Return the certificate in `pem`. Raises SpecError for what is none, ToolMissing without the extra ``seal``."""
    # The extra ``seal`` brings it.
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError as error:
        raise ToolMissing("sealing needs the package cryptography", extra="seal") from error
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        hint = "kubeseal --fetch-cert prints the right one"
        raise SpecError.one("this is no certificate of a sealed-secrets controller", at=at, next=hint) from error
    key = certificate.public_key()
    if not isinstance(key, RSAPublicKey):
        raise SpecError.one(
            "the certificate holds no RSA key", at=at, next="kubeseal --fetch-cert prints the right one"
        )
    return Certificate(fingerprint=certificate.fingerprint(SHA256()).hex(), public_key=key)


def label_of(scope: Scope, namespace: str, name: str) -> bytes:
    """Return what a value is bound to: a Secret, a namespace, or nothing."""
    return sealed_for(scope, namespace, name).encode()


def seal(certificate: Certificate, value: bytes, label: bytes, session_key: bytes) -> str:
    """`value` sealed under a random `session_key` of 32 bytes, which must never be used again."""
    # Of the extra ``seal``, which reading the certificate has seen to be there.
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256

    key = certificate.public_key
    if not isinstance(key, RSAPublicKey) or len(session_key) != _KEY_BYTES:
        raise ValueError("sealing takes an RSA key and 32 random bytes")
    encrypted = key.encrypt(session_key, OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=label))
    body = AESGCM(session_key).encrypt(_NONCE, value, None)
    return base64.b64encode(len(encrypted).to_bytes(2, "big") + encrypted + body).decode()


@dataclass(slots=True)
class SealStore:
    """Values sealed before on this machine, so that an unchanged value keeps its ciphertext.

    `sealed` maps what a value is (a keyed hash of certificate, label, key and content) to its ciphertext; without
    `secret` nobody can test guesses of a value against it.
    """

    secret: bytes
    sealed: dict[str, str] = field(default_factory=dict)

    def name_of(self, fingerprint: str, label: bytes, key: str, value: bytes) -> str:
        """Under which name the ciphertext of a value is kept."""
        parts = (fingerprint.encode(), label, key.encode(), value)
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self.secret, framed, hashlib.sha256).hexdigest()


def seal_all(
    certificate: Certificate,
    contents: Mapping[str, bytes],
    label: bytes,
    store: SealStore,
    random_bytes: Callable[[int], bytes],
) -> dict[str, str]:
    """Return all `contents` (by key) sealed; what `store` holds is taken from it, and what is new is put there."""
    sealed = {}
    for key in sorted(contents):
        name = store.name_of(certificate.fingerprint, label, key, contents[key])
        if name not in store.sealed:
            store.sealed[name] = seal(certificate, contents[key], label, random_bytes(_KEY_BYTES))
        sealed[key] = store.sealed[name]
    return sealed
