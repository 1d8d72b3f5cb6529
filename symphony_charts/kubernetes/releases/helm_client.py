"""Find helm, and install, upgrade and read releases with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import semver
import yaml
from pyhelm3 import Client, Command, errors

from symphony_charts.backend.status import time_text
from symphony_charts.errors import Conflict, NotFound, Problem, SpecError, SymphError, ToolFailed, ToolMissing
from symphony_charts.system.files import write_tree
from symphony_charts.system.subprocess_runner import Completed, run

# The oldest helm version whose releases we read and write.
OLDEST = "3.14.0"


def find_helm() -> str:
    """Return the helm to use: $HELM_BIN, else the one on PATH. Raises ToolMissing without one."""
    program = os.environ.get("HELM_BIN") or shutil.which("helm")
    if program and shutil.which(program) is None:
        raise ToolMissing("HELM_BIN is not a program", program, "unset it, or set it to the path of helm")
    if not program:
        raise ToolMissing(
            "helm is not installed", "", f"install helm {OLDEST} or newer; making and checking charts works without it"
        )
    return program


def template_chart(
    name: str,
    files: Mapping[str, bytes],
    release: str,
    *,
    namespace: str = "default",
    values: Mapping[str, object] | None = None,
) -> list[dict[str, object]]:
    """Return the objects that `helm template` prints for the chart of `files`, tests included."""
    program = find_helm()
    with _on_disk(name, files, values) as (folder, overlay):
        ended = run([program, "template", release, str(folder), "-n", namespace, "-f", str(overlay)], env=_env(folder))
    return _objects(yaml.load_all(ended.text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def lint_chart(name: str, files: Mapping[str, bytes]) -> Completed:
    """Run `helm lint --strict`; the caller checks the exit status."""
    program = find_helm()
    with _on_disk(name, files, None) as (folder, _):
        return run([program, "lint", "--strict", str(folder)], env=_env(folder), check=False)


@contextmanager
def _on_disk(name: str, files: Mapping[str, bytes], values: Mapping[str, object] | None) -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="symph-helm-") as folder:
        chart = Path(folder) / name
        write_tree(chart, files)
        overlay = Path(folder) / "values.json"
        # Helm before 4.3 drops JSON of exactly 4096 bytes without a final newline.
        overlay.write_text(json.dumps(values or {}, ensure_ascii=False) + "\n", encoding="utf-8")
        yield chart, overlay


def _env(folder: Path) -> dict[str, str]:
    """Return variables that put helm's own folders inside the temporary one, so that it touches nothing else."""
    home = folder.parent
    return {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}


# Time that helm needs after SIGTERM to record that it did not finish.
_GRACE_S = 10.0
# Added to helm's own deadline: for starting, reading the chart, answering.
_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster by kubeconfig file and context; None means the user's default ($KUBECONFIG, the current context)."""

    kubeconfig: Path | None = None
    context: str | None = None


class HelmCommand(Command):  # type: ignore[misc]  # pyhelm3 ships no types
    """pyhelm3's Command without its shell: `run` starts helm through the package's process runner.

    The coroutines wait for nothing but helm itself, so they finish in one step and Ctrl-C reaches them.
    """

    def __init__(self, target: Target, *, timeout_s: float = 300.0, env: Mapping[str, str] | None = None) -> None:
        self.program = find_helm()
        super().__init__(executable=self.program, default_timeout=f"{timeout_s:g}s")
        self._target = target
        self._more_env = env or {}
        self._limit_s = timeout_s

    async def run(self, command: Sequence[object], input: bytes | None = None) -> bytes:
        """Return helm's stdout; raises pyhelm3's error class, with the complete ToolFailed as its cause."""
        # A user's word cannot become a flag: the names that get here begin with a letter or digit.
        argv = [self.program, *(str(word) for word in command)]
        ended = run(
            argv,
            input=_repaired(input),
            env=self._env(),
            timeout_s=self._limit_s + _MARGIN_S,
            grace_s=_GRACE_S,
            check=False,
        )
        if ended.status:
            lines = ended.error_text.strip().splitlines()
            first = next((line for line in lines if line.startswith("Error: ")), lines[-1] if lines else "")
            what = first.removeprefix("Error: ") or f"helm failed with exit status {ended.status}"
            raise _class_of(ended.error_text)(ended.status, ended.stdout, ended.stderr) from ended.failure(what)
        return ended.stdout

    def client_version(self) -> semver.Version:
        ended = run([self.program, "version", "--template", "{{ .Version }}"], env=self._env(), timeout_s=20)
        return semver.Version.parse(ended.text.strip().removeprefix("v"))

    def _env(self) -> dict[str, str | None]:
        """Return variables that select the cluster, since every user of the machine can see argument lists.

        Helm's own variables for this are removed: they could select another cluster than the kubeconfig, while objects
        are checked on the kubeconfig's cluster.
        """
        env: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HELM_KUBE")}
        env |= {"HELM_NO_PLUGINS": "1", **self._more_env}
        if self._target.kubeconfig is not None:
            env["KUBECONFIG"] = str(self._target.kubeconfig)
        if self._target.context is not None:
            env["HELM_KUBECONTEXT"] = self._target.context
        return env


def _repaired(document: bytes | None) -> bytes | None:
    """Return values in a form that helm reads correctly: without escaped surrogates, with a final newline.

    Helm refuses escaped surrogates. Helm before 4.3 silently drops JSON of a multiple of 4096 bytes without the
    newline.
    """
    if document is None:
        return None
    return (json.dumps(json.loads(document), ensure_ascii=False) + "\n").encode()


def _class_of(stderr: str) -> type[errors.Error]:
    kinds: dict[str, type[errors.Error]] = {
        "release: not found": errors.ReleaseNotFoundError,
        "already exists": errors.ResourceAlreadyExistsError,
        "cannot be imported into the current release": errors.ResourceAlreadyExistsError,
        "failed to render chart": errors.FailedToRenderChartError,
        "execution error": errors.FailedToRenderChartError,
        "values don't meet the spec": errors.FailedToRenderChartError,
    }
    return next((kind for text, kind in kinds.items() if text in stderr.lower()), errors.Error)


# The form of helm 4; helm 3 writes `- groups.p0.replicas: Invalid type...`
_PLACE = re.compile(r"at '([^']*)': (.*)")
_T = TypeVar("_T")
Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of a release; `status` is helm's term (deployed, superseded, failed, pending-upgrade...)."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    updated: str
    description: str = ""
    notes: str = ""


class HelmReleases:
    """The releases of one cluster. Raises ToolMissing without a sufficiently new helm."""

    def __init__(
        self, target: Target | None = None, *, timeout_s: float = 300.0, env: Mapping[str, str] | None = None
    ) -> None:
        self._command = HelmCommand(target or Target(), timeout_s=timeout_s, env=env)
        # pyhelm3 asserts that its program exists and asks for its version, both through our command.
        try:
            self._client = Client(self._command, executable=self._command.program)
            installed = self._client.version
        except ValueError as error:
            what = "this helm does not print its version"
            raise ToolMissing(what, self._command.program, f"install helm {OLDEST} or newer") from error
        self.version = str(installed)
        if installed < type(installed).parse(OLDEST):
            raise ToolMissing(f"helm {self.version} is too old", self._command.program, f"install {OLDEST} or newer")

    def apply(
        self,
        name: str,
        chart: Path,
        values: Mapping[str, object],
        *,
        namespace: str,
        create_namespace: bool = False,
        description: str = "",
        hooks: bool = True,
    ) -> Revision:
        """Install or upgrade the release, with exactly these values over the chart's defaults.

        If an upgrade fails, its new objects are removed again. Waits only for `hooks`.
        """
        applied = self._done(
            name,
            self._client.install_or_upgrade_release(
                name,
                self._done(name, self._client.get_chart(chart)),
                dict(values),
                namespace=namespace,
                create_namespace=create_namespace,
                cleanup_on_fail=True,
                # The values define the experiment: values of an earlier revision must not remain.
                reset_values=True,
                description=description or None,
                no_hooks=not hooks,
            ),
        )
        chart_name = self._done(name, applied.chart_metadata())
        return Revision(
            name=name,
            namespace=namespace,
            revision=applied.revision,
            status=str(applied.status.value),
            chart=f"{chart_name.name}-{chart_name.version}",
            updated=time_text(applied.updated.timestamp()),
            description=applied.description or "",
            notes=applied.notes or "",
        )

    def render(
        self, name: str, chart: Path, values: Mapping[str, object], *, namespace: str, is_upgrade: bool = False
    ) -> list[Object]:
        """Return the objects that `apply` would send, without hooks."""
        ended = self._client.template_resources(
            self._done(name, self._client.get_chart(chart)),
            name,
            dict(values),
            namespace=namespace,
            no_hooks=True,
            is_upgrade=is_upgrade,
        )
        return _objects(self._done(name, ended))

    def current(self, name: str, namespace: str) -> Revision | None:
        """Return the newest revision in any status; None if there is no such release."""
        revisions = self.history(name, namespace)
        return revisions[0] if revisions else None

    def history(self, name: str, namespace: str) -> list[Revision]:
        """Return all revisions that helm remembers, newest first; empty if there is no such release."""
        try:
            items = self._done(name, self._command.history(name, namespace=namespace))
        except NotFound:
            return []
        revisions = [_revision(item, name, namespace) for item in items]
        return sorted(revisions, key=lambda revision: -revision.revision)

    def manifest(self, name: str, namespace: str, revision: int | None = None) -> list[Object]:
        """Return the objects of a revision (None: the newest) as rendered from the chart."""
        return _objects(self._done(name, self._command.get_resources(name, namespace=namespace, revision=revision)))

    def notes(self, name: str, namespace: str) -> str:
        status = self._done(name, self._command.status(name, namespace=namespace))
        return str(status["info"].get("notes") or "")

    def rollback(self, name: str, namespace: str, revision: int, *, hooks: bool = True) -> None:
        """Make a new revision from an old one. Waits only for `hooks`."""
        call = self._command.rollback(name, revision, namespace=namespace, cleanup_on_fail=True, no_hooks=not hooks)
        self._done(name, call)

    def uninstall(self, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """Remove a release and its objects without waiting."""
        self._done(name, self._command.uninstall(name, namespace=namespace, keep_history=keep_history))

    def _done(self, name: str, call: Coroutine[Any, Any, _T]) -> _T:
        """Return the result of a pyhelm3 call, whose coroutine never waits here; convert its errors to ours."""
        try:
            call.send(None)
        except StopIteration as ended:
            value: _T = ended.value
            return value
        except errors.Error as error:
            raise _ours(error, name) from error.__cause__
        raise AssertionError("pyhelm3 waits for something else than helm")


def _ours(error: errors.Error, name: str) -> SymphError:
    failed = error.__cause__
    if not isinstance(failed, ToolFailed):
        return ToolFailed(str(error))
    if isinstance(error, errors.ReleaseNotFoundError):
        return NotFound(
            f'the release "{name}" does not exist', next="list releases: symph status; another namespace: -n NAMESPACE"
        )
    if isinstance(error, errors.ResourceAlreadyExistsError):
        return Conflict(failed.what, next="another release owns it: choose another release name or namespace")
    if isinstance(error, errors.FailedToRenderChartError):
        return SpecError(_faults(failed))
    stderr = failed.stderr.lower()
    if "another operation" in stderr:
        what = f'another helm command is changing "{name}", or was interrupted'
        return Conflict(what, next=f"wait for it, or undo it: symph rollback {name}, symph uninstall {name}")
    if "kubernetes cluster unreachable" in stderr or "connection refused" in stderr:
        failed.next = "check the cluster: kubectl cluster-info, --context, $KUBECONFIG"
    return failed


def _faults(failed: ToolFailed) -> list[Problem]:
    next_step = "change --set or --values, or make a chart with other values: symph package"
    faults = []
    for line in failed.stderr.splitlines():
        message = line.strip().removeprefix("- ")
        match = _PLACE.match(message)
        if message == line.strip() or "'anyOf' failed" in message:
            continue
        path, what = (match[1].strip("/").replace("/", "."), match[2]) if match else ("values", message)
        faults.append(Problem(what=what, path=path, next=next_step))
    return faults or [Problem(what=failed.what, path="values", next=next_step)]


def _revision(item: Mapping[str, Any], name: str, namespace: str) -> Revision:
    updated = datetime.fromisoformat(re.sub(r"\.\d+", "", item["updated"]).replace("Z", "+00:00"))
    return Revision(
        name=name,
        namespace=namespace,
        revision=int(item["revision"]),
        status=str(item["status"]),
        chart=str(item["chart"]),
        updated=time_text(updated.timestamp()),
        description=str(item.get("description", "")),
    )


def _objects(documents: Iterable[object]) -> list[Object]:
    return [document for document in documents if isinstance(document, dict) and document.get("kind")]
