"""Flux reads a repository of charts over ssh: each publish is released, and each retirement is pruned.

Its controllers take minutes to build, so this runs only with `make soak` (SYMPH_SOAK=1 and the programs built). The
controller that installs releases is left out: the tests check that Flux finds, applies and prunes the releases, and
makes charts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.formats.yaml_write import dump
from tests.e2e.flux import NAMESPACE, Flux, flux
from tests.e2e.programs import Programs
from tests.gitops.servers import commit, git
from tests.gitops.ssh_server import ssh_server
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(not os.environ.get("SYMPH_SOAK"), reason="Flux takes minutes to build: make soak")

_WAIT_S = 90
_INSTALL = ("--install-from", f"git+https://git.example.org/symphony-charts@{'0a' * 20}")
_SPEC = 'name: naps\nimage: busybox:1.37.0\nprocesses:\n  nap: {{cmds: ["echo {word}"]}}\n'
Symph = Callable[..., None]


@pytest.fixture
def running(programs: Programs, tmp_path: Path) -> Iterator[Flux]:
    programs.kubectl("create", "namespace", NAMESPACE)
    with flux(tmp_path / "flux", programs) as controllers:
        yield controllers
        kinds = "gitrepositories,kustomizations,helmcharts,helmreleases"
        programs.kubectl("-n", NAMESPACE, "delete", kinds, "--all", "--timeout=60s")
    programs.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture
def symph(running: Flux, tmp_path: Path) -> Iterator[Symph]:
    """Yield ``symph`` in a folder whose repository Flux reads over ssh, following the repository's README."""
    repository = tmp_path / "charts.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repository)], check=True, timeout=30)
    with ssh_server(tmp_path / "ssh") as server:
        env = {"GIT_SSH_COMMAND": server.command(), "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c"}
        env |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c"}

        def run(*words: str) -> None:
            done = running.programs.symph(*words, cwd=tmp_path, env=env)
            assert done.code == 0, f"symph {' '.join(words)}: {done.out}\n{done.err}"

        places = ("--destination", "dev=naps-dev", "--destination", "prod=big/naps")
        run("gitops", "init", "--repo", server.url(repository), "--flux", "--team", "ml", *places, *_INSTALL)
        files = [f"--from-file=identity={server.key}", f"--from-file=known_hosts={server.known_hosts}"]
        running.programs.kubectl("-n", NAMESPACE, "create", "secret", "generic", "ml-charts", *files)
        running.programs.kubectl("create", "namespace", "naps-dev")
        for name in ("run-end", "flux-accounts", "flux-source", "flux-releases"):
            show = ["git", "-C", str(repository), "show", f"main:bootstrap/{name}.yaml"]
            text = subprocess.run(show, check=True, capture_output=True, text=True, timeout=30).stdout
            running.programs.kubectl("apply", "-f", "-", stdin=text)
        yield run


def test_what_is_published_is_released_and_the_last_retired_is_pruned(
    running: Flux, symph: Symph, tmp_path: Path
) -> None:
    def wait_ready(kind: str, name: str) -> None:
        eventually(lambda: running.ready(kind, name)[0] == "True", _WAIT_S, running.describe)

    # An environment that runs nothing yet is no error.
    for kind, name in (
        ("gitrepository", "ml-charts"),
        ("kustomization", "ml-charts-dev"),
        ("kustomization", "ml-charts-prod"),
    ):
        wait_ready(kind, name)

    (tmp_path / "naps.yaml").write_text(_SPEC.format(word="one"))
    symph("publish", "naps.yaml", "--env", "dev")
    symph("promote", "naps", "--from", "dev", "--to", "prod")
    running.look()
    eventually(lambda: running.get("helmrelease", "ml-charts-dev-ml-naps") or None, _WAIT_S, running.describe)
    eventually(lambda: running.get("helmrelease", "ml-charts-prod-ml-naps") or None, _WAIT_S, running.describe)
    release = running.get("helmrelease", "ml-charts-prod-ml-naps")
    assert release["spec"]["kubeConfig"]["secretRef"]["name"] == "big-kubeconfig"

    # Flux can make the chart of the release.
    chart = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart", "metadata": {"name": "naps"}}
    spec = {**release["spec"]["chart"]["spec"], "interval": "1m"}
    spec["sourceRef"] = {key: value for key, value in spec["sourceRef"].items() if key != "namespace"}
    running.programs.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=dump({**chart, "spec": spec}))
    wait_ready("helmchart", "naps")

    # A pointer edited by hand is the release: Flux has nothing else to read.
    pointer, repository = "envs/prod/ml/naps.symph-app.yaml", tmp_path / "charts.git"
    text = git(repository, "show", f"main:{pointer}")
    commit(repository, {pointer: text.replace("values: {}", "values: {groups: {nap: {replicas: 3}}}")})
    running.look()
    values = {"groups": {"nap": {"replicas": 3}}}
    eventually(
        lambda: running.get("helmrelease", "ml-charts-prod-ml-naps")["spec"].get("values") == values,
        _WAIT_S,
        running.describe,
    )

    symph("retire", "naps", "--env", "dev", "--yes")
    running.look()
    eventually(lambda: not running.get("helmrelease", "ml-charts-dev-ml-naps"), _WAIT_S, running.describe)
    wait_ready("kustomization", "ml-charts-dev")
    assert running.get("helmrelease", "ml-charts-prod-ml-naps")
