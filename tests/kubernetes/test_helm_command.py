"""Calls of helm for pyhelm3: arguments, environment and stdin."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.errors import Conflict, NotFound, SpecError, ToolFailed, ToolMissing
from symphony_charts.kubernetes.releases.helm_client import HelmCommand, HelmReleases, Target
from tests.tools import HELM_VERSIONS, helm

# Records its call, then gives the configured answer.
_STAND_IN = """#!/bin/sh
if [ "$1" = version ]; then echo v4.3.1; exit 0; fi
printf '%s\\n' "$@" > "{0}/argv"
env > "{0}/env"
cat > "{0}/input"
cat "{0}/err" >&2 2>/dev/null
cat "{0}/out" 2>/dev/null
exit "$(cat "{0}/status" 2>/dev/null || echo 0)"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "helm"
    program.write_text(_STAND_IN.format(tmp_path))
    program.chmod(0o755)
    (tmp_path / "err").write_text("")
    (tmp_path / "out").write_text("[]")
    monkeypatch.setenv("HELM_BIN", str(program))
    return tmp_path


def answer(place: Path, err: str, status: int = 1) -> HelmReleases:
    (place / "err").write_text(err)
    (place / "status").write_text(str(status))
    return HelmReleases()


def test_no_word_reaches_a_shell(place: Path) -> None:
    name = f"x; touch {place}/made $(id)"
    HelmReleases().history(name, "ns")
    assert (place / "argv").read_text().splitlines()[:2] == ["history", name]
    assert not (place / "made").exists()


def test_no_credential_stands_among_the_arguments(place: Path) -> None:
    command = HelmCommand(Target(kubeconfig=Path("/k"), context="c"))
    command._kubetoken = "hush"
    with pytest.raises(StopIteration):
        command.run(["list"]).send(None)
    assert (place / "argv").read_text() == "list\n"
    env = (place / "env").read_text().splitlines()
    assert {"KUBECONFIG=/k", "HELM_KUBECONTEXT=c"} <= set(env)


def test_helms_own_variables_cannot_name_another_cluster(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_KUBEAPISERVER", "https://elsewhere")
    monkeypatch.setenv("HELM_KUBETOKEN", "hush")
    monkeypatch.setenv("HELM_NAMESPACE", "elsewhere")
    HelmReleases().history("x", "ns")
    env = (place / "env").read_text()
    assert ("elsewhere" in env, "hush" in env) == (False, False)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Error: release: not found", NotFound),
        ("Error: INSTALLATION FAILED: rendered manifests contain a resource that already exists", Conflict),
        ("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress", Conflict),
        ("Error: execution error at (rl/templates/x.yaml:1:2): take --reset-values", SpecError),
        ("Error: something else", ToolFailed),
    ],
)
def test_what_helm_says_becomes_an_error_of_its_kind(place: Path, said: str, kind: type[Exception]) -> None:
    releases = answer(place, said)
    with pytest.raises(kind) as caught:
        releases.uninstall("rl", "ns")
    assert type(caught.value) is kind


def test_a_failure_that_nobody_knows_keeps_everything_that_helm_said(place: Path) -> None:
    releases = answer(place, "one\nError: two\n", 3)
    with pytest.raises(ToolFailed) as caught:
        releases.uninstall("rl", "ns")
    assert (caught.value.what, caught.value.status, caught.value.stderr) == ("two", 3, "one\nError: two\n")


def test_each_value_that_breaks_the_schema_is_a_fault_with_its_path(place: Path) -> None:
    said = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nrl:\n"
    said += "- at '/groups/p0/replicas': got number, want string\n- at '/specDigest': got number, want string\n"
    releases = answer(place, said)
    with pytest.raises(SpecError) as caught:
        releases.uninstall("rl", "ns")
    assert [one.path for one in caught.value.problems] == ["groups.p0.replicas", "specDigest"]


def test_an_absent_release_has_no_history(place: Path) -> None:
    assert answer(place, "Error: release: not found").history("rl", "ns") == []


def test_a_helm_that_is_absent_or_too_old_is_missing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "helm").write_text("#!/bin/sh\necho v3.9.0\n")
    with pytest.raises(ToolMissing, match="too old"):
        HelmReleases()
    monkeypatch.setenv("HELM_BIN", "")
    monkeypatch.setenv("PATH", str(place / "none"))
    with pytest.raises(ToolMissing, match="not installed"):
        HelmReleases()


@pytest.mark.parametrize("said", ["2026-11-21T05:56:47.006061108Z", "2026-11-21T06:56:47+01:00"])
def test_times_of_a_history_are_in_utc(place: Path, said: str) -> None:
    (place / "out").write_text(f'[{{"revision": 1, "status": "deployed", "chart": "rl-1", "updated": "{said}"}}]')
    assert HelmReleases().history("rl", "ns")[0].updated == "2026-11-21T05:56:47Z"


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_a_real_helm_renders_what_it_is_fed(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = helm(version)
    if program is None:
        pytest.skip(f"no helm {version}")
    monkeypatch.setenv("HELM_BIN", str(program))
    chart = tmp_path / "c"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: {{ .Values.a | quote }}}\n"
    (chart / "templates" / "c.yaml").write_text(body)
    # Exactly 4096 bytes of JSON, which helm before 4.3 would drop without a newline, with an emoji at the start.
    values = {"a": "\U0001f600" + "x" * (4096 - len('{"a": ""}') - 4)}
    (made,) = HelmReleases().render("c", chart, values, namespace="ns")
    assert made["data"] == values
