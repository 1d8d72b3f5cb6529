"""The programs that hold the keys sign commits and texts: gpg and ssh-keygen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.system.subprocess_runner import run

__all__ = ["clear_sign", "signer"]


def signer(key: str) -> Callable[[bytes], str]:
    """What signs a commit's bytes with `key`: ``gpg:KEYID``, or the path of an SSH key (private, or public with agent).

    The signature goes into the commit's header ``gpgsig``. Argo CD checks GPG's alone, Flux and forges both. Raises
    SpecError for a key that is not there; the function raises ToolMissing and ToolFailed.
    """
    if key.startswith("gpg:"):
        name = key.removeprefix("gpg:")
        if not name or name.startswith("-"):
            raise SpecError.one(f'"{key}" names no key', "sign", "for example gpg:0123ABCD")
        return lambda data: _sign(["gpg", "--batch", "--local-user", name, "--detach-sign", "--armor"], data)
    path = Path(key).expanduser()
    if not path.is_file():
        raise SpecError.one(f"no SSH key at {key}", "sign", "give the path of a key, or gpg:KEYID")
    # Format: OpenSSH, PROTOCOL.sshsig; git wants the namespace "git".
    return lambda data: _sign(["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(path)], data)


def _sign(argv: list[str], data: bytes) -> str:
    return run(argv, input=data, timeout_s=60).text


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
        reasons = error.stderr.strip().splitlines()
        error.what = f"gpg did not sign: {reasons[-1] if reasons else 'no reason given'}"
        error.next = "gpg --list-secret-keys shows your keys; one with a passphrase needs its agent"
        raise
