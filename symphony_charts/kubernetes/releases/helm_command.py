"""`HelmCommand` runs helm for pyhelm3: an argument list, no shell, a deadline, no credential that others can read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import semver
from pyhelm3 import Command, errors

from symphony_charts.kubernetes.releases.helm_program import find_helm
from symphony_charts.system.subprocess_runner import Completed, run

__all__ = ["HelmCommand", "Target"]

# What a helm that was told to stop needs to write down that it did not finish.
_GRACE_S = 10.0
# Beyond helm's own deadline: starting, reading the chart, answering.
_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster as kubeconfig files name it; None means the user's own choice ($KUBECONFIG, the current context)."""

    kubeconfig: Path | None = None
    context: str | None = None


class HelmCommand(Command):  # type: ignore[misc]  # pyhelm3 ships no types
    """pyhelm3's Command without its shell: `run` starts helm through the package's one process runner.

    The coroutines never wait for anything but helm itself, so that they end in one step and Ctrl-C reaches them.
    """

    def __init__(
        self,
        target: Target,
        *,
        timeout_s: float = 300.0,
        program: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.program = program or find_helm()
        super().__init__(executable=self.program, default_timeout=f"{timeout_s:g}s")
        self._target = target
        self._more_env = dict(env or {})
        self._limit_s = timeout_s

    async def run(self, command: Sequence[object], input: bytes | None = None) -> bytes:
        """stdout of helm; raises pyhelm3's class of error, whose cause is the ToolFailed that says everything."""
        # A word of the user's cannot become a flag: the names that reach this place begin with a letter or digit.
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
            raise _class_of(ended.error_text)(ended.status, ended.stdout, ended.stderr) from _failure(ended)
        return ended.stdout

    def client_version(self) -> semver.Version:
        """helm's version."""
        ended = run([self.program, "version", "--template", "{{ .Version }}"], env=self._env(), timeout_s=20)
        return semver.Version.parse(ended.text.strip().removeprefix("v"))

    def _env(self) -> dict[str, str | None]:
        """Return the cluster in variables, since an argument list is visible to every user of the machine.

        helm's own variables of that kind are taken away: they could name another cluster than kubeconfig does, which
        is the one that objects are checked on.
        """
        removed: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HELM_KUBE")}
        chosen: dict[str, str | None] = {}
        if self._target.kubeconfig is not None:
            chosen["KUBECONFIG"] = str(self._target.kubeconfig)
        if self._target.context is not None:
            chosen["HELM_KUBECONTEXT"] = self._target.context
        return {**removed, "HELM_NO_PLUGINS": "1", **self._more_env, **chosen}


def _repaired(document: bytes | None) -> bytes | None:
    """Values as helm reads them right: no escaped surrogates, which it refuses; a final newline.

    helm before 4.3 silently drops JSON of exactly 4096 bytes, or a multiple, that lacks one.
    """
    if document is None:
        return None
    return (json.dumps(json.loads(document), ensure_ascii=False) + "\n").encode()


def _failure(ended: Completed) -> BaseException:
    lines = ended.error_text.strip().splitlines()
    first = next((line for line in lines if line.startswith("Error: ")), lines[-1] if lines else "")
    what = first.removeprefix("Error: ") or f"helm failed with exit status {ended.status}"
    return ended.failure(what)


def _class_of(stderr: str) -> type[errors.Error]:
    low = stderr.lower()
    kind: type[errors.Error] = errors.Error
    if "release: not found" in low:
        kind = errors.ReleaseNotFoundError
    elif "already exists" in low or "cannot be imported into the current release" in low:
        kind = errors.ResourceAlreadyExistsError
    elif any(text in low for text in ("failed to render chart", "execution error", "values don't meet the spec")):
        kind = errors.FailedToRenderChartError
    return kind
