"""Symphony's `symphony.addons`: build images with the docker program, if installed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from symphony_charts.errors import SpecError, UsageError
from symphony_charts.integrations.symphony.spec import ExperimentSpec, speaks
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.system.files import write_file
from symphony_charts.system.subprocess_runner import Completed, run

__all__ = ["DockerBuilder", "LocalFileManager", "clean_images"]

_BUILD_S = 3600.0
_CONTEXT = "symphony_docker_build"


@speaks({"build_and_push": {"repo": "repository"}, "from_dict": {"di": "settings"}})
class DockerBuilder:
    """Build one image from a Dockerfile and copies of folders and files.

    `context_directories` holds maps of `name` (in the build context), `path` (here; `~` is the home folder) and
    `force_update` (default: copy again). The context is `<temp_directory>/symphony_docker_build`.
    """

    def __init__(
        self,
        dockerfile: str | Path,
        context_directories: Iterable[Mapping[str, Any]] = (),
        temp_directory: str | Path | None = None,
        *,
        verbose: bool = True,
    ) -> None:
        self.dockerfile = Path(dockerfile).expanduser()
        base = Path(temp_directory).expanduser() if temp_directory else Path(tempfile.gettempdir()) / "symphony"
        self.temp_directory = base / _CONTEXT
        self.context_directories = [dict(entry) for entry in context_directories]
        self.verbose = verbose
        self.img: str | None = None
        names = [entry.get("name") for entry in self.context_directories]
        for index, entry in enumerate(self.context_directories):
            _check_entry(entry, f"context_directories[{index}]", names)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> DockerBuilder:
        """Return the builder for these settings; other keys are ignored. Raises ValueError without a `dockerfile`."""
        if not settings.get("dockerfile"):
            raise SpecError.one(
                "the docker settings have no dockerfile", "dockerfile", "for example: dockerfile: ~/project/Dockerfile"
            )
        context = settings.get("context_directories")
        if context is None:
            warnings.warn("the docker settings have no context_directories: the context is empty", stacklevel=2)
        return cls(
            settings["dockerfile"],
            context or [],
            settings.get("temp_directory"),
            verbose=bool(settings.get("verbose", True)),
        )

    def build(self, tag: str | None = None) -> str:
        """Build the image, tag it if `tag` is given, and return its id. Raises ToolMissing, ToolFailed."""
        context = self.copy_context()
        with tempfile.TemporaryDirectory(prefix="symph-docker-") as folder:
            answer = Path(folder) / "id"
            argv = ["docker", "build", "--file", str(self.dockerfile), "--iidfile", str(answer)]
            self._run([*argv, *(["--tag", tag] if tag else []), str(context)])
            self.img = answer.read_text(encoding="ascii").strip()
        return self.img

    def tag(self, repository: str, tag: str | None = None, force: bool = False) -> str:
        """Tag the image and return the name; docker now always forces. Raises ValueError before `build`."""
        name = self.tag_name(repository, tag)
        self._run(["docker", "tag", self._built(), name])
        return name

    def push(self, repository: str, tag: str | None = None) -> None:
        """Push a name that `tag` created."""
        self._built()
        self._run(["docker", "push", self.tag_name(repository, tag)])

    def build_and_push(self, repository: str, tag: str | None = None) -> None:
        """Build, tag and push."""
        self.build()
        self.tag(repository, tag)
        self.push(repository, tag)

    def tag_name(self, repository: str, tag: str | None = None) -> str:
        """Return the full name of an image."""
        return f"{repository}:{tag or 'latest'}"

    def copy_context(self) -> Path:
        """Return the build context after copying its entries; keep an existing copy that need not be updated."""
        self.temp_directory.mkdir(parents=True, exist_ok=True)
        for entry in self.context_directories:
            source, copy = Path(entry["path"]).expanduser(), self.temp_directory / entry["name"]
            if copy.exists() and not entry.get("force_update", True):
                continue
            if copy.is_dir() and not copy.is_symlink():
                shutil.rmtree(copy)
            if source.is_dir():
                shutil.copytree(source, copy, symlinks=True)
            elif source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
            else:
                raise SpecError.one(f"{source} does not exist", f"context_directories, {entry['name']}")
        return self.temp_directory

    def _built(self) -> str:
        if self.img is None:
            raise SpecError.one("the image was not built", next="call build() first")
        return self.img

    def _run(self, argv: list[str]) -> Completed:
        ended = run(argv, timeout_s=_BUILD_S, grace_s=5.0, env={"DOCKER_BUILDKIT": None}, check=False)
        if ended.status:
            reasons = ended.error_text.strip().splitlines()
            raise ended.failure(f"docker {argv[1]} failed: {reasons[-1] if reasons else ended.status}")
        if self.verbose:
            sys.stderr.write(ended.error_text + ended.text)
        return ended


class LocalFileManager:
    """The folder in which launched experiments are saved, as `<folder>/<name>/experiment.yaml`."""

    @property
    def data_root(self) -> Path | None:
        """The experiment folder, if one is configured."""
        folder = SymphonyConfig().experiment_folder
        return Path(folder).expanduser() if folder else None

    def has_experiment_folder(self) -> bool:
        """Return True if an experiment folder is configured."""
        return self.data_root is not None

    def experiment_path(self, experiment_name: str) -> Path:
        """Return the folder of one experiment. Raises ValueError if none is configured."""
        root = self.data_root
        if root is None:
            raise SpecError.one(
                "no experiment folder is configured", next="SymphonyConfig().set_experiment_folder(...)"
            )
        return root / experiment_name

    def experiment_file(self, experiment_name: str) -> str:
        """Return the file of one experiment."""
        return str(self.experiment_path(experiment_name) / "experiment.yaml")

    def experiment_exists(self, experiment_name: str) -> bool:
        """Return True if the experiment was saved."""
        return Path(self.experiment_file(experiment_name)).exists()

    def load_experiment(self, experiment_name: str) -> ExperimentSpec:
        """Return the saved experiment. Raises ValueError if there is none."""
        if not self.experiment_exists(experiment_name):
            raise SpecError.one(f'no experiment "{experiment_name}" is saved', at=self.experiment_file(experiment_name))
        spec: ExperimentSpec = ExperimentSpec.load_file(self.experiment_file(experiment_name))
        return spec

    def save_experiment(self, experiment: ExperimentSpec) -> str:
        """Write the experiment and return the path of its file."""
        file = self.experiment_file(experiment.name)
        write_file(Path(file), experiment.dump_yaml_str().encode())
        return file


def clean_images(
    fnmatch_strs: str | Iterable[str],
    force: bool = False,
    force_prune_containers: bool = False,
    force_prune_images: bool = False,
) -> list[str]:
    """Remove the local images whose `repository:tag` matches a pattern (`surreal:*`); return their names.

    Each step asks for confirmation unless forced. Raises UsageError without a terminal.
    """
    patterns = [fnmatch_strs] if isinstance(fnmatch_strs, str) else list(fnmatch_strs)
    _agreed(force_prune_containers, "Remove all containers that have stopped?", ["docker", "container", "prune", "-f"])
    listed = run(["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]).text.splitlines()
    wanted = [name for name in listed if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if wanted and not _agreed(force, f"Remove {', '.join(wanted)}?", ["docker", "rmi", *wanted]):
        wanted = []
    _agreed(force_prune_images, "Remove all images without a name?", ["docker", "image", "prune", "-f"])
    return wanted


def _agreed(force: bool, question: str, argv: list[str]) -> bool:
    """Run the command if it is forced or confirmed; return True if it ran."""
    if not force:
        if not sys.stdin.isatty():
            raise UsageError(f"{question} This question needs a terminal", next="to do it without one: force=True")
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return False
    run(argv, timeout_s=600)
    return True


def _check_entry(entry: Mapping[str, Any], path: str, names: list[Any]) -> None:
    for key in ("name", "path"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise SpecError.one(f"a folder of the build context needs a {key}", f"{path}.{key}")
    name = entry["name"]
    if names.count(name) > 1:
        raise SpecError.one(f'two folders of the build context have the name "{name}"', f"{path}.name", "rename one")
    if name.startswith("/") or ".." in Path(name).parts:
        raise SpecError.one(f'"{name}" leads out of the build context', f"{path}.name")
