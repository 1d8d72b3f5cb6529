"""Names, paths into data, and addresses of Git repositories."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable

from symphony_charts.errors import Problem

DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
SERVICE_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
# A DNS subdomain: the name of most objects, and the part before the slash in a label key.
OBJECT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
# A key of a ConfigMap or Secret.
FILE_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)

_SEPARATORS = str.maketrans(" _.", "---")
_HASH_DIGITS = 8


def sanitize(name: str) -> str:
    """Return `name` in lower case with a dash for each space, underscore and dot.

    `symphony_charts.spec.checks.finish.finish` reports results that are not DNS labels.
    Source: SurrealAI/symphony, symphony/kube/experiment.py.
    """
    return name.translate(_SEPARATORS).lower()


def shorten(name: str, limit: int) -> str:
    """Return `name`; if it is longer than `limit`, its beginning and eight digits of its hash.

    Different names stay different; the result ends in a letter or digit if `name` does. `limit` is at least 10.
    """
    if limit < _HASH_DIGITS + 2:
        raise ValueError(f"a limit of {limit} leaves no room for a hash")
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[: limit - _HASH_DIGITS - 1].rstrip('-.')}-{digest}"


def prefix_owner(name: str, owner: str | None) -> str:
    """Return `name` with ``<owner>-`` before it exactly once; both are sanitised names.

    The check includes the dash: ``jim`` before ``jimmy-x`` gives ``jim-jimmy-x``.
    """
    return name if not owner or name.startswith(f"{owner}-") else f"{owner}-{name}"


def snake(name: str) -> str:
    """Return `name` in snake case: ``serviceAccount`` and ``service-account`` become ``service_account``."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name).strip("_").replace("-", "_")


def is_below(path: str, above: str) -> bool:
    """Return True if `path` is `above`, or inside it."""
    return path == above or path.startswith((f"{above}.", f"{above}["))


def join(path: str, step: str | int) -> str:
    """Return `path` extended by a step: a key after a dot, or an index in brackets."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the one of `choices` that `word` probably means, or None."""
    matches = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else None


def hint(word: str, choices: Iterable[str], otherwise: str = "") -> str:
    """Return the next step for an unknown `word`: the choice that it probably means, or `otherwise`."""
    meant = nearest(word, choices)
    return f'did you mean "{meant}"?' if meant else otherwise


_USERINFO = re.compile(r"(?i)^\s*([a-z][a-z0-9+.-]*)://([^/?#]*)@")
_QUERY = re.compile(r"(?i)([?&](?:[a-z_-]*token|password|passwd|secret|sig|signature|api[_-]?key|key|auth)=)[^&#]+")
# Remote helpers such as git-remote-ext: git help gitremote-helpers.
_HELPER = re.compile(r"(?i)^\s*[a-z0-9][a-z0-9+.-]*::")


def repository_fault(url: str, path: str) -> Problem | None:
    """Return the fault of a Git repository's address at `path`; None if it is safe to pass to git."""
    if not url.strip() or url.startswith("-") or any(ord(char) < 32 or ord(char) == 127 for char in url):
        return Problem(f"{url!r} is not the address of a repository", path, "give its URL")
    if _HELPER.match(url):
        what = f"{_hidden(url).partition('::')[0].strip()}::... runs a program instead of naming a repository"
        return Problem(what, path, "give its URL, as https://, ssh:// or HOST:PATH")
    return address_fault(url, path)


def address_fault(url: str, path: str) -> Problem | None:
    """Return a fault at `path` if an address contains a user, password or token; None otherwise.

    An SSH user is not a secret. An HTTP user may be a token.
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
        f"{_hidden(url)} holds {kind}, which would end up in files, in Git and in lists of processes",
        path,
        "take it out; git finds it by a credential helper, and the user by `credential.URL.username`:"
        " git help credentials",
    )


def _hidden(url: str) -> str:
    bare = _USERINFO.sub(lambda match: f"{match[1]}://***@", url)
    return _QUERY.sub(lambda match: f"{match[1]}***", bare)
