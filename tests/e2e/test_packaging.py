"""The wheel as on an index, the content of the container image, and the hook as another repository calls it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.parser import Parser
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.e2e.tools.build import find_tool
from tests.pages.blocks import blocks_of

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/owner/name"


def run(*argv: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        argv, cwd=cwd, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True, check=False
    )


def install_lines() -> list[str]:
    (block,) = (block for block in blocks_of(ROOT / "README.md") if block.rest == "tests/e2e/test_packaging.py")
    return block.text.splitlines()


@pytest.mark.parametrize("line", install_lines())
def test_the_command_is_installed_as_the_first_page_says(
    line: str, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    venv = run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    assert venv.returncode == 0, venv.stderr
    installers = tmp_path / "venv" / "bin"
    (installers / "pipx").write_text('#!/bin/sh\nexec uv tool run --quiet pipx "$@"\n')
    (installers / "pipx").chmod(0o755)
    places = {name: str(tmp_path / name.lower()) for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIPX_HOME")}
    places["PIPX_BIN_DIR"] = places["UV_TOOL_BIN_DIR"]
    env = {**places, "PIP_NO_COMPILE": "1", "VIRTUAL_ENV": ""}
    cloned = run("git", "clone", "--quiet", ROOT.as_uri(), "clone", cwd=tmp_path)
    assert cloned.returncode == 0, cloned.stderr
    path = f"{installers}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = run("bash", "-c", f"export PATH={shlex.quote(path)}; {line}", cwd=tmp_path / "clone", **env)
    assert done.returncode == 0, done.stderr[-2000:]
    (symph,) = [*Path(places["UV_TOOL_BIN_DIR"]).glob("symph"), *installers.glob("symph")]
    assert run(str(symph), "--version", cwd=tmp_path).stdout.startswith("symphony-charts ")
    # Beside the programs, where `man` looks for pages of programs on PATH.
    pages = symph.resolve().parents[1] / "share" / "man" / "man1"
    opened = run(need_tool("groff"), "-man", "-Tutf8", "-ww", str(pages / "symph-up.1"), cwd=tmp_path)
    assert (opened.returncode, opened.stderr) == (0, "")
    assert "symph up experiment.yaml --wait" in re.sub("\x1b\\[[0-9;]*m", "", opened.stdout)


def tracked(*folders: str) -> list[str]:
    return run("git", "ls-files", "-z", *folders, cwd=ROOT).stdout.rstrip("\0").split("\0")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the files that `.dockerignore` lets into the image, built with a known repository."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = tuple(line.removeprefix("!/") for line in lines if line.startswith("!/"))
    out = [line.removeprefix("**/") for line in lines if line.startswith("**/")]
    for name in tracked():
        path = Path(name)
        if path.parts[0] in let_in and not any(fnmatch(part, pattern) for part in path.parts for pattern in out):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes((ROOT / path).read_bytes())
    project = source / "pyproject.toml"
    project.write_text(re.sub(r'^repository = ".*"', f'repository = "{REPOSITORY}"', project.read_text(), flags=re.M))
    argv = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(source))
    ended = run(*argv, cwd=source)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return next(dist.iterdir())


def test_the_image_is_built_of_all_that_the_package_holds(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = tracked("symphony_charts", "torchx_plugins")
    data = [f"symphony_charts/_data/{name}" for name in tracked("chart-template", "gitops", "local")]
    assert {*ours, *data} - names == set()


def test_an_index_shows_the_description_with_links_that_lead_somewhere(wheel: Path) -> None:
    checked = run("twine", "check", "--strict", str(wheel), cwd=ROOT)
    assert checked.returncode == 0, checked.stdout
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    # The version that today's uploaders and installers read.
    assert metadata["Metadata-Version"] == "2.4"
    assert f"Repository, {REPOSITORY}" in metadata.get_all("Project-URL", [])
    description = str(metadata.get_payload())
    assert f"{REPOSITORY}/blob/v" in description
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", description) == []
    assert re.findall(r'\b(?:src|srcset|href)="(?!https://|#)[^"]*"', description) == []


def test_workflows_say_what_the_forge_understands() -> None:
    linted = run(str(find_tool("actionlint")), "-shellcheck=", "-pyflakes=", cwd=ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_another_repository_calls_the_hook(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    good, bad = tmp_path / "experiment.yaml", tmp_path / "experiments" / "experiment.yaml"
    good.write_text("name: rl\nimage: busybox:1\nprocesses: {a: {cmds: ['true']}}\n")
    bad.write_text("name: rl\nimage: busybox:1\nprocesses: {a: {cmd: ['true'], relicas: 2}}\n")
    (tmp_path / "other.yaml").write_text("- no experiment\n")
    for words in (("init", "--quiet"), ("add", ".")):
        assert run("git", *words, cwd=tmp_path).returncode == 0
    manifest = ("pre-commit", "try-repo", str(ROOT), "symph-validate", "--verbose", "--files")
    store = {"PRE_COMMIT_HOME": str(tmp_path / "store")}
    passed = run(*manifest, "experiment.yaml", "other.yaml", cwd=tmp_path, **store)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "1 checked: 0 error" in passed.stdout
    refused = run(*manifest, str(bad.relative_to(tmp_path)), cwd=tmp_path, **store)
    assert refused.returncode == 1
    assert 'did you mean "replicas"' in refused.stdout
