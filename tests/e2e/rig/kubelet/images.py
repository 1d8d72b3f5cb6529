"""Substitutes for container images: a table of patterns; an unknown image is this machine's own file system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import yaml


class ImageRefused(Exception):  # noqa: N818 - as `ConfigMissing`
    """An image that no registry has; the text is a container runtime's error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The properties of an image: entry point, working directory, variables, user, folders put first on PATH.

    With `refused` it cannot be pulled, for that reason; ``{image}`` is a placeholder for its name.
    """

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    workdir: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    user: int = 0
    path: tuple[str, ...] = ()
    refused: str = ""


def read_images(path: Path) -> dict[str, Image]:
    """Return the table in a YAML file: pattern -> fields of `Image`; folders of `path` are relative to the file."""
    rows = yaml.safe_load(path.read_text())["images"]
    found = {}
    for pattern, row in rows.items():
        lists = {key: tuple(row[key]) for key in ("entrypoint", "command") if key in row}
        folders = tuple(str((path.parent / folder).resolve()) for folder in row.get("path", []))
        found[pattern] = Image(**{**row, **lists, "path": folders})
    return found


def find_image(images: Mapping[str, Image], name: str) -> Image:
    """Return the first entry whose pattern fits `name`, or a bare one. Raises ImageRefused if it cannot be pulled."""
    image = next((image for pattern, image in images.items() if fnmatchcase(name, pattern)), Image())
    if image.refused:
        raise ImageRefused(image.refused.format(image=name))
    return image
