"""The package carries folders of files that end up in someone else's place, and tables: from a checkout, or a wheel."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.errors import NotFound

__all__ = ["FOLDERS", "folder", "path", "table", "tables"]

FOLDERS = ("chart-template", "gitops", "local")

_PACKAGE = Path(__file__).parent.parent
# What a checkout holds that is not part of the content.
_NOT_CONTENT = ("__pycache__",)


def folder(name: str) -> dict[str, bytes]:
    """The files of one folder by their ``/``-separated path inside it, sorted. Raises NotFound for another name."""
    root = path(name)
    files = {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and not set(_NOT_CONTENT) & set(file.relative_to(root).parts)
    }
    return dict(sorted(files.items()))


def table(name: str) -> bytes:
    """The content of a file that stands beside the code, by its path in the package: ``placement/data/prices.json``."""
    # Without importlib.resources, which takes 8 ms to import.
    return (_PACKAGE / name).read_bytes()


def tables(folder: str) -> list[str]:
    """The names of the files that stand in a folder of the code, such as ``chart/lint/schemas``, sorted."""
    return sorted(file.name for file in (_PACKAGE / folder).iterdir() if file.is_file())


def path(name: str) -> Path:
    """Where one folder lies on this machine; read it only. Raises NotFound if it is not there."""
    # An editable install has no _data: there the checkout's own folder is next to the package.
    places = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in places if name in FOLDERS else ():
        if candidate.is_dir():
            return candidate
    raise NotFound(f'symphony-charts has no data folder "{name}"', str(_PACKAGE), "reinstall symphony-charts")
