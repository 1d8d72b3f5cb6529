"""Addresses of repositories: what an address may hold that ends up in files, in Git and in lists of processes."""

from __future__ import annotations

import re

from symphony_charts.errors import Problem

__all__ = ["address_fault", "repository_fault"]

_USERINFO = re.compile(r"(?i)^\s*([a-z][a-z0-9+.-]*)://([^/?#]*)@")
_QUERY = re.compile(r"(?i)([?&](?:[a-z_-]*token|password|passwd|secret|sig|signature|api[_-]?key|key|auth)=)[^&#]+")
# git-remote-ext and its like: git help gitremote-helpers.
_HELPER = re.compile(r"(?i)^\s*[a-z0-9][a-z0-9+.-]*::")


def repository_fault(url: str, path: str) -> Problem | None:
    """Return the fault of a Git repository's address at `path`; None if git may be given it."""
    if not url.strip() or url.startswith("-") or any(ord(char) < 32 or ord(char) == 127 for char in url):
        return Problem(what=f"{url!r} is no address of a repository", path=path, next="give its URL")
    if _HELPER.match(url):
        what = f"{_hidden(url).partition('::')[0].strip()}::... runs a program instead of naming a repository"
        return Problem(what=what, path=path, next="give its URL, as https://, ssh:// or HOST:PATH")
    return address_fault(url, path)


def address_fault(url: str, path: str) -> Problem | None:
    """Return the user, password or token that an address holds, as a fault at `path`; None if it holds none.

    The user of ssh is no secret. That of HTTP cannot be told from a token, which is sent in its place.
    """
    match = _USERINFO.match(url)
    if match and ":" in match[2]:
        kind = "a password"
    elif match and match[1].lower() in ("http", "https"):
        kind = "a user or token"
    elif _QUERY.search(url):
        kind = "a token"
    else:
        return None
    return Problem(
        what=f"{_hidden(url)} holds {kind}, which would end up in files, in Git and in lists of processes",
        path=path,
        next="take it out; git finds it by a credential helper, and the user by `credential.URL.username`:"
        " git help credentials",
    )


def _hidden(url: str) -> str:
    """Return an address with its secrets masked."""
    bare = _USERINFO.sub(lambda match: f"{match[1]}://***@", url)
    return _QUERY.sub(lambda match: f"{match[1]}***", bare)
