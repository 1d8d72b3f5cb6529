"""The author of a commit is who the user is for git, and signs it as git would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from symphony_charts.settings.project import Repository
from symphony_charts.system.git.identity import identity
from symphony_charts.system.signing import configured_signer, signer

__all__ = ["Author", "author_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Author and committer of a commit (the same by default), as ``Name <mail>``; `sign` signs its bytes."""

    name: str
    committer: str = ""
    sign: Callable[[bytes], str] | None = None


def author_of(repository: Repository, key: str | None = None) -> Author:
    """Return the author for `repository`: git's identity, with the author and key of the settings.

    `key` takes their key's place, and an empty one leaves the commit unsigned. Where neither names one, git's own
    ``commit.gpgsign`` counts. Raises SpecError where git knows nobody, or a key is not there.
    """
    who = identity(repository.author)
    if key is None and not repository.sign:
        sign = configured_signer(who.committer)
    else:
        chosen = repository.sign if key is None else key
        sign = signer(chosen) if chosen else None
    return Author(name=who.author, committer=who.committer, sign=sign)
