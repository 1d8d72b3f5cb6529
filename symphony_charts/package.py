"""Turn a spec file into a chart folder and an archive: read the folder, choose the version, write the changes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.chart.archive import ValuesChange, compare_values, next_version
from symphony_charts.chart.files import Chart, ChartTemplate
from symphony_charts.chart.folder import RECORD, WritePlan, is_users, plan_write
from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.formats.names import repository_fault
from symphony_charts.formats.yaml_read import load
from symphony_charts.prepare import Prepared, Verdict, judge
from symphony_charts.spec.data import Lock, render
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.pods import pins_of
from symphony_charts.system import package_data
from symphony_charts.system.files import write_file
from symphony_charts.system.git.program import check_out_volume

# A revision never looks like a host: `git@example.org:x.git` has none.
_PINNED = re.compile(r"(?P<url>.+[/:].+)@(?P<revision>[A-Za-z0-9][A-Za-z0-9._/-]*)")
_NO_CONTENT = frozenset((".git", "__pycache__"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """A chart ready to be written to `folder` and `archive_path`, with its lock file and its `verdict`.

    `last` is the previous version, None for the first one; `change` is the change of values, None if nothing changed.
    """

    spec: SpecFile
    prepared: Prepared
    chart: Chart
    verdict: Verdict
    last: str | None
    change: ValuesChange | None
    folder: Path
    plan: WritePlan
    lock: str

    @property
    def archive_path(self) -> Path:
        return self.folder.parent / f"{self.chart.name}-{self.chart.version}.tgz"


def template(fork: str = "") -> ChartTemplate:
    """Return the built-in chart template, or its `fork`: a folder, or ``URL@REVISION`` of a Git repository.

    Only its files are read; its hooks do not run. Raises SpecError for an invalid template, ToolFailed if git fails.
    """
    if not fork:
        return ChartTemplate(package_data.folder("chart-template"))
    folder = Path(fork).expanduser()
    if folder.is_dir():
        return _fork_in(folder, fork)
    match = _PINNED.fullmatch(fork)
    if match is None:
        step = "give a folder, or a Git repository with its tag or commit: https://example.org/charts.git@v1"
        raise SpecError.one(f'no template "{fork}"', next=step)
    url, revision = match["url"], match["revision"]
    fault = repository_fault(url, "--template")
    if fault:
        raise SpecError([fault])
    with tempfile.TemporaryDirectory(prefix="symph-template-") as scratch:
        check_out_volume(url, revision, Path(scratch))
        return _fork_in(Path(scratch), fork)


def _fork_in(folder: Path, named: str) -> ChartTemplate:
    root = next(
        (place for place in (folder, folder / "chart-template") if (place / "cookiecutter.json").is_file()), None
    )
    if root is None:
        step = "a template is a folder with a cookiecutter.json, such as chart-template/ of symphony-charts"
        raise SpecError.one(f'no cookiecutter.json in "{named}"', next=step)
    files: dict[str, bytes] = {}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if _NO_CONTENT & set(inside.parts):
            continue
        if path.is_symlink():
            what = f'the template "{named}" holds a link, {inside}, which could lead out of it'
            raise SpecError.one(what, next="put the file itself there")
        if path.is_file():
            files[inside.as_posix()] = path.read_bytes()
    return ChartTemplate(files)


def package(
    prepared: Prepared,
    spec: SpecFile,
    dest: Path,
    filled: ChartTemplate,
    *,
    version: str | None = None,
    is_forced: bool = False,
) -> Packaged:
    """Return the chart of `spec`, `prepared`, as it will be below `dest`; nothing is written.

    The version is the last one if the content is the same, else the next by the kind of change. Raises SpecError for a
    spec that cannot be packaged, Conflict if a generated file was edited, and the errors of `Verdict.refuse`; with
    `is_forced` a group that cannot be scheduled is accepted.
    """
    folder = dest / prepared.experiment.name
    present = _read_folder(folder)
    extra = {path: content for path, content in present.items() if path.startswith("templates/extra-")}
    chart = prepared.chart(filled, version or spec.lock.version, extra)
    change = _change(spec.lock, chart, present)
    if version is None and change is not None and spec.lock.version is not None:
        chart = chart.with_version(next_version(spec.lock.version, change))
    verdict = judge(spec, prepared, chart, is_forced=is_forced)
    verdict.refuse()
    ours = {path: content for path, content in chart.files.items() if not is_users(path)}
    lock = Lock(ports=pins_of(prepared.services), version=chart.version, digest=chart.digest)
    return Packaged(
        spec=spec,
        prepared=prepared,
        chart=chart,
        verdict=verdict,
        last=spec.lock.version,
        change=change,
        folder=folder,
        plan=plan_write(ours, present, str(folder)),
        lock=render(lock),
    )


def write(packaged: Packaged) -> int:
    """Write the changes and return the number of changed files (0 on a second run)."""
    if packaged.folder.exists():
        touched = _update(packaged.folder, packaged.plan)
    else:
        touched = _create(packaged.folder, packaged.plan.writes)
    touched += write_file(packaged.archive_path, packaged.chart.archive)
    touched += write_file(packaged.spec.lock_path, packaged.lock.encode())
    return touched


def _create(folder: Path, files: Mapping[str, bytes]) -> int:
    """Create a new folder completely: write it beside its place and rename it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
            made = Path(beside) / folder.name
            for parent in sorted({made / Path(path).parent for path in files}):
                parent.mkdir(parents=True, exist_ok=True)
            for path, content in files.items():
                (made / path).write_bytes(content)
            made.rename(folder)
    except OSError as error:
        raise ToolFailed(
            f"cannot write {folder}: {error.strerror}", str(folder), "-d FOLDER names another place"
        ) from error
    return len(files)


def _update(folder: Path, plan: WritePlan) -> int:
    for path in plan.removes:
        (folder / path).unlink(missing_ok=True)
    # Write the record last: if writing stops half-way, the next run finds only generated files, which it may replace.
    ordered = sorted(plan.writes.items(), key=lambda item: item[0] == RECORD)
    return len(plan.removes) + sum(write_file(folder / path, content) for path, content in ordered)


def _change(lock: Lock, chart: Chart, present: Mapping[str, bytes]) -> ValuesChange | None:
    """Return how the content differs from the lock file; None if it does not, or nothing is locked."""
    if lock.version is None or lock.digest == chart.digest:
        return None
    if f'version: "{lock.version}"'.encode() not in present.get("Chart.yaml", b"").splitlines():
        return ValuesChange()  # the last version is not here to compare with
    try:
        before = load(present.get("values.yaml", b"{}").decode())
    except (SpecError, UnicodeDecodeError):
        return ValuesChange()  # edited, which is a conflict
    return compare_values(before if isinstance(before, dict) else {}, chart.values)


def _read_folder(folder: Path) -> dict[str, bytes]:
    try:
        return {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }
    except OSError as error:
        raise ToolFailed(f"cannot read {folder}: {error.strerror}", at=str(folder)) from error
