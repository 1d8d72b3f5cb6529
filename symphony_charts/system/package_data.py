"""The package carries folders of files that end up in someone else's place, and tables: from a checkout, or a wheel."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.errors import NotFound

FOLDERS = ("chart-template", "gitops", "local")

_PACKAGE = Path(__file__).parent.parent
# What a checkout holds that is not part of the content.
_NOT_CONTENT = ("__pycache__",)


def folder(name: str) -> dict[str, bytes]:
    """Return the files of one folder by their relative path, sorted. Raises NotFound for another name."""
    root = path(name)
    files = {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and not set(_NOT_CONTENT) & set(file.relative_to(root).parts)
    }
    return dict(sorted(files.items()))


def table(name: str) -> bytes:
    """Return the content of a data file by its path in the package: ``placement/data/prices.json``."""
    # Without importlib.resources, which takes 8 ms to import.
    return (_PACKAGE / name).read_bytes()


def tables(folder: str) -> list[str]:
    """Return the names of the files that stand in a folder of the code, such as ``chart/lint/schemas``, sorted."""
    return sorted(file.name for file in (_PACKAGE / folder).iterdir() if file.is_file())


def path(name: str) -> Path:
    """Return the path of a folder on this machine; read it only. Raises NotFound if it is missing."""
    # An editable install has no _data: there the checkout's own folder is next to the package.
    places = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in places if name in FOLDERS else ():
        if candidate.is_dir():
            return candidate
    raise NotFound(f'symphony-charts has no data folder "{name}"', str(_PACKAGE), "reinstall symphony-charts")
