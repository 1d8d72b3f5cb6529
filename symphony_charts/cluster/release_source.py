"""What a release is made of: a spec file, a chart's folder or its archive, as a chart on disk that helm can read."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.adapters import specfile
from symphony_charts.adapters.files import write_tree
from symphony_charts.chart.assemble import Release
from symphony_charts.chart.names import fullname, join
from symphony_charts.chart.package import build_chart
from symphony_charts.chart.version import FIRST_VERSION
from symphony_charts.cluster.packaging import template
from symphony_charts.cluster.pools import place
from symphony_charts.cluster.secret_files import read_secret_files
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.network.services import allocate
from symphony_charts.placement.assign import apply
from symphony_charts.secrets.existing import secret_object
from symphony_charts.spec.check import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.yaml_text import load

__all__ = ["ReleaseSource", "chart_of", "experiment_chart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSource:
    """A chart on disk, and what its experiment says about the release.

    `name` is the usual name of the release, `namespace` is empty where nothing says it. `experiment` is None for a
    chart that was packaged before: its secrets have been pushed by whoever packaged it.
    """

    name: str
    chart: Path
    namespace: str = ""
    experiment: Experiment | None = None
    folder: Path = Path()

    def secret(self, release: str, namespace: str, values: Mapping[str, object] | None = None) -> dict[str, Any] | None:
        """The Secret that the release's pods will look for under these `values`, None where nobody is to push one.

        That is so where the experiment declares none, where an external store makes it, and where the values bring it
        sealed or name another. Raises SpecError with every file that cannot be read.
        """
        given = (values or {}).get("secrets")
        chosen = given if isinstance(given, dict) else {}
        if self.experiment is None or not self.experiment.secrets:
            return None
        if self.experiment.secret_source.source == "external" or chosen.get("encryptedData") or chosen.get("name"):
            return None
        at = Release(name=release, chart_name=self.name)
        name = join(fullname(dict(values or {}), at), "secrets", 63)
        return dict(secret_object(self.experiment, read_secret_files(self.experiment, self.folder), name, namespace))


@contextmanager
def chart_of(source: str, pools: Sequence[str] = (), *, force: bool = False) -> Iterator[ReleaseSource]:
    """The chart of `source`: a spec file, a chart's folder or an archive.

    A spec is placed on `pools` as `symph package` does. Raises NotFound, SpecError, PlacementError.
    """
    path = Path(source).expanduser()
    if path.is_dir() or path.suffix == ".tgz":
        yield ReleaseSource(name=_chart_name(path), chart=path.absolute())
        return
    spec, _fit = place(specfile.read(path), pools, force=force)
    with experiment_chart(spec.experiment, spec.pins, path.absolute().parent, spec.lock.version) as made:
        yield made


@contextmanager
def experiment_chart(
    experiment: Experiment, pins: Mapping[str, int], folder: Path, version: str | None = None
) -> Iterator[ReleaseSource]:
    """The chart of a finished experiment, in a folder that is gone afterwards; its files count from `folder`."""
    settled, _ = apply(finish(experiment, for_cluster=True), None)
    chart = build_chart(settled, allocate(settled, pins), version or FIRST_VERSION, template())
    with tempfile.TemporaryDirectory(prefix="symph-release-") as place_:
        root = Path(place_) / chart.name
        write_tree(root, chart.packed)
        yield ReleaseSource(
            name=chart.name, chart=root, namespace=settled.namespace or "", experiment=settled, folder=folder
        )


def _chart_name(path: Path) -> str:
    """The name in a chart's Chart.yaml; raises NotFound or SpecError."""
    try:
        data = load(_chart_yaml(path))
    except FileNotFoundError as error:
        next_step = "give a spec file, a chart's folder or a .tgz archive"
        raise NotFound(f"{path} holds no chart", next=next_step) from error
    except (OSError, tarfile.TarError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the chart: {error}", at=str(path)) from error
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str) or not name:
        raise SpecError.one("Chart.yaml has no name", "name", at=str(path))
    return name


def _chart_yaml(path: Path) -> str:
    if path.is_dir():
        return (path / "Chart.yaml").read_text(encoding="utf-8")
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.count("/") == 1 and member.name.endswith("/Chart.yaml"):
                file = archive.extractfile(member)
                return file.read().decode() if file else ""
    raise FileNotFoundError(str(path))
