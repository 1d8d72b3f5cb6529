"""The content of a tag is decided once, despite concurrent pushes and transfer failures."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict, SpecError, ToolFailed
from symphony_charts.oci.client import Blob, Registry
from symphony_charts.oci.transport import login_for
from tests.oci.gate import Passed, running_gate
from tests.registry import running_registry

TYPE = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, need_tool: Callable[[str], str]) -> Iterator[str]:
    with running_registry(need_tool("docker-registry"), tmp_path_factory.mktemp("registry")) as host:
        yield host


def push(host: str, content: str, repository: str = "charts/rl") -> bool | type[Exception]:
    with Registry(host) as registry:
        try:
            registry.put_blob(repository, content.encode())
            registry.put_blob(repository, b"{}")
            is_new = registry.put_tag_once(repository, "0.1.0", artifact(content))
        except (Conflict, ToolFailed) as error:
            return type(error)
        return is_new


def artifact(content: str) -> Blob:
    def blob(data: bytes, kind: str) -> dict[str, object]:
        return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}

    config = blob(b"{}", "application/vnd.oci.image.config.v1+json")
    layers = [blob(content.encode(), "application/octet-stream")]
    data = {"schemaVersion": 2, "mediaType": TYPE, "config": config, "layers": layers}
    return Blob(media_type=TYPE, data=json.dumps(data).encode())


def content_of(host: str, repository: str) -> bytes | None:
    with Registry(host) as registry:
        manifest = registry.manifest(repository, "0.1.0")
        return manifest.data if manifest else None


def meeting() -> Callable[[Passed], bool]:
    barrier = threading.Barrier(2)
    looked = threading.local()

    def on_request(request: Passed) -> bool:
        if request.method == "GET" and request.is_tag and not hasattr(looked, "once"):
            looked.once = True
            answer = request.forward()
            barrier.wait(20)
            request.reply(*answer)
            return True
        return False

    return on_request


def test_where_a_registry_keeps_tags_the_first_stays(registry: str) -> None:
    lock, meet = threading.Lock(), meeting()

    def on_request(request: Passed) -> bool:
        if request.method != "PUT" or not request.is_tag:
            return meet(request)
        with lock:
            if request.headers["If-None-Match"] == "*" and content_of(registry, "race/kept") is not None:
                request.refuse(412)
            else:
                request.reply(*request.forward())
        return True

    with running_gate(registry, on_request) as host, ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda content: push(host, content, "race/kept"), ["one", "two"]))
    assert sorted(map(str, ended)) == sorted(map(str, [True, Conflict]))
    assert content_of(registry, "race/kept") == artifact(["one", "two"][ended.index(True)]).data


def test_a_tag_whose_answer_got_lost_is_recognised(registry: str) -> None:
    def on_request(request: Passed) -> bool:
        if request.method == "PUT" and request.is_tag:
            request.forward()
            request.cut()
            return True
        return False

    with running_gate(registry, on_request) as host:
        assert push(host, "lost", "lost/rl") is True
    assert content_of(registry, "lost/rl") == artifact("lost").data


def test_an_upload_that_is_cut_leaves_no_version_and_is_made_good_by_the_next(registry: str) -> None:
    content = "x" * 100_000

    def on_request(request: Passed) -> bool:
        if request.method == "PUT" and request.length == len(content):
            request.cut(request.length // 2)
            return True
        return False

    with running_gate(registry, on_request) as host:
        assert push(host, content, "cut/rl") is ToolFailed
    assert content_of(registry, "cut/rl") is None
    assert push(registry, content, "cut/rl") is True
    assert push(registry, content, "cut/rl") is False


def test_a_connection_that_the_registry_closed_meanwhile_is_opened_again(registry: str) -> None:
    asked: list[str] = []

    def on_request(request: Passed) -> bool:
        asked.append(request.method)
        if len(asked) == 2:
            request.cut()
            return True
        return False

    with running_gate(registry, on_request) as host, Registry(host) as client:
        assert client.manifest("no/such", "0.1.0") is None
        assert client.manifest("no/such", "0.1.0") is None
    assert len(asked) == 3


@pytest.mark.parametrize("auth", ["abc", "é"])
def test_a_damaged_login_names_its_file(auth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "none.json"))
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"r.example.org": {"auth": auth}}}))
    with pytest.raises(SpecError, match=r"r\.example\.org") as error:
        login_for("r.example.org")
    assert str(tmp_path) in str(error.value)
