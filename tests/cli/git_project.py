"""A project with a spec and settings beside a real repository of charts, for tests of the Git verbs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main

SPEC = """\
name: rl
image: busybox:1.37.0
processes:
  learner: {command: [serve], binds: data, requests: {cpu: "1", memory: 1Gi}}
  agent: {command: [work], connects: data, replicas: 2, requests: {cpu: "1", memory: 1Gi}}
"""
SETTINGS = """\
team: ml
repository: {url: REPO, author: Ann <ann@example.org>}
environments:
  dev: {namespace: rl-dev}
  prod: {namespace: rl-prod, values: {groups: {agent: {replicas: 8}}}}
"""


POINTER = "envs/dev/ml/rl.symph-app.yaml"
INIT = ["gitops", "init", "--install-from", f"git+https://git.example.org/symphony-charts@{'0a' * 20}"]


class Project:
    """A folder with a spec and settings beside a bare repository."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.repo, self._capsys = folder, folder / "repo.git", capsys
        git("init", "-q", "--bare", "-b", "main", str(self.repo))
        self.write(SPEC)
        (folder / ".symph.yaml").write_text(SETTINGS.replace("REPO", str(self.repo)))

    def write(self, text: str) -> None:
        (self.folder / "rl.yaml").write_text(text)

    def symph(self, *words: str) -> tuple[int, str, str]:
        """Return exit status, stdout and stderr."""
        status = main(list(words))
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def json(self, *words: str) -> Any:
        status, out, err = self.symph(*words, "-o", "json")
        assert status == 0, err
        return json.loads(out)

    def publish(self, replicas: int, *words: str, env: str = "dev") -> tuple[int, str, str]:
        """Publish the spec with `replicas` replicas; each number gives different content."""
        self.write(SPEC.replace("replicas: 2", f"replicas: {replicas}"))
        return self.symph("publish", "rl.yaml", "--env", env, *words)

    def paths(self, branch: str = "main") -> list[str]:
        return git("-C", str(self.repo), "ls-tree", "-r", "--name-only", branch).splitlines()

    def clone(self) -> Path:
        checkout = self.folder / "checkout"
        git("clone", "-q", str(self.repo), str(checkout))
        return checkout

    def log(self) -> list[str]:
        return git("-C", str(self.repo), "log", "--format=%s", "main").splitlines()

    def show(self, path: str, branch: str = "main") -> str:
        return git("-C", str(self.repo), "show", f"{branch}:{path}")


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True, timeout=60).stdout


def with_secret(project: Project, **source: str) -> None:
    (project.folder / "token.txt").write_text("hunter2-hunter2\n")
    more = f"secret_source: {json.dumps(source)}\n" if source else ""
    project.write(f"{SPEC}secrets: [token.txt]\n{more}")
