"""A submission starts an experiment from TorchX, on images that hold the files of its workspaces.

TorchX asks for the image before it asks for the request. Here nothing is read or pushed until the request is
submitted, so that a dry run stays one: until then the role says in its metadata which folder it wants. Images are
pushed without Docker.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import Conflict, SpecError, UsageError
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import shorten
from symphony_charts.oci.images import with_images
from symphony_charts.oci.transport import Access
from symphony_charts.oci.workspace import PatchedImage, patch_image, read_workspace
from symphony_charts.package import package, template, write
from symphony_charts.prepare import prepare
from symphony_charts.secrets.files import guard_of
from symphony_charts.settings.project import find_settings
from symphony_charts.spec.data import to_data, to_yaml
from symphony_charts.spec.files import SpecFile, lock_path_of, read_lock
from symphony_charts.spec.lockfile import Lock
from symphony_charts.spec.model import Experiment
from symphony_charts.system.files import write_file
from symphony_charts.torchx_scheduler.app_ids import AppId, cluster_of
from symphony_charts.torchx_scheduler.request import SymphRequest

__all__ = ["note_workspace", "patch_workspaces", "submit", "take_workspaces"]

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
    folders: dict[str, str] = {}
    for role in app["roles"]:
        folder = role["metadata"].pop(_KEY, None)
        if folder is not None:
            role.pop("workspace", None)
            folders.setdefault(role["image"], folder)
    return folders


def patch_workspaces(
    experiment: Experiment,
    workspaces: Mapping[str, str],
    repository: str,
    access: Access | None = None,
) -> tuple[Experiment, list[PatchedImage]]:
    """The experiment on images that have the folders' files, and these images, which are now in `repository`.

    Raises Conflict for a secret in a file, and whatever keeps images from being read or pushed.
    """
    images = []
    for base, folder in workspaces.items():
        entries = read_workspace(Path(folder))
        guard_of([], find_settings(Path(folder)).allowed_leaks).refuse(
            {str(Path(folder) / entry.path): entry.content for entry in entries}
        )
        images.append(patch_image(base, entries, repository, access=access))
    spec = SpecFile(path=Path("experiment.yaml"), experiment=experiment, lock_path=Path("-"), lock=Lock())
    return with_images(spec, {image.base: image.image for image in images}).experiment, images


_LONGEST = 40
_TRIES = 5
_log = logging.getLogger(__name__)


def submit(request: SymphRequest) -> AppId:
    """Start the request's experiment (with ``on=chart`` write its chart); the app id it runs under.

    Without an `app_id` it gets the experiment's name, or the first free of ``name-2``, ``name-3``...: every submission
    is an application of its own, and nothing that ran is touched. Raises Conflict for an `app_id` that is taken.
    """
    if request.is_compat:
        next_step = f"save the dry run and kubectl create -f it, or torchx run -s {_owner(request)}"
        raise UsageError("TorchX's own objects are shown, not submitted", next=next_step)
    wanted = str(request.experiment["name"])
    if request.workspaces and request.image_repo:
        experiment, images = patch_workspaces(
            request.named(wanted), request.workspaces, request.image_repo, request.registry
        )
        request = replace(request, experiment=to_data(experiment), workspaces={})
        for image in images:
            _log.info("%s", f"image {image.image} is {image.base} with a layer of {image.layer_bytes} bytes")
    if request.on == "chart":
        return _write_chart(request.named(wanted), Path(request.dest))
    cluster = Cluster.new("tmux")
    if request.on != "tmux":
        cluster = cluster_of(request.namespace, request.context)
        request = replace(request, experiment=_as_new_run(request.experiment))
    experiment, status = _start(cluster, request, wanted)
    if request.on == "tmux":
        return AppId(name=experiment.name)
    namespace = status.namespace if isinstance(status, ExperimentStatus) else request.namespace
    return AppId(name=experiment.name, namespace=namespace or "default", context=request.context)


def _as_new_run(experiment: dict[str, object]) -> dict[str, object]:
    """The experiment as a run that never was: what it shares with others by name, as ``${app_id}``, is its own."""
    return {**experiment, "workload": {**sub(experiment, "workload"), "run_key": secrets.token_hex(8)}}


def _start(cluster: Cluster, request: SymphRequest, wanted: str) -> tuple[Experiment, object]:
    for _ in range(_TRIES - 1):
        experiment = request.named(_free(wanted, _names(cluster)) if request.app_id is None else wanted)
        try:
            return experiment, cluster.start(experiment, folder=Path.cwd(), pins={})
        except Conflict:
            # Somebody else may have taken the name since it was looked up.
            if request.app_id is not None or experiment.name not in _names(cluster):
                raise
    experiment = request.named(_free(wanted, _names(cluster)))
    return experiment, cluster.start(experiment, folder=Path.cwd(), pins={})


def _names(cluster: Cluster) -> set[str]:
    return {status.name for status in cluster.list(ended=True)}


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{shorten(wanted, _LONGEST - len(str(number)) - 1)}-{number}"
    return name


def _owner(request: SymphRequest) -> str:
    return "kubernetes_mcad" if request.objects[0]["kind"] == "AppWrapper" else "kubernetes"


def _write_chart(experiment: Experiment, dest: Path) -> AppId:
    """Write the chart as `symph package` does, and the experiment beside it, so that both can go on without TorchX."""
    path = dest / f"{experiment.name}.yaml"
    lock_path = lock_path_of(path)
    spec = SpecFile(path=path, experiment=experiment, lock_path=lock_path, lock=read_lock(lock_path))
    write(package(prepare(spec), spec, dest, template()))
    write_file(path, to_yaml(experiment).encode())
    return AppId(name=experiment.name, is_chart=True)
