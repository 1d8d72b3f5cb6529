"""Sources of a release: a spec, a chart's folder or its archive."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.kubernetes.releases.releases import chart_of, prepared_chart
from symphony_charts.prepare import prepare
from symphony_charts.spec import files as specfile

SPEC = {
    "name": "rl",
    "namespace": "ml",
    "image": "u:1",
    "processes": {"a": {"args": ["a"]}},
    "secrets": ["key.txt"],
}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "key.txt").write_text("hush")
    (tmp_path / "rl.json").write_text(json.dumps(SPEC))
    return tmp_path / "rl.json"


def test_a_spec_becomes_a_chart_that_is_gone_afterwards_and_writes_nothing_beside_it(spec: Path) -> None:
    before = sorted(spec.parent.iterdir())
    with chart_of(str(spec)) as source:
        assert (source.name, source.namespace) == ("rl", "ml")
        assert (source.chart / "values.yaml").is_file()
        assert not (source.chart / "ci").exists()
    assert not source.chart.exists()
    assert sorted(spec.parent.iterdir()) == before


def test_the_secret_is_the_one_that_the_releases_pods_look_for(spec: Path) -> None:
    with chart_of(str(spec)) as source:
        secret = source.secret("rl-b", "ml")
        assert secret is not None
        assert secret["metadata"]["name"] == "rl-b-secrets"
        assert secret["metadata"]["labels"]["app.kubernetes.io/instance"] == "rl-b"
        assert base64.b64decode(secret["data"]["key.txt"]) == b"hush"
        assert "hush" not in "".join(path.read_text() for path in source.chart.rglob("*") if path.is_file())


def test_a_long_release_name_is_cut_as_in_its_pods(spec: Path) -> None:
    release = "a-release-" + "long-" * 8 + "name"
    with chart_of(str(spec)) as source:
        secret = source.secret(release, "ml")
        assert source.built is not None
        objects = source.built.objects(source.built.values, Release(name=release, namespace="ml"))
    (job,) = (item for item in objects if item["kind"] == "Job")
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    assert secret is not None
    assert secret["metadata"]["name"] == volume["secret"]["secretName"]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"fullnameOverride": "mine"}, "mine-secrets"),
        ({"secrets": {"name": "theirs"}}, None),
        ({"secrets": {}}, "rl-secrets"),
    ],
)
def test_values_say_which_secret_it_is_and_whether_anybody_pushes_it(
    values: dict[str, object], name: str | None, spec: Path
) -> None:
    with chart_of(str(spec)) as source:
        secret = source.secret("rl", "ml", values)
    assert (secret["metadata"]["name"] if secret else None) == name


@pytest.mark.parametrize("with_overrides", [False, True])
def test_overrides_count_for_the_secret_only_if_the_chart_has_them(spec: Path, with_overrides: bool) -> None:
    prepared = prepare(specfile.read(spec), overrides={"fullnameOverride": "mine"})
    with prepared_chart(prepared, spec.parent, with_overrides=with_overrides) as source:
        secret = source.secret("rl", "ml")
    assert secret is not None
    assert secret["metadata"]["name"] == ("mine-secrets" if with_overrides else "rl-secrets")


def test_what_an_external_store_makes_is_not_pushed(spec: Path) -> None:
    spec.write_text(json.dumps({**SPEC, "secret_source": {"source": "external", "store": "s"}}))
    with chart_of(str(spec)) as source:
        assert source.secret("rl", "ml") is None


@pytest.mark.parametrize("data", [None, {}, {"key.txt": ""}, {"other.txt": "sealed"}])
def test_what_is_to_be_sealed_is_never_pushed_in_the_clear(data: dict[str, str] | None, spec: Path) -> None:
    spec.write_text(json.dumps({**SPEC, "secret_source": {"source": "sealed"}}))
    values = {"secrets": {"encryptedData": data}} if data is not None else {}
    with chart_of(str(spec)) as source, pytest.raises(SpecError, match=r"key\.txt has no sealed value"):
        source.secret("rl", "ml", values)


def test_what_is_sealed_is_installed_as_it_is(spec: Path) -> None:
    spec.write_text(json.dumps({**SPEC, "secret_source": {"source": "sealed"}}))
    with chart_of(str(spec)) as source:
        assert source.secret("rl", "ml", {"secrets": {"encryptedData": {"key.txt": "sealed"}}}) is None


def test_a_secret_file_that_is_not_there_is_named(spec: Path) -> None:
    (spec.parent / "key.txt").unlink()
    with chart_of(str(spec)) as source, pytest.raises(SpecError, match=r"key\.txt"):
        source.secret("rl", "ml")


@pytest.mark.parametrize("form", ["dist/rl", "dist/rl-0.1.0.tgz"])
def test_a_packaged_chart_is_taken_as_it_is(spec: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from symphony_charts.cli.main import main

    monkeypatch.chdir(spec.parent)
    assert main(["package", str(spec), "-d", "dist"]) == 0
    with chart_of(form) as source:
        assert (source.name, source.chart, source.secret("rl", "ml")) == ("rl", spec.parent / form, None)


def test_what_is_no_chart_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.tgz", tmp_path / "none.yaml"):
        with pytest.raises((NotFound, SpecError)), chart_of(str(path)):
            pass
    (tmp_path / "bad.tgz").write_bytes(b"no archive")
    with pytest.raises(SpecError, match="not the archive of a chart"), chart_of(str(tmp_path / "bad.tgz")):
        pass
    (tmp_path / "Chart.yaml").write_text("version: 1\n")
    with pytest.raises(SpecError, match="with a name"), chart_of(str(tmp_path)):
        pass
