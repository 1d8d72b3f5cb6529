"""The layer of a workspace as bytes, and refusals of invalid manifests."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.oci.push import Entry, add_layer, layer_of, platforms_of

OCI = "application/vnd.oci.image.manifest.v1+json"
HARD = [
    Entry(path="a/" + "x" * 150 + "/é" + "y" * 90, content=b"hello" * 1000),
    Entry(path="a", is_folder=True),
    Entry(path="l", target="t" * 200),
    Entry(path="p", is_program=True),
    Entry(path="bad\udcff", content=b"1"),
]


def test_every_python_makes_the_same_tar() -> None:
    # Python 3.10, 3.11, 3.12 and 3.13 gave this digest.
    assert layer_of(HARD, "/app").diff_id.startswith("sha256:97827b8d95106fd2")


def test_the_order_of_the_files_changes_nothing() -> None:
    assert layer_of(HARD, "/app") == layer_of(HARD[::-1], "/app")


@settings(max_examples=50)
@given(
    files=st.dictionaries(
        st.from_regex(r"[a-zé]{1,120}(/[a-z .]{1,120}z){0,3}", fullmatch=True), st.binary(), max_size=5
    )
)
def test_a_layer_holds_the_very_files(files: dict[str, bytes]) -> None:
    layer = layer_of([Entry(path=path, content=content) for path, content in files.items()], "/")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.data))) as archive:
        found = {member.name: archive.extractfile(member) for member in archive}
        assert {name: file.read() for name, file in found.items() if file is not None} == files


@pytest.mark.parametrize("manifest", [b"", b"[]", b"{}", b'{"layers": [], "config": {}}'])
def test_what_is_no_image_is_refused(manifest: bytes) -> None:
    with pytest.raises(SpecError):
        add_layer(OCI, manifest, b"{}", layer_of([], "/"))


def test_an_image_of_an_unknown_format_is_refused() -> None:
    with pytest.raises(SpecError, match="unknown format"):
        add_layer("application/vnd.docker.distribution.manifest.v1+json", b"{}", b"{}", layer_of([], "/"))


def test_variants_are_part_of_a_platform() -> None:
    index = b'{"manifests": [{"digest": "d", "platform": {"os": "linux", "architecture": "arm", "variant": "v7"}}, 3]}'
    assert [place.platform for place in platforms_of(index)] == ["linux/arm/v7"]
