"""The page of a forge on which a pushed branch becomes a pull request: the server's own words, or else built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, urlencode

__all__ = ["FORGES", "review_link"]

FORGES = ("github", "gitlab", "gitea")
_URL = re.compile(r"https?://[^\s<>\"']+")
_ASKS = re.compile(r"pull|merge|review|compare", re.IGNORECASE)
# Where a forge is called after neither its kind nor itself.
_KNOWN = {"codeberg.org": "gitea"}
_ADDRESS = re.compile(r"(?:(?:https?|ssh|git)://)?(?:[^@/]+@)?(?P<host>[\w.-]+)(?P<port>:\d+(?=/))?[:/]/*(?P<path>.+)")


def review_link(url: str, branch: str, base: str, *, heard: Sequence[str] = (), forge: str = "") -> str:
    """Return the page that proposes `branch` of the repository `url` for `base`; empty if unknown.

    `heard` is what the server said when it took the branch; `forge` is its kind, where its name does not tell.
    """
    said = [match[0].rstrip(".,)") for line in heard for match in _URL.finditer(line)]
    asking = [link for link in said if _ASKS.search(link)]
    if asking:
        return asking[0]
    match = _ADDRESS.fullmatch(url)
    if match is None or ("://" not in url and ":" not in url) or url.startswith("file:"):
        return ""
    host = match["host"]
    kind = forge or _KNOWN.get(host) or next((each for each in (*FORGES, "forgejo") if each in host), "")
    page = f"https://{host}{_port(url, match)}/{match['path'].rstrip('/').removesuffix('.git')}"
    if kind == "gitlab":
        names = {"merge_request[source_branch]": branch, "merge_request[target_branch]": base}
        return f"{page}/-/merge_requests/new?{urlencode(names)}"
    if kind in ("github", "gitea", "forgejo"):
        end = "?expand=1" if kind == "github" else ""
        return f"{page}/compare/{quote(base)}...{quote(branch)}{end}"
    return ""


def _port(url: str, match: re.Match[str]) -> str:
    return match["port"] or "" if url.startswith("https://") else ""
