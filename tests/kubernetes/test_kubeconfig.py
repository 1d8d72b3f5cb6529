"""Context, cluster and user of a kubeconfig: as kubectl reads it, even if the official client differs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import SpecError, SymphError, ToolFailed
from symphony_charts.kubernetes.login import Login, kubeconfig_files, read_context
from tests.symph import symph
from tests.tools import kubectl


def document(name: str, server: str = "https://127.0.0.1:9", **more: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **more}}],
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {}}],
    }


def write(path: Path, content: Mapping[str, object]) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_of_several_files_the_first_one_decides_as_with_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write(tmp_path / "one", document("a", "https://127.0.0.1:1"))
    both = {**document("b"), "clusters": document("a", "https://127.0.0.1:2")["clusters"]}
    two = write(tmp_path / "two", {**both, "contexts": [{"name": "b", "context": {"cluster": "a"}}]})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/absent:{one}:{two}")
    shown = "jsonpath={.current-context} {.clusters[0].cluster.server}"
    argv = [str(kubectl()), "config", "view", "--minify", "-o", shown]
    theirs = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found = read_context()
    assert f"{found.name} {found.cluster.text('server')}" == theirs == "a https://127.0.0.1:1"
    assert read_context(name="b").cluster.text("server") == "https://127.0.0.1:1"


def test_without_any_file_the_failure_names_those_that_were_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/x:{tmp_path}/y")
    with pytest.raises(ToolFailed, match=r"no cluster is configured: .*/x or .*/y does not exist"):
        read_context()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kubeconfig_files() == [f"{tmp_path}/.kube/config"]


def test_a_context_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    file = write(tmp_path / "config", document("production"))
    with pytest.raises(SpecError) as caught:
        read_context(file, "prodution")
    assert str(caught.value).splitlines() == [
        'unknown context "prodution"',
        f"  at:   {file}",
        '  next: choose one with --context: production (did you mean "production"?)',
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_KEYS = ("contexts", "clusters", "users", "current-context")


@given(damage=st.dictionaries(st.sampled_from(_KEYS), _JSON, min_size=1), server=_JSON, user=_JSON)
def test_whatever_stands_in_a_kubeconfig_it_is_read_or_refused_with_its_file(
    damage: dict[str, object], server: object, user: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = document("a")
    whole["users"] = [{"name": "a", "user": user}]
    whole["clusters"] = [{"name": "a", "cluster": {"server": server}}]
    file = write(tmp_path_factory.mktemp("kube") / "config", {**whole, **damage})
    assert str(file) in (_server_or_failure(file) or "nothing")


def _server_or_failure(file: Path) -> str:
    try:
        context = read_context(file)
    except SymphError as error:
        return str(error)
    return f"{context.cluster.file}: {context.cluster.text('server')}"


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ({"http_proxy": "http://p:1"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "10.0.0.0/8,.internal"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "10.1.2.3"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "10.1.2.4,example.org"}, "http://p:1"),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, None),
    ],
)
def test_a_proxy_of_the_environment_is_taken_as_go_takes_it(
    environment: dict[str, str], proxy: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Login(write(tmp_path / "config", document("a", "https://10.1.2.3:6443"))).proxy == proxy
    assert Login(write(tmp_path / "config", document("a", "https://127.0.0.1:6443"))).proxy is None


@pytest.mark.parametrize("words", [["ls", "--on", "kube"], ["doctor", "--cluster"]], ids=" ".join)
@pytest.mark.parametrize("text", ["a: [b\nc", "", "- 1\n", "kind: Config\n"])
def test_no_verb_takes_a_broken_kubeconfig_for_a_bug(words: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)
    env = {**os.environ, "KUBECONFIG": str(tmp_path / "config"), "SYMPH_STATE_DIR": str(tmp_path / "state")}
    done = symph(*words, env=env, cwd=tmp_path)
    assert (done.returncode, str(tmp_path / "config") in done.stderr) == (3, True), done.stderr
