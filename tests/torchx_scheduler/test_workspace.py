"""TorchX's workspaces, without Docker: a folder's files in the image, pushed when the application is submitted."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from symphony_charts.oci.client import Registry
from tests.cli.test_workspace import put_base
from tests.registry import running_registry
from tests.torchx_scheduler.conftest import Torchx


@pytest.fixture
def host(tmp_path: Path, need_tool: Callable[[str], str]) -> Iterator[str]:
    """Yield a registry that holds ``base:v1``."""
    folder = tmp_path / "registry"
    folder.mkdir()
    with running_registry(need_tool("docker-registry"), folder) as found:
        with Registry(found) as registry:
            put_base(registry)
        yield found


def project(torchx: Torchx) -> None:
    """Give TorchX's working folder a script, and a file that is excluded from the image."""
    torchx.folder = torchx.folder / "project"
    torchx.folder.mkdir()
    (torchx.folder / "train.py").write_text("print(1)\n")
    (torchx.folder / "notes.log").write_text("no\n")
    (torchx.folder / ".dockerignore").write_text("*.log\n.dockerignore\n")


def files_of(host: str, image: str) -> list[str]:
    """Return the files of the last layer of a pinned image."""
    name, _, digest = image.removeprefix(f"{host}/").partition("@")
    with Registry(host) as registry:
        manifest = registry.manifest(name, digest)
        assert manifest is not None
        layer = registry.blob(name, json.loads(manifest.data)["layers"][-1]["digest"])
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer))) as archive:
        return archive.getnames()


def test_the_chart_runs_an_image_with_the_files_of_the_working_folder(torchx: Torchx, host: str) -> None:
    project(torchx)
    cfg = f"on=chart,dest=../charts,image_repo={host}/team/images"
    done = torchx("run", "-s", "symph", "-cfg", cfg, "utils.echo", "--image", f"{host}/base:v1")
    assert f"is {host}/base:v1 with a layer of" in done.stderr
    values = yaml.safe_load((torchx.folder.parent / "charts" / "echo" / "values.yaml").read_text())
    image = values["groups"]["echo"]["containers"]["echo"]["image"]
    assert (image["registry"], image["repository"]) == (host, "team/images")
    assert files_of(host, f"team/images@{image['digest']}") == ["app/train.py"]


def test_a_dry_run_says_what_would_be_patched_and_asks_no_registry(torchx: Torchx) -> None:
    project(torchx)
    shown = torchx.request("-cfg", "on=kube,image_repo=127.0.0.1:1/x", "utils.echo", "--image", "127.0.0.1:1/base:v1")
    assert shown.startswith(f"# 127.0.0.1:1/base:v1 gets the files of {torchx.folder}\n")
    (job,) = [item for item in yaml.safe_load_all(shown) if item["kind"] == "Job"]
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "127.0.0.1:1/base:v1"
    assert "symph.dev/workspace" not in shown


def test_without_a_repository_it_is_said_that_the_files_are_not_there(release: Torchx) -> None:
    done = release("run", "-s", "symph", "-cfg", "on=kube", "--dryrun", "utils.echo")
    assert f"the files of {release.folder} are not in the image" in done.stderr
    silent = release("run", "-s", "symph", "-cfg", "on=kube", "--workspace", "", "--dryrun", "utils.echo")
    assert "not in the image" not in silent.stderr


def test_a_workspace_is_one_folder_of_this_machine(release: Torchx, nightly: Torchx) -> None:
    for torchx, workspace, fault in (
        (nightly, f"{{{nightly.folder}: a, /tmp: b}}", "a workspace of several folders"),
        (release, "memory://x", "the workspace memory://x is not a folder of this machine"),
    ):
        words = ("run", "-s", "symph", "--workspace", workspace, "--dryrun", "utils.echo")
        refused = torchx(*words, status=1).stderr
        assert fault in refused
        assert "Traceback" not in refused


def test_the_registry_is_reached_as_the_options_say(torchx: Torchx, host: str) -> None:
    project(torchx)
    words = ("utils.echo", "--image", f"{host}/base:v1")
    cfg = f"on=chart,dest=../charts,image_repo={host}/team/images"
    refused = torchx("run", "-s", "symph", "-cfg", f"{cfg},ca_file=nowhere.pem", *words, status=1).stderr
    assert "nowhere.pem" in refused
    assert "Traceback" not in refused
    both = torchx("run", "-s", "symph", "-cfg", f"{cfg},ca_file=x,plain_http=true", *words, status=1).stderr
    assert "cfg.plain_http" in both
    torchx("run", "-s", "symph", "-cfg", f"{cfg},plain_http=true", *words)
