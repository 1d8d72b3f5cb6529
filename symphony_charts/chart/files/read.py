"""A packaged chart is read from disk: its archive, and what its Chart.yaml says."""

from __future__ import annotations

import io
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.chart.files import archive
from symphony_charts.chart.files.ownership import RECORD, is_users
from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load

__all__ = ["PackedChart", "read_chart"]

_MOST_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedChart:
    """A chart's archive under its file name, its metadata, its files by path, and the ``.prov`` beside it, if any."""

    file_name: str
    metadata: dict[str, object]
    archive: bytes
    files: dict[str, bytes]
    provenance: bytes | None = None

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def version(self) -> str:
        return str(self.metadata["version"])


def read_chart(path: Path) -> PackedChart:
    """The chart in the archive or folder `path`. Raises SpecError for what is no chart, or not there."""
    if path.is_dir():
        return _from_folder(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"no chart at {path}: {error.strerror}"
        raise SpecError.one(what, str(path), "make one: symph package SPEC") from error
    files = _unpacked(path, data)
    prov = path.with_name(f"{path.name}.prov")
    provenance = prov.read_bytes() if prov.is_file() else None
    metadata = _metadata(files, str(path))
    return PackedChart(file_name=path.name, metadata=metadata, archive=data, files=files, provenance=provenance)


def _from_folder(folder: Path) -> PackedChart:
    every = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    # The chart's own .helmignore skips the rest.
    left_out = {name for name in every if name.startswith(("ci/", ".git/")) or name.endswith((".tgz", ".orig", ".swp"))}
    left_out |= {RECORD, *(name for name in every if is_users(name) and not name.startswith("templates/"))}
    files = {name: path.read_bytes() for name, path in every.items() if name not in left_out}
    metadata = _metadata(files, str(folder))
    name = str(metadata["name"])
    file_name = f"{name}-{metadata['version']}.tgz"
    return PackedChart(file_name=file_name, metadata=metadata, archive=archive.pack(name, files), files=files)


def _unpacked(path: Path, data: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as packed:
            for member in packed:
                stream = packed.extractfile(member) if member.isfile() else None
                if stream is not None and sum(map(len, files.values())) < _MOST_BYTES:
                    files[member.name.partition("/")[2]] = stream.read(_MOST_BYTES)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise SpecError.one("this is no chart's archive", at=str(path), next="make one: symph package SPEC") from error
    return files


def _metadata(files: dict[str, bytes], at: str) -> dict[str, object]:
    text = files.get("Chart.yaml")
    data = load(text.decode("utf-8", "replace")) if text is not None else None
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not isinstance(data.get("version"), str):
        raise SpecError.one(
            "there is no Chart.yaml with a name and a version", at=at, next="make one: symph package SPEC"
        )
    return data
