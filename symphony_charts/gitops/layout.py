"""The layout says where things stand in a GitOps repository; writers never share a file.

``charts/<team>/<experiment>/<version>/`` holds a chart and never changes; the pointer
``envs/<env>/<team>/<experiment>.symph-app.yaml`` says which version an environment runs; ``bootstrap/`` holds what Argo
CD or Flux is given once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import DNS_LABEL

# Unique, because Argo CD's generator of files lets a `*` match slashes too.
_FOLDER = re.compile(r"[\w.@+-]+", re.ASCII)

POINTER_SUFFIX = ".symph-app.yaml"


def versions_path(team: str, name: str) -> str:
    return f"charts/{team}/{name}"


def chart_path(team: str, name: str, version: str) -> str:
    return f"charts/{team}/{name}/{version}"


def pointer_folder(env: str, team: str) -> str:
    return f"envs/{env}/{team}"


def pointer_path(env: str, team: str, name: str) -> str:
    return f"envs/{env}/{team}/{name}{POINTER_SUFFIX}"


def pointer_name(path: str) -> tuple[str, str, str] | None:
    """Environment, team and experiment of a pointer's path; None for any other path."""
    parts = path.split("/")
    if len(parts) != 4 or parts[0] != "envs" or not parts[3].endswith(POINTER_SUFFIX):
        return None
    return parts[1], parts[2], parts[3].removesuffix(POINTER_SUFFIX)


def flux_path(env: str, team: str, name: str) -> str:
    return f"flux/{env}/{team}/{name}.yaml"


def flux_keeper_path(env: str) -> str:
    """Return the file that keeps an environment's folder of HelmReleases; Flux ignores it, as it is no YAML."""
    return f"flux/{env}/README.md"


def flux_secret_path(env: str, team: str, name: str) -> str:
    """Return the encrypted Secret of an experiment, which Flux decrypts."""
    return f"flux/{env}/{team}/{name}.secret.yaml"


def ancestors(paths: Iterable[str]) -> list[str]:
    """Return the folders `paths` and all above them, the root (``""``) first, each once."""
    folders = {""}
    for path in paths:
        parts = path.split("/")
        folders.update("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return sorted(folders)


def check_folder(path: str) -> str:
    """`path` itself, without slashes at its ends, if it names a folder of a repository. Raises SpecError."""
    path = path.strip("/")
    parts = path.split("/")
    if path and any(part in ("", ".", "..") or part.lower() == ".git" or not _FOLDER.fullmatch(part) for part in parts):
        raise SpecError.one(f'"{path}" is no folder of a repository', "repository.path", "for example deploy/charts")
    return path


def check_names(**names: str) -> None:
    """Raise SpecError unless all are DNS labels; they become folders, objects' names and branches."""
    problems = [
        Problem(what=f'"{value}" is no {what}', path=what, next="use lower-case letters, digits and -, at most 63")
        for what, value in names.items()
        if not DNS_LABEL.fullmatch(value) or len(value) > 63
    ]
    if problems:
        raise SpecError(problems)
