"""Calls of helm, kubectl and the chart tools against the test cluster; a failure shows their complete output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.tools.modules import module_folder
from tests.waiting import eventually

# `kubectl wait` fails on a definition that has no conditions yet, as right after it was applied.
_ESTABLISHED = '{.status.conditions[?(@.type=="Established")].status}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A program's output; `code` is its exit status."""

    code: int
    out: str
    err: str


Symph = Callable[..., Output]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Programs by path, with the environment that leads them to the cluster."""

    kubeconfig: Path
    home: Path
    kubectl_path: Path

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 90) -> str:
        """Return kubectl's output; raise AssertionError if it fails."""
        return self.run([str(self.kubectl_path), *arguments], stdin=stdin, timeout_s=timeout_s).out

    def symph(
        self, *words: str, timeout_s: float = 120, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Output:
        """Run one command line of `symph`, with any exit status; `env` are further variables."""
        return self.try_run(
            [sys.executable, "-m", "symphony_charts", *words], timeout_s=timeout_s, cwd=cwd, more_env=env
        )

    def get(self, *words: str) -> dict[str, Any]:
        """Return an object of the cluster; {} if it is not there."""
        done = self.try_run([str(self.kubectl_path), "get", *words, "-o", "json"])
        return dict(json.loads(done.out)) if done.code == 0 else {}

    def apply(self, *objects: Mapping[str, object], namespace: str | None = None) -> None:
        # Server-side: some definitions exceed the size limit of an annotation.
        where = ("-n", namespace) if namespace else ()
        words = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        self.kubectl(*where, *words, stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def define(self, module: str, pattern: str) -> None:
        """Install the definitions in these files of a Go module, and wait until they are served."""
        for path in sorted(module_folder(module).glob(pattern)):
            words = ("apply", "--server-side", "--force-conflicts", "-o", "name", "-f", str(path))
            self.establish(*(made.rpartition("/")[2] for made in self.kubectl(*words).split()))

    def establish(self, *names: str) -> None:
        """Wait until the API server serves these definitions, by their full names."""
        for name in names:
            eventually(partial(self._is_established, name), 60, f"{name} is not established")

    def _is_established(self, name: str) -> bool:
        argv = [str(self.kubectl_path), "get", f"crd/{name}", "-o", f"jsonpath={_ESTABLISHED}"]
        # It is served a moment after this condition is set.
        return self.try_run(argv).out == "True" and self.try_run([str(self.kubectl_path), "get", name]).code == 0

    def environment(self) -> Mapping[str, str]:
        """The environment of every program: of the user's only PATH, behind this interpreter's own folder."""
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "LC_ALL": "C",
            "HELM_CACHE_HOME": str(self.home / "helm-cache"),
            "HELM_CONFIG_HOME": str(self.home / "helm-config"),
            "HELM_DATA_HOME": str(self.home / "helm-data"),
        }

    def try_run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | None = None,
        timeout_s: float = 90,
        cwd: Path | None = None,
        more_env: Mapping[str, str] | None = None,
    ) -> Output:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**self.environment(), **(more_env or {})},
            cwd=cwd,
            check=False,
        )
        return Output(code=done.returncode, out=done.stdout, err=done.stderr)

    def run(self, argv: Sequence[str], **options: Any) -> Output:
        """Return a program's output, with the options of `try_run`; raise AssertionError with it on failure."""
        done = self.try_run(argv, **options)
        assert done.code == 0, f"{' '.join(map(str, argv))}\nexit {done.code}\n{done.out}\n{done.err}"
        return done
