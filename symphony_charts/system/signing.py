"""The programs that hold the keys sign commits and texts: gpg and ssh-keygen."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.system.subprocess_runner import run

_OFF = "--no-sign leaves the commit unsigned"
# A public key as text, whose private half an agent has. Source: git help config, user.signingKey.
_LITERAL = re.compile(r"(?:key::)?((?:ssh|ecdsa|sk)-\S+ \S.*)", re.DOTALL)


def signer(key: str) -> Callable[[bytes], str]:
    """Return a function that signs a commit with `key`: ``gpg:KEYID``, or the path of an SSH key.

    The signature goes into the commit's header ``gpgsig``. Argo CD checks GPG's alone, Flux and forges both. Raises
    SpecError for a key that is not there; the function raises ToolMissing and ToolFailed.
    """
    if key.startswith("gpg:"):
        return _openpgp("gpg", key.removeprefix("gpg:"))
    return _ssh("ssh-keygen", key)


def configured_signer(committer: str) -> Callable[[bytes], str] | None:
    """Return a function that signs as git would, by ``commit.gpgsign``, ``user.signingkey`` and ``gpg.*``, or None.

    `committer` (``Name <mail>``) is whose key gpg takes where none is named. Raises SpecError for a key that is not
    there.
    """
    settings = _git_settings()
    if settings.get("commit.gpgsign", "false").lower() not in ("true", "yes", "on", "1", ""):
        return None
    form, key = settings.get("gpg.format", "openpgp"), settings.get("user.signingkey", "")
    if form == "ssh":
        program = settings.get("gpg.ssh.program", "ssh-keygen")
        return _ssh(program, key or _default_key(settings.get("gpg.ssh.defaultkeycommand", "")))
    default = settings.get("gpg.program", "gpg") if form == "openpgp" else "gpgsm"
    return _openpgp(settings.get(f"gpg.{form}.program", default), key or committer)


def _git_settings() -> Mapping[str, str]:
    """Return git's settings about signatures by lower-case name; the last of several counts."""
    argv = ["git", "config", "--null", "--get-regexp", r"^(commit\.gpgsign|user\.signingkey|gpg\..*)$"]
    items = run(argv, timeout_s=10, check=False).text.split("\0")
    pairs = [item.partition("\n") for item in items if item]
    return {name.lower(): value for name, _, value in pairs}


def _default_key(command: str) -> str:
    """Return the first key that the user's own command prints; as in git, no shell runs it."""
    if not command:
        return ""
    lines = run(shlex.split(command), timeout_s=60, check=False).text.splitlines()
    return next((line for line in lines if _LITERAL.fullmatch(line.strip())), "")


def _openpgp(program: str, name: str) -> Callable[[bytes], str]:
    if not name or name.startswith("-"):
        raise SpecError.one(f'"{name}" names no key', "sign", "for example gpg:0123ABCD")
    argv = [program, "--batch", "--local-user", name, "--detach-sign", "--armor"]
    return lambda data: _sign(
        argv, data, "gpg --list-secret-keys shows your keys; one with a passphrase needs its agent"
    )


def _ssh(program: str, key: str) -> Callable[[bytes], str]:
    literal = _LITERAL.fullmatch(key.strip())
    if literal:
        return lambda data: _sign_with_agent(program, literal[1], data)
    path = Path(key).expanduser()
    if not key or not path.is_file():
        raise SpecError.one(
            f"no SSH key at {key or 'user.signingkey'}", "sign", f"give the path of a key, or gpg:KEYID; {_OFF}"
        )
    return lambda data: _sign_with_file(program, str(path), data)


def _sign_with_agent(program: str, public: str, data: bytes) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="symph-key-", suffix=".pub") as file:
        file.write(f"{public}\n")
        file.flush()
        return _sign_with_file(program, file.name, data)


def _sign_with_file(program: str, path: str, data: bytes) -> str:
    # Format: OpenSSH, PROTOCOL.sshsig; git wants the namespace "git".
    return _sign([program, "-Y", "sign", "-n", "git", "-f", path], data, "ssh-add -l shows the keys of your agent")


def _sign(argv: Sequence[str], data: bytes, step: str) -> str:
    try:
        return run(argv, input=data, timeout_s=60).text
    except ToolFailed as error:
        raise _unsigned(error, argv[0], f"{step}; {_OFF}") from None


def _unsigned(error: ToolFailed, program: str, step: str) -> ToolFailed:
    reasons = error.stderr.strip().splitlines()
    error.what = f"{Path(program).name} did not sign: {reasons[-1] if reasons else 'no reason given'}"
    error.next = step
    return error


def clear_sign(text: str, key: str) -> bytes:
    """Return `text` with an OpenPGP signature by `key` (an id, fingerprint or mail address).

    Raises SpecError for an option in disguise, ToolMissing without gpg, ToolFailed where it does not sign.
    """
    if not key or key.startswith("-"):
        raise SpecError.one(f'"{key}" names no key', "sign", "gpg --list-secret-keys shows yours")
    argv = ["gpg", "--batch", "--yes", "--local-user", key, "--digest-algo", "SHA512", "--armor", "--clearsign"]
    try:
        return run(argv, input=text.encode(), timeout_s=120).stdout
    except ToolFailed as error:
        raise _unsigned(
            error, "gpg", "gpg --list-secret-keys shows your keys; one with a passphrase needs its agent"
        ) from None
