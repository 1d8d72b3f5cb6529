"""`chart_of` makes a chart on disk, which helm can read, of a spec file, a chart's folder or its archive."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.chart.render.assemble import Release
from symphony_charts.chart.render.names import fullname, join
from symphony_charts.chart.render.sealing import unsealed
from symphony_charts.chart.render.values import Values
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_text import load
from symphony_charts.package import template
from symphony_charts.prepare import Prepared, prepare
from symphony_charts.secrets.existing import secret_object
from symphony_charts.secrets.files import read_secret_files
from symphony_charts.spec import files as specfile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import key_of
from symphony_charts.system.files import write_tree

__all__ = ["ReleaseSource", "chart_of", "prepared_chart"]


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
        sealed or name another. Raises SpecError with every file that cannot be read, and where secrets that are to be
        sealed are not: they are never pushed in the clear.
        """
        chosen = sub(values or {}, "secrets")
        if self.experiment is None or not self.experiment.secrets:
            return None
        source = chosen.get("source") or self.experiment.secret_source.source
        sealed = sub(chosen, "encryptedData")
        lacking = unsealed(chosen, map(key_of, self.experiment.secrets))
        if source == "sealed" and lacking:
            what = f"the secrets are to be sealed, and the values have nothing sealed for {', '.join(lacking)}"
            step = f"symph secrets seal SPEC -n {namespace} --cert cluster > sealed.yaml, then -f sealed.yaml"
            raise SpecError.one(what, "secrets.encryptedData", next=step)
        if source == "external" or sealed or chosen.get("name"):
            return None
        at = Release(name=release, chart_name=self.name)
        name = join(fullname(dict(values or {}), at), "secrets", 63)
        return dict(secret_object(self.experiment, read_secret_files(self.experiment, self.folder), name, namespace))


@contextmanager
def chart_of(
    source: str, values: Values | None = None, pools: Sequence[str] = (), *, force: bool = False
) -> Iterator[ReleaseSource]:
    """The chart of `source`: a spec file, a chart's folder or an archive, to be installed with `values`.

    A spec is judged with them as `symph package` does, and its chart is that without them: helm is given the values.
    Raises NotFound, SpecError, PlacementError.
    """
    path = Path(source).expanduser()
    if path.is_dir() or path.suffix == ".tgz":
        yield ReleaseSource(name=_chart_name(path), chart=path.absolute())
        return
    spec = specfile.read(path)
    prepared = prepare(spec, overrides=values, pools=pools, force=force)
    with prepared_chart(prepared, path.absolute().parent, spec.lock.version) as chart:
        yield chart


@contextmanager
def prepared_chart(prepared: Prepared, folder: Path, version: str | None = None) -> Iterator[ReleaseSource]:
    """The chart of what was prepared, without the overrides, in a folder that is gone afterwards.

    The experiment's own files count from `folder`.
    """
    chart = prepared.chart(template(), version, with_overrides=False)
    experiment = prepared.experiment
    with tempfile.TemporaryDirectory(prefix="symph-release-") as parent:
        root = Path(parent) / chart.name
        write_tree(root, chart.packed)
        yield ReleaseSource(
            name=chart.name, chart=root, namespace=experiment.namespace or "", experiment=experiment, folder=folder
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
