"""`symph package --workspace` against a real registry: content of the image, uploads and refusals."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.cli.main import main
from symphony_charts.oci.client import Blob, Registry
from tests.registry import running_registry

OCI = "application/vnd.oci.image.manifest.v1+json"
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
BASE_LAYER = gzip.compress(b"the base", mtime=0)


def put_base(registry: Registry, media_type: str = OCI, arch: str = "amd64", tag: str = "v1") -> Blob:
    """Put a small image whose working folder is /app into the repository `base`."""
    config = {
        "architecture": arch,
        "os": "linux",
        "config": {"WorkingDir": "/app", "Env": ["A=b"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(b'the base').hexdigest()}"]},
        "history": [{"created_by": "base"}],
    }
    blobs = [json.dumps(config).encode(), BASE_LAYER]
    described = []
    for blob, kind in zip(blobs, ("config.v1+json", "layer.v1.tar+gzip"), strict=True):
        registry.put_blob("base", blob)
        digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        described.append({"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(blob)})
    data = json.dumps({"schemaVersion": 2, "mediaType": media_type, "config": described[0], "layers": described[1:]})
    manifest = Blob(media_type=media_type, data=data.encode())
    registry.put_manifest("base", tag, manifest)
    return manifest


class Place:
    """A folder with a workspace `ws` and a spec `rl.yaml`, beside a registry that holds ``base:v1``."""

    def __init__(self, folder: Path, host: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.host, self._capsys = folder, host, capsys
        self.repository = f"{host}/team/images"
        (folder / "ws/src").mkdir(parents=True)
        (folder / "ws/train.py").write_text("print(1)\n")
        (folder / "ws/src/run.sh").write_text("#!/bin/sh\n")
        (folder / "ws/src/run.sh").chmod(0o700)
        (folder / "ws/notes.log").write_text("not for the image\n")
        (folder / "ws/latest").symlink_to("src/run.sh")
        (folder / "ws/.dockerignore").write_text("**/*.log\n.dockerignore\n")
        self.spec()

    def spec(self, tag: str = ":v1", more: str = "") -> None:
        text = f"name: rl\nimage: {self.host}/base{tag}\nprocesses: {{agent: {{command: [work]}}}}\n{more}"
        (self.folder / "rl.yaml").write_text(text)

    def symph(self, *words: str) -> tuple[int, str, str]:
        status = main(["package", "rl.yaml", "--workspace", "ws", "--image-repo", self.repository, *words])
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def pushed(self, *words: str) -> dict[str, Any]:
        status, out, err = self.symph(*words, "-o", "json")
        assert status == 0, err
        (item,) = json.loads(out)["items"]
        (image,) = item["images"]
        return dict(image)


@pytest.fixture
def host(tmp_path: Path, need_tool: Callable[[str], str]) -> Iterator[str]:
    with running_registry(need_tool("docker-registry"), tmp_path) as found:
        yield found


@pytest.fixture
def place(tmp_path: Path, host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    with Registry(host) as registry:
        put_base(registry)
    return Place(tmp_path, host, capsys)


def read_back(host: str, image: str) -> tuple[dict[str, Any], dict[str, Any], list[bytes]]:
    """Return manifest, config and layers of a pinned image; the client checks each against its digest."""
    name, _, digest = image.removeprefix(f"{host}/").partition("@")
    with Registry(host) as registry:
        found = registry.manifest(name, digest)
        assert found is not None
        manifest = json.loads(found.data)
        config = json.loads(registry.blob(name, manifest["config"]["digest"]))
        return manifest, config, [registry.blob(name, layer["digest"]) for layer in manifest["layers"]]


def test_the_image_has_the_folder_in_its_working_folder_over_the_base(place: Place) -> None:
    manifest, config, layers = read_back(place.host, place.pushed()["image"])
    assert layers[0] == BASE_LAYER
    with tarfile.open(fileobj=io.BytesIO(layers[1])) as archive:
        found = {member.name: (member.mode, member.linkname, member.uid, member.mtime) for member in archive}
    assert found == {
        "app/latest": (0o777, "src/run.sh", 0, 315532800),
        "app/src": (0o755, "", 0, 315532800),
        "app/src/run.sh": (0o755, "", 0, 315532800),
        "app/train.py": (0o644, "", 0, 315532800),
    }
    assert config["rootfs"]["diff_ids"][1] == f"sha256:{hashlib.sha256(gzip.decompress(layers[1])).hexdigest()}"
    assert config["config"] == {"WorkingDir": "/app", "Env": ["A=b"]}
    assert len(config["history"]) == 2
    assert manifest["layers"][1]["mediaType"] == "application/vnd.oci.image.layer.v1.tar+gzip"


def image_in(values: Path) -> str:
    parts = yaml.safe_load(values.read_text())["image"]
    tag = f":{parts['tag']}" if parts["tag"] else ""
    digest = f"@{parts['digest']}" if parts["digest"] else ""
    return f"{parts['registry']}/{parts['repository']}{tag}{digest}"


def test_the_chart_pins_the_image_by_its_digest_until_it_is_packaged_without(place: Place) -> None:
    assert place.pushed()["image"] == image_in(place.folder / "dist/rl/values.yaml")
    assert main(["package", "rl.yaml"]) == 0
    assert image_in(place.folder / "dist/rl/values.yaml") == f"{place.host}/base:v1"


def test_the_same_files_at_another_time_make_the_same_image(place: Place) -> None:
    first = place.pushed()
    os.utime(place.folder / "ws/train.py", (1, 1))
    again = place.pushed()
    assert (first["state"], again["state"]) == ("pushed", "there already")
    assert first["image"] == again["image"]
    (place.folder / "ws/train.py").write_text("print(2)\n")
    assert place.pushed()["image"] != first["image"]
    assert (place.folder / "dist/rl-0.1.1.tgz").exists()


def test_a_published_chart_names_the_new_image(place: Place) -> None:
    subprocess.run(["git", "init", "-q", str(place.folder / "site")], check=True, timeout=30)
    status, _, err = place.symph("--push", "--into", str(place.folder / "site"), "--chart-only", "--team", "ml")
    assert status == 0, err
    image = place.pushed()["image"]
    (values,) = (place.folder / "site").rglob("values.yaml")
    assert image == image_in(values)


def test_a_dry_run_lists_the_files_and_the_digest_and_sends_nothing(place: Place) -> None:
    planned = place.pushed("--dry-run")
    assert planned["state"] == "would be pushed"
    assert {file["path"]: file["bytes"] for file in planned["files"]} == {"latest": 0, "src/run.sh": 10, "train.py": 9}
    assert not (place.folder / "registry/docker/registry/v2/repositories/team").exists()
    assert place.pushed()["image"] == planned["image"]


def test_layers_of_the_base_come_from_another_registry(place: Place, tmp_path: Path, need_tool: Any) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with running_registry(need_tool("docker-registry"), other) as far:
        place.repository = f"{far}/images"
        _, _, layers = read_back(far, place.pushed()["image"])
    assert layers[0] == BASE_LAYER


def test_an_image_of_docker_stays_one(place: Place) -> None:
    with Registry(place.host) as registry:
        put_base(registry, DOCKER)
    manifest, _, _ = read_back(place.host, place.pushed()["image"])
    assert manifest["mediaType"] == DOCKER
    assert manifest["layers"][1]["mediaType"] == "application/vnd.docker.image.rootfs.diff.tar.gzip"


@pytest.fixture
def many(place: Place) -> Place:
    """Put the base for two platforms, with an attestation in its index."""
    listed = []
    with Registry(place.host) as registry:
        for arch in ("amd64", "arm64", "unknown"):
            made = put_base(registry, OCI, arch, f"for-{arch}")
            platform = {"os": "unknown" if arch == "unknown" else "linux", "architecture": arch}
            entry = {"mediaType": OCI, "digest": made.digest, "size": len(made.data), "platform": platform}
            listed.append(entry)
        data = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": listed}).encode()
        registry.put_manifest("base", "v1", Blob(media_type=OCI_INDEX, data=data))
    return place


def test_an_image_for_several_platforms_stays_one(many: Place) -> None:
    pushed = many.pushed()
    assert pushed["platforms"] == ["linux/amd64", "linux/arm64"]
    name, _, digest = pushed["image"].removeprefix(f"{many.host}/").partition("@")
    with Registry(many.host) as registry:
        index = registry.manifest(name, digest)
    assert index is not None
    children = json.loads(index.data)["manifests"]
    read = [read_back(many.host, f"{many.host}/{name}@{child['digest']}") for child in children]
    assert [config["architecture"] for _, config, _ in read] == ["amd64", "arm64"]
    assert [len(layers) for _, _, layers in read] == [2, 2]


def test_one_platform_alone_can_be_kept_if_the_base_has_it(many: Place) -> None:
    assert many.pushed("--platform", "linux/arm64")["platforms"] == ["linux/arm64"]
    status, _, err = many.symph("--platform", "linux/riscv64")
    assert status == 3
    assert "linux/riscv64" in err


def test_a_base_by_tag_and_digest_is_found_by_its_digest(place: Place) -> None:
    with Registry(place.host) as registry:
        digest = put_base(registry).digest
    place.spec(f":gone@{digest}")
    assert place.pushed()["state"] == "pushed"


def test_a_secret_in_the_workspace_stops_everything(place: Place) -> None:
    (place.folder / "key.txt").write_text("a-very-secret-value\n")
    (place.folder / "ws/settings.ini").write_text("[a]\nkey = a-very-secret-value\n")
    place.spec(more="secrets: [key.txt]\n")
    status, _, err = place.symph()
    assert status == 7
    assert "ws/settings.ini" in err
    assert "a-very-secret" not in err
    assert not (place.folder / "registry/docker/registry/v2/repositories/team").exists()


def test_a_base_that_is_not_there_exits_8(place: Place) -> None:
    place.spec(":none")
    assert place.symph()[0] == 8


def test_a_workspace_needs_a_place_for_its_images(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["package", "rl.yaml", "--workspace", "ws"]) == 2
    assert "--image-repo" in capsys.readouterr().err


def test_a_name_that_would_delete_files_of_the_image_is_refused(place: Place) -> None:
    (place.folder / "ws/.wh.train.py").write_text("")
    status, _, err = place.symph()
    assert status == 3
    assert ".wh.train.py" in err


@pytest.mark.parametrize("flags", [["--plain-http"], ["--ca-file", "x"], ["--username", "ada", "--password-stdin"]])
def test_flags_of_a_registry_that_nobody_asks_are_refused(
    place: Place, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    assert main(["package", "rl.yaml", *flags]) == 2
    refusal = capsys.readouterr().err
    assert f"{flags[0]}" in refusal
    assert "no registry is asked here" in refusal
