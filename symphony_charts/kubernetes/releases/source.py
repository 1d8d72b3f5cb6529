"""`chart_of` makes a chart on disk, which helm can read, of a spec file, a chart's folder or its archive."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart, Release
from symphony_charts.chart.build.faults import unsealed
from symphony_charts.chart.release import merge
from symphony_charts.errors import NotFound, SpecError, UsageError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.package import template
from symphony_charts.prepare import Prepared, judge, prepare
from symphony_charts.secrets.files import read_secret_files, secret_object
from symphony_charts.spec import files as specfile
from symphony_charts.spec.sources import key_of
from symphony_charts.system.files import write_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSource:
    """A chart on disk, and what is needed to push the secrets of its release.

    `name` is the default name of the release; `namespace` is empty if the experiment sets none. `built` is the chart
    with its default values, None for a chart that was packaged before: its secrets are pushed apart from it. The secret
    files count from `folder`.
    """

    name: str
    chart: Path
    namespace: str = ""
    built: BuiltChart | None = None
    folder: Path = Path()

    def secret(self, release: str, namespace: str, values: Mapping[str, object] | None = None) -> dict[str, Any] | None:
        """Return the Secret to push for a release with `values` over the chart's own; None if it needs none.

        It needs none without secrets, if the chart makes the Secret, or if the values name an existing one.

        Raises:
            SpecError: Secret files cannot be read, or secrets that must be sealed are not; they are never pushed in
                plain text.
        """
        if self.built is None or not self.built.experiment.secrets:
            return None
        experiment = self.built.experiment
        source = experiment.secret_source.source
        complete = merge(self.built.values, values or {})
        chosen = sub(complete, "secrets")
        missing = unsealed(chosen, map(key_of, experiment.secrets)) if source == "sealed" else []
        if missing:
            what = f"the experiment seals its secrets, and nothing is sealed for {', '.join(missing)}"
            step = f"symph secrets seal SPEC -n {namespace} --cert cluster > sealed.yaml, then -f sealed.yaml"
            raise SpecError.one(what, "secrets.encryptedData", next=step)
        if source in ("sealed", "external") or chosen.get("name"):
            return None
        name = self.built.secret_name(complete, Release(name=release, namespace=namespace))
        contents = read_secret_files(experiment, self.folder)
        return dict(secret_object(experiment, contents, name, namespace, release=release))


@contextmanager
def chart_of(
    source: str,
    values: Values | None = None,
    pools: Sequence[str] = (),
    *,
    changes: Sequence[str] = (),
    force: bool = False,
) -> Iterator[ReleaseSource]:
    """The chart of `source`: a spec file, a chart's folder or an archive, to be installed with `values`.

    A spec is judged with them as `symph package` does, and its chart is that without them: helm is given the values.
    `changes` are made to the spec before it is read. Raises NotFound, SpecError, UsageError, and the errors of
    `Verdict.refuse`.
    """
    path = Path(source).expanduser()
    if path.is_dir() or path.suffix == ".tgz":
        if changes:
            raise UsageError("--spec-set changes a spec, and a chart has none", source, "package its spec again")
        yield ReleaseSource(name=_chart_name(path), chart=path.absolute())
        return
    spec = specfile.read(path, changes)
    prepared = prepare(spec, overrides=values, pools=pools, force=True)
    judge(spec, prepared, prepared.chart(template(), spec.lock.version), is_forced=force).refuse()
    with prepared_chart(prepared, path.absolute().parent, spec.lock.version) as chart:
        yield chart


@contextmanager
def prepared_chart(
    prepared: Prepared, folder: Path, version: str | None = None, *, with_overrides: bool = False
) -> Iterator[ReleaseSource]:
    """Write the prepared chart to a temporary folder; the experiment's secret files count from `folder`."""
    chart = prepared.chart(template(), version, with_overrides=with_overrides)
    with tempfile.TemporaryDirectory(prefix="symph-release-") as parent:
        root = Path(parent) / chart.name
        write_tree(root, chart.packed)
        namespace = prepared.experiment.namespace or ""
        built = prepared.own.chart if with_overrides else prepared.built
        yield ReleaseSource(name=chart.name, chart=root, namespace=namespace, built=built, folder=folder)


def _chart_name(path: Path) -> str:
    """Return the name in a chart's Chart.yaml; raises NotFound or SpecError."""
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
