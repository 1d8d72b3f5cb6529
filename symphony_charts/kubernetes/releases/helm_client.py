"""`HelmReleases` reads and changes the releases that helm keeps, by pyhelm3's Client over our `HelmCommand`."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from pyhelm3 import Client, errors

from symphony_charts.errors import Conflict, NotFound, Problem, SpecError, SymphError, ToolFailed, ToolMissing
from symphony_charts.kubernetes.releases.helm_command import HelmCommand, Target
from symphony_charts.kubernetes.releases.helm_program import OLDEST

__all__ = ["HelmReleases", "Revision", "Target"]

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?")
# helm 4; helm 3 writes `- groups.p0.replicas: Invalid type...`
_PLACE = re.compile(r"at '([^']*)': (.*)")
_T = TypeVar("_T")
Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of a release; `status` is helm's word (deployed, superseded, failed, pending-upgrade...)."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    updated: str
    description: str = ""
    notes: str = ""


class HelmReleases:
    """The releases of one cluster. Raises ToolMissing without a helm that is new enough."""

    def __init__(
        self, target: Target | None = None, *, timeout_s: float = 300.0, env: Mapping[str, str] | None = None
    ) -> None:
        self._command = HelmCommand(target or Target(), timeout_s=timeout_s, env=env)
        # pyhelm3 asserts that its program exists and asks its version, both through our command.
        try:
            self._client = Client(self._command, executable=self._command.program)
            installed = self._client.version
        except ValueError as error:
            what = "this helm does not say which version it is"
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
        """Install the release, or upgrade it if it is there, with exactly these values over the chart's own.

        What a failed upgrade has made is removed again. Nothing is waited for but `hooks`.
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
                # Values are the experiment: those of an earlier revision must not shine through.
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
            updated=_iso(applied.updated),
            description=applied.description or "",
            notes=applied.notes or "",
        )

    def render(
        self, name: str, chart: Path, values: Mapping[str, object], *, namespace: str, is_upgrade: bool = False
    ) -> list[Object]:
        """Return the objects that `apply` would send, hooks left out."""
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
        """Return the newest revision, whatever became of it; None if there is no such release."""
        revisions = self.history(name, namespace)
        return revisions[0] if revisions else None

    def history(self, name: str, namespace: str) -> list[Revision]:
        """Return all revisions that helm remembers, the newest first; empty if there is no such release."""
        try:
            items = self._done(name, self._command.history(name, namespace=namespace))
        except NotFound:
            return []
        revisions = [_revision(item, name, namespace) for item in items]
        return sorted(revisions, key=lambda revision: -revision.revision)

    def manifest(self, name: str, namespace: str, revision: int | None = None) -> list[Object]:
        """Return the objects of a revision (None: the newest), as the chart gave them."""
        return _objects(self._done(name, self._command.get_resources(name, namespace=namespace, revision=revision)))

    def notes(self, name: str, namespace: str) -> str:
        status = self._done(name, self._command.status(name, namespace=namespace))
        return str(status["info"].get("notes") or "")

    def rollback(self, name: str, namespace: str, revision: int, *, hooks: bool = True) -> None:
        """Make a new revision out of an old one. Nothing is waited for but `hooks`."""
        call = self._command.rollback(name, revision, namespace=namespace, cleanup_on_fail=True, no_hooks=not hooks)
        self._done(name, call)

    def uninstall(self, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """Remove a release and its objects. Nothing is waited for."""
        self._done(name, self._command.uninstall(name, namespace=namespace, keep_history=keep_history))

    def _done(self, name: str, call: Coroutine[Any, Any, _T]) -> _T:
        """Return the result of one of pyhelm3's calls, whose coroutines never wait here; its errors become ours."""
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
        return NotFound(f'there is no release "{name}"', next="symph status lists the releases; -n names a namespace")
    if isinstance(error, errors.ResourceAlreadyExistsError):
        return Conflict(failed.what, next="it belongs to something else: choose another release name or namespace")
    if isinstance(error, errors.FailedToRenderChartError):
        return SpecError(_faults(failed))
    stderr = failed.stderr.lower()
    if "another operation" in stderr:
        what = f'helm is at work on "{name}", or was stopped in the middle of it'
        return Conflict(what, next=f"wait for it, or mend it: symph rollback {name}, symph uninstall {name}")
    if "kubernetes cluster unreachable" in stderr or "connection refused" in stderr:
        failed.next = "check the cluster: kubectl cluster-info, --context, $KUBECONFIG"
    return failed


def _faults(failed: ToolFailed) -> list[Problem]:
    next_step = "change --set or --values; symph package makes a chart of other values"
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
    return Revision(
        name=name,
        namespace=namespace,
        revision=int(item["revision"]),
        status=str(item["status"]),
        chart=str(item["chart"]),
        updated=_clock(str(item["updated"])),
        description=str(item.get("description", "")),
    )


def _clock(text: str) -> str:
    """helm's two ways to write a time (`list` prints Go's own form), in whoever's zone, as ISO 8601 in UTC."""
    match = _TIME.match(text)
    if match is None:
        return text
    zone = (match[3] or "+0000").replace(":", "").replace("Z", "+0000")
    return _iso(datetime.strptime(f"{match[1]} {match[2]} {zone}", "%Y-%m-%d %H:%M:%S %z"))


def _iso(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _objects(documents: Iterable[object]) -> list[Object]:
    return [document for document in documents if isinstance(document, dict) and document.get("kind")]
