"""A rehearsal changes nothing, whatever helm requests, and serves only the helm that it was opened for."""

from __future__ import annotations

import http.client
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import ToolFailed
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.releases.rehearsal import Rehearsal, Request, is_owned, rehearsed
from tests.kubernetes.kube_peer import Peer, peer


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with peer(tmp_path_factory.mktemp("peer")) as found:
        yield found


def api_of(there: Peer, folder: Path, server: str = "") -> KubeApi:
    cluster = {"server": server or there.plain, "certificate-authority-data": there.data("ca.crt")}
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {"token": "word"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return KubeApi(file)


@pytest.fixture(scope="module")
def api(there: Peer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApi]:
    with api_of(there, tmp_path_factory.mktemp("kube")) as found:
        yield found


def asked(address: str) -> tuple[int, dict[str, str]]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    finally:
        connection.close()


_NAME = st.text("abcxyz-.", min_size=1, max_size=8)
_QUERY = st.dictionaries(st.sampled_from(["fieldManager", "force", "dryRun", "x"]), st.text("abc", max_size=3))
_SPACE = st.sampled_from(["default", "made"])


@given(
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    name=_NAME,
    space=_SPACE,
    kind=st.sampled_from(["secrets", "configmaps", "jobs"]),
    query=_QUERY,
)
def test_every_write_that_reaches_the_cluster_is_a_dry_run(
    method: str, name: str, space: str, kind: str, query: dict[str, str], there: Peer, api: KubeApi
) -> None:
    rehearsal = Rehearsal(connection=api.connection, missing_namespace="made")
    there.writes.clear()
    path = f"/api/v1/namespaces/{space}/{kind}/{name}"
    body = json.dumps({"kind": "Job", "metadata": {"name": name}}).encode()
    headers = {"Content-Type": "application/json"}
    rehearsal.answer(Request(method=method, path=path, query=query, headers=headers, body=body))
    assert [parse_qs(urlsplit(write).query)["dryRun"] for write in there.writes] == [["All"]] * len(there.writes)
    # A DELETE takes its options from its body, which would make `dryRun` in the query ineffective.
    assert not [write for write in there.writes if "/made/" in write or write.startswith("DELETE")]


def test_the_port_takes_only_who_read_the_private_kubeconfig(api: KubeApi) -> None:
    with rehearsed(Rehearsal(connection=api.connection), "x") as (file, _):
        server = json.loads(file.read_text())["clusters"][0]["cluster"]["server"]
        mode = stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)
        welcome, guessed = asked(f"{server}/version"), asked(f"{server.rpartition('/')[0]}/guess/version")
    assert (welcome[0], welcome[1]["authorization"], guessed[0]) == (200, "Bearer word", 401)
    assert mode == (0o600, 0o700)


def test_a_cluster_that_goes_away_in_the_middle_is_what_is_told(there: Peer, tmp_path: Path) -> None:
    with api_of(there, tmp_path, "https://127.0.0.1:9") as api, pytest.raises(ToolFailed, match="does not answer"):
        assert status_in_a_rehearsal(api) == 503


def status_in_a_rehearsal(api: KubeApi) -> int:
    with rehearsed(Rehearsal(connection=api.connection), "x") as (file, _):
        server = json.loads(file.read_text())["clusters"][0]["cluster"]["server"]
        return asked(f"{server}/version")[0]


@pytest.mark.parametrize(
    ("label", "name", "namespace", "is_its"),
    [("Helm", "rl", "ml", True), ("Helm", "rl", "other", False), ("Helm", "x", "ml", False), ("me", "rl", "ml", False)],
)
def test_a_release_owns_what_bears_all_of_its_marks(label: str, name: str, namespace: str, is_its: bool) -> None:
    marks = {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}
    item = {"metadata": {"labels": {"app.kubernetes.io/managed-by": label}, "annotations": marks}}
    assert is_owned(item, "rl", "ml") == is_its
    assert not is_owned({"metadata": {}}, "rl", "ml")
