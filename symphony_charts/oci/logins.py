"""Logins are those that helm and docker keep, their credential helpers included.

Sources: docker/cli, cli/config/configfile/file.go and docker/docker-credential-helpers, README.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from symphony_charts.system.subprocess_runner import run

__all__ = ["Login", "login_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user and a password; both empty for somebody unknown."""

    user: str = ""
    password: str = field(default="", repr=False)


def login_for(host: str) -> Login:
    """Return the login that helm's or docker's files hold for `host`, helm's first; an empty one where none does."""
    names = [host, f"https://{host}", f"https://{host}/v1/", f"https://{host}/v2/"]
    if host == "registry-1.docker.io":
        names += ["https://index.docker.io/v1/", "docker.io"]
    for path in _files():
        try:
            config = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        login = _in_config(config, names) if isinstance(config, dict) else None
        if login is not None:
            return login
    return Login()


def _files() -> Iterator[Path]:
    helm = os.environ.get("HELM_REGISTRY_CONFIG")
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    yield Path(helm) if helm else Path(base).expanduser() / "helm" / "registry" / "config.json"
    yield Path(os.environ.get("DOCKER_CONFIG") or "~/.docker").expanduser() / "config.json"


def _in_config(config: dict[str, object], names: list[str]) -> Login | None:
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
            user, _, password = base64.b64decode(entry["auth"]).decode("utf-8", "replace").partition(":")
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
