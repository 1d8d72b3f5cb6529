"""The origin of this installation, and the command that started it.

Never rely on the package index for the name: its owner there could run code in our place.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from symphony_charts.errors import UsageError

_NAME = "symphony-charts"
FORMS = "git+https://HOST/REPOSITORY@COMMIT, git+ssh://... or https://HOST/FILE.whl#sha256=HASH"
# No blanks, quotes or dollars: it goes into a requirements file, where pip replaces variables.
_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_GIT = re.compile(rf"git\+(?:https|ssh)://[\w.~:@/%+-]+@{_COMMIT}(?:#subdirectory=[\w./-]+)?", re.ASCII)
_FILE = re.compile(r"https://[\w.~:@/%+-]+\.(?:whl|tar\.gz|zip)#sha256=[0-9a-f]{64}", re.ASCII)


def check_pinned(where: str) -> str:
    """Return `where` if its content is immutable and the same for everybody. Raises UsageError."""
    if not (_GIT.fullmatch(where) or _FILE.fullmatch(where)):
        raise UsageError(f"{where!r} does not pin a commit or a hash", "--install-from", f"give {FORMS}")
    place = urlsplit(where.removeprefix("git+"))
    if place.password or (place.username and place.scheme == "https"):
        what = "the address contains a password, and symph would write it to Git"
        raise UsageError(what, "--install-from", "remove the password")
    return where


def requirement(where: str, extra: str = "") -> str:
    """Return the line of a requirements file that installs from `where`. Source: PEP 508, "direct references"."""
    return f"{_NAME}[{extra}] @ {where}" if extra else f"{_NAME} @ {where}"


def pinned_source(record: Mapping[str, object] | None = None) -> str | None:
    """Return the pinned origin of this installation; None for a folder or file of this machine, or an index.

    `record` is the installer's record of it. Source: PEP 610.
    """
    record = _record() if record is None else record
    url, vcs, archive = str(record.get("url", "")), record.get("vcs_info"), record.get("archive_info")
    if isinstance(vcs, dict):
        folder = record.get("subdirectory")
        where = f"{vcs.get('vcs')}+{url}@{vcs.get('commit_id')}" + (f"#subdirectory={folder}" if folder else "")
    elif isinstance(archive, dict):
        hashes = archive.get("hashes")
        new = hashes.get("sha256") if isinstance(hashes, dict) else None
        where = f"{url}#sha256={new or str(archive.get('hash', '')).removeprefix('sha256=')}"
    else:
        return None
    try:
        return check_pinned(where)
    except UsageError:
        return None


def command_for_extra(extra: str) -> str:
    """Return the command that adds an optional part of this installation."""
    record = _record()
    url = str(record.get("url", ""))
    info = record.get("dir_info")
    if url.startswith("file://") and isinstance(info, dict):
        option = "--editable " if info.get("editable") else ""
        return f"pip install {option}{shlex.quote(f'{unquote(urlsplit(url).path)}[{extra}]')}"
    where = pinned_source(record) or url
    if where:
        return f"pip install {shlex.quote(requirement(where, extra))}"
    return f"pip install {' '.join(shlex.quote(need) for need in _needs_of(extra))}"


def _record() -> Mapping[str, object]:
    try:
        text = importlib.metadata.distribution(_NAME).read_text("direct_url.json")
        record = json.loads(text) if text else {}
    except (importlib.metadata.PackageNotFoundError, ValueError, OSError):
        return {}
    return record if isinstance(record, dict) else {}


def _needs_of(extra: str) -> list[str]:
    try:
        needs = importlib.metadata.requires(_NAME) or []
    except importlib.metadata.PackageNotFoundError:
        needs = []
    mark = re.compile(rf"""extra == ["']{re.escape(extra)}["']""")
    return [need.partition(";")[0].strip() for need in needs if mark.search(need)]
