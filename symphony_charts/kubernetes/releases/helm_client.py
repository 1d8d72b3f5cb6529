"""Find helm, and install, upgrade and read releases with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from symphony_charts.errors import Conflict, NotFound, Problem, SpecError, SymphError, ToolFailed, ToolMissing
from symphony_charts.system.files import write_tree
from symphony_charts.system.subprocess_runner import Completed, run

# The oldest helm version whose releases we read and write.
OLDEST = "3.14.0"


def find_helm() -> str:
    """Return the helm to use: $HELM_BIN, else the one on PATH. Raises ToolMissing without one."""
    program = os.environ.get("HELM_BIN") or shutil.which("helm")
    if program and shutil.which(program) is None:
        raise ToolMissing("HELM_BIN names no program", program, "unset it, or let it name helm")
    if not program:
        raise ToolMissing(
            "helm is not installed", "", f"install helm {OLDEST} or newer; `symph` makes and checks charts without it"
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
    documents = yaml.load_all(ended.text, yaml.CSafeLoader)
    return [document for document in documents if isinstance(document, dict)]


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
        if not chart.is_dir():
            raise ToolFailed(f"cannot write the chart to {folder}")
        yield chart, overlay


def _env(folder: Path) -> dict[str, str]:
    """Return variables that put helm's own folders inside the temporary one, so that it touches nothing else."""
    home = folder.parent
    return {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}


# Time that helm needs after SIGTERM to record that it did not finish.
_GRACE_S = 10.0
# Added to helm's own deadline: for starting, reading the chart, answering.
_MARGIN_S = 30.0
_KEPT = ("--history-max", "10")


class _Loader(yaml.CSafeLoader):
    """Reads a plain ``=`` as text, as YAML 1.2 and helm do."""


_Loader.add_constructor("tag:yaml.org,2002:value", _Loader.construct_yaml_str)  # type: ignore[type-var]  # the stubs know no inheritance


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster by kubeconfig file and context; None means the user's default ($KUBECONFIG, the current context)."""

    kubeconfig: Path | None = None
    context: str | None = None


# The form of helm 4; helm 3 writes `- groups.p0.replicas: Invalid type...`
_PLACE = re.compile(r"at '([^']*)': (.*)")
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
        self._program = find_helm()
        self._timeout_s = timeout_s
        self._env = _env_of(target or Target(), env or {})
        self._refuse_old()

    def apply(
        self, name: str, chart: Path, values: Mapping[str, object], *, namespace: str, hooks: bool = True
    ) -> Revision:
        """Install or upgrade the release, with exactly these values over the chart's defaults.

        If an upgrade fails, its new objects are removed again. Waits only for `hooks`.
        """
        # The values define the experiment: --reset-values keeps none of an earlier revision.
        flags = ("--install", "--reset-values", "--cleanup-on-fail", *_KEPT, *self._limit, *_hooks(hooks))
        ended = self._run("upgrade", name, chart, *flags, "-o", "json", namespace=namespace, values=values)
        made = json.loads(ended.text)
        meta, info = made["chart"]["metadata"], made["info"]
        return Revision(
            name=name,
            namespace=namespace,
            revision=int(made["version"]),
            status=str(info["status"]),
            chart=f"{meta['name']}-{meta['version']}",
            updated=_iso(info["last_deployed"]),
            description=str(info.get("description") or ""),
            notes=str(info.get("notes") or ""),
        )

    def render(
        self, name: str, chart: Path, values: Mapping[str, object], *, namespace: str, is_upgrade: bool = False
    ) -> list[Object]:
        """Return the objects that `apply` would send, without hooks."""
        flags = ("--skip-crds", "--no-hooks", *(["--is-upgrade"] if is_upgrade else []))
        return _objects(self._run("template", name, chart, *flags, namespace=namespace, values=values))

    def current(self, name: str, namespace: str) -> Revision | None:
        """Return the newest revision in any status; None if there is no such release."""
        revisions = self.history(name, namespace)
        return revisions[0] if revisions else None

    def history(self, name: str, namespace: str) -> list[Revision]:
        """Return all revisions that helm remembers, newest first; empty if there is no such release."""
        try:
            ended = self._run("history", name, "-o", "json", "--max", "256", namespace=namespace)
        except NotFound:
            return []
        revisions = [_revision(item, name, namespace) for item in json.loads(ended.text)]
        return sorted(revisions, key=lambda revision: -revision.revision)

    def manifest(self, name: str, namespace: str, revision: int | None = None) -> list[Object]:
        """Return the objects of a revision (None: the newest) as rendered from the chart."""
        chosen = [] if revision is None else ["--revision", str(revision)]
        return _objects(self._run("get", "manifest", name, *chosen, namespace=namespace))

    def notes(self, name: str, namespace: str) -> str:
        status = json.loads(self._run("status", name, "-o", "json", namespace=namespace).text)
        return str(status["info"].get("notes") or "")

    def rollback(self, name: str, namespace: str, revision: int, *, hooks: bool = True) -> None:
        """Make a new revision from an old one. Waits only for `hooks`."""
        flags = ("--cleanup-on-fail", *_KEPT, *self._limit, *_hooks(hooks))
        self._run("rollback", name, str(revision), *flags, namespace=namespace)

    def uninstall(self, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """Remove a release and its objects without waiting."""
        kept = ["--keep-history"] if keep_history else []
        self._run("uninstall", name, *self._limit, *kept, namespace=namespace)

    @property
    def _limit(self) -> tuple[str, str]:
        return "--timeout", f"{self._timeout_s:g}s"

    def _run(
        self, verb: str, *words: str | Path, namespace: str, values: Mapping[str, object] | None = None
    ) -> Completed:
        """Run helm. Raises NotFound, Conflict and SpecError for the failures that are known, else ToolFailed."""
        # A user's word cannot become a flag: the names that get here begin with a letter or digit.
        argv = [self._program, verb, *map(str, words), "-n", namespace]
        fed = None
        if values is not None:
            argv += ["-f", "-"]
            # Helm refuses escaped surrogates. Helm before 4.3 silently drops JSON of a multiple of 4096 bytes without
            # the final newline.
            fed = json.dumps(values, ensure_ascii=False) + "\n"
        ended = run(
            argv, input=fed, env=self._env, timeout_s=self._timeout_s + _MARGIN_S, grace_s=_GRACE_S, check=False
        )
        if ended.status:
            name = str(words[1] if verb == "get" else words[0])
            raise _error_of(ended, name)
        return ended

    def _refuse_old(self) -> None:
        ended = run([self._program, "version", "--template", "{{ .Version }}"], env=self._env, timeout_s=20)
        found = re.match(r"v?(\d+)\.(\d+)\.\d+", ended.text.strip())
        if found is None:
            what = "this helm does not say which version it is"
            raise ToolMissing(what, self._program, f"install helm {OLDEST} or newer")
        if [int(found[1]), int(found[2])] < [int(part) for part in OLDEST.split(".")[:2]]:
            raise ToolMissing(f"helm {found[0]} is too old", self._program, f"install {OLDEST} or newer")


def _env_of(target: Target, more: Mapping[str, str]) -> dict[str, str | None]:
    """Return variables that select the cluster, since every user of the machine can see argument lists.

    Helm's own variables for this are removed: they could select another cluster than the kubeconfig, while objects are
    checked on the kubeconfig's cluster.
    """
    env: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HELM_KUBE")}
    env |= {"HELM_NO_PLUGINS": "1", **more}
    if target.kubeconfig is not None:
        env["KUBECONFIG"] = str(target.kubeconfig)
    if target.context is not None:
        env["HELM_KUBECONTEXT"] = target.context
    return env


def _hooks(hooks: bool) -> list[str]:
    return [] if hooks else ["--no-hooks"]


def _error_of(ended: Completed, name: str) -> SymphError:
    lines, stderr = ended.error_text.strip().splitlines(), ended.error_text.lower()
    first = next((line for line in lines if line.startswith("Error: ")), lines[-1] if lines else "")
    failed = ended.failure(first.removeprefix("Error: ") or f"helm failed with exit status {ended.status}")
    if "release: not found" in stderr:
        return NotFound(f'there is no release "{name}"', next="symph status lists the releases; -n names a namespace")
    if "already exists" in stderr or "cannot be imported into the current release" in stderr:
        return Conflict(failed.what, next="it belongs to something else: choose another release name or namespace")
    if any(text in stderr for text in ("failed to render chart", "execution error", "values don't meet the spec")):
        return SpecError(_faults(failed))
    if "another operation" in stderr:
        what = f'helm is at work on "{name}", or was stopped in the middle of it'
        return Conflict(what, next=f"wait for it, or undo it: symph rollback {name}, symph uninstall {name}")
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
        updated=_iso(item["updated"]),
        description=str(item.get("description", "")),
    )


def _iso(text: str) -> str:
    """Return a time of helm's in UTC and whole seconds."""
    moment = datetime.fromisoformat(re.sub(r"\.\d+", "", text).replace("Z", "+00:00"))
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _objects(ended: Completed) -> list[Object]:
    documents = yaml.load_all(ended.text, _Loader)  # a safe loader
    return [document for document in documents if isinstance(document, dict) and document.get("kind")]
