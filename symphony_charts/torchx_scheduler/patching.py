"""Workspaces: the files of a folder of this machine in the images that a cluster pulls, pushed without Docker.

TorchX asks for the image before it asks for the request. Here nothing is read or pushed until the request is
submitted, so that a dry run stays one: until then the role says in its metadata which folder it wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symphony_charts.errors import SpecError
from symphony_charts.oci.workspace import PatchedImage, patch_image, read_workspace, with_images
from symphony_charts.secrets.files import guard_of
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.lockfile import Lock
from symphony_charts.spec.model import Experiment

__all__ = ["note_workspace", "patched", "take_workspaces"]

_KEY = "symph.dev/workspace"


def note_workspace(metadata: dict[str, Any], workspace: str) -> None:
    """Remember the folder in the metadata of a role; raises SpecError for what is no folder of this machine."""
    folder = workspace.removeprefix("file://")
    if "://" in folder:
        what = f"the workspace {workspace} is no folder of this machine"
        raise SpecError.one(what, "workspace", "--workspace FOLDER, or --workspace '' for none")
    metadata[_KEY] = folder


def take_workspaces(app: dict[str, Any]) -> dict[str, str]:
    """The folder for each image, taken out of an AppDef as plain data; TorchX's own mention of it goes, too."""
    found: dict[str, str] = {}
    for role in app["roles"]:
        folder = role["metadata"].pop(_KEY, None)
        if folder is not None:
            role.pop("workspace", None)
            found.setdefault(role["image"], folder)
    return found


def patched(
    experiment: Experiment, workspaces: Mapping[str, str], repository: str
) -> tuple[Experiment, list[PatchedImage]]:
    """The experiment on images that have the folders' files, and these images, which are now in `repository`.

    Raises Conflict for a secret in a file, and whatever keeps images from being read or pushed.
    """
    images = []
    for base, folder in workspaces.items():
        entries = read_workspace(Path(folder))
        guard_of([]).refuse({str(Path(folder) / entry.path): entry.content for entry in entries})
        images.append(patch_image(base, entries, repository))
    spec = SpecFile(path=Path("experiment.yaml"), experiment=experiment, lock_path=Path("-"), lock=Lock())
    return with_images(spec, {one.base: one.image for one in images}).experiment, images
