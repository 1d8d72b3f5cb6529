"""The options that change values, given to `symph` and to helm: same words, same objects, same refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import symph as command
from tests.chart.harness import index, objects_in, run_helm
from tests.cli.conftest import Symph
from tests.tools import HELM_VERSIONS

pytestmark = pytest.mark.usefixtures("spec")

ENV = "groups.client.containers.client.env"


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_symph_renders_what_helm_renders_under_every_option(version: str, symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("groups: {client: {replicas: 5, containers: {client: {args: [a, b]}}}}\n")
    (tmp_path / "two.yaml").write_text("services: {data: {port: 7777}}\n")
    (tmp_path / "note.txt").write_bytes("two\nlines, and é\n".encode())
    files = f"{tmp_path}/one.yaml,{tmp_path}/two.yaml"
    args = ["-f", files, "--set", "groups.client.containers.client.args[1]=c,groups.client.replicas=3"]
    args += ["--set-literal", f"{ENV}.LITERAL=a,b={{c}}", "--set-file", f"{ENV}.NOTE={tmp_path}/note.txt"]
    args += ["--set-string", f"{ENV}.TEXT=007\\,8", "--set-json", f'{ENV}.JSON="x"']
    symph("package", "exp.yaml")
    ours = json.loads(symph("render", "exp.yaml", "-o", "json", "--release", "r1", *args).stdout)["items"]
    assert index(ours) == objects_in(run_helm(version, "template", "r1", tmp_path / "dist/exp", *args).stdout)


def test_a_file_of_set_file_that_is_not_text_is_refused(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"a\xff")
    assert (
        "bytes\n  next: list the file under `configs`"
        in symph("render", "exp.yaml", "--set-file", f"{ENV}.NOTE=bytes", status=3).stderr
    )


def test_values_come_from_a_pipe(spec: Path) -> None:
    text = "groups: {client: {replicas: 5}}\n"
    ended = command.symph("render", spec.name, "-o", "json", "-f", "-", cwd=spec.parent, stdin=text)
    assert '"completions": 5' in ended.stdout, ended.stderr
