"""Clear-signed text by gpg, which holds the keys."""

from __future__ import annotations

from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.system.subprocess_runner import run

__all__ = ["clear_sign"]


def clear_sign(text: str, key: str) -> bytes:
    """`text` with an OpenPGP signature by `key` (an id, fingerprint or mail address).

    Raises SpecError for an option in disguise, ToolMissing without gpg, ToolFailed where it does not sign.
    """
    if not key or key.startswith("-"):
        raise SpecError.one(f'"{key}" names no key', "sign", "gpg --list-secret-keys shows yours")
    argv = ["gpg", "--batch", "--yes", "--local-user", key, "--digest-algo", "SHA512", "--armor", "--clearsign"]
    try:
        return run(argv, input=text.encode(), timeout_s=120).stdout
    except ToolFailed as error:
        said = error.stderr.strip().splitlines()
        error.what = f"gpg did not sign: {said[-1] if said else 'no reason given'}"
        error.next = "gpg --list-secret-keys shows your keys; one with a passphrase needs its agent"
        raise
