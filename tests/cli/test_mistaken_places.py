"""Errors of repositories, registries and clusters that refuse or do not answer name them and the remedy."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from symphony_charts.system import subprocess_runner
from tests.cli.mistakes import KUBECONFIG, OK
from tests.cli.test_mistakes import Symph, symph  # noqa: F401 - a fixture

PUBLISH = "publish e.yaml --env dev --team t --repo"


class Server(ThreadingHTTPServer):
    """Answers every request by `status` once `may_answer` is set."""

    daemon_threads = True
    status = 404

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.may_answer.wait(60)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_HEAD = do_GET  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def spec(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(OK)


@pytest.mark.parametrize(
    ("before", "words", "whom"),
    [
        ("ls", "PUBLISH http://HOST/r.git", "http://HOST/r.git"),
        ("package e.yaml", "push dist/rl-0.1.0.tgz oci://HOST/x", "http://HOST"),
        ("ls", "ls --on kube --kubeconfig k", "the cluster of context one, http://HOST"),
    ],
)
def test_whoever_waits_is_told_for_whom(
    before: str,
    words: str,
    whom: str,
    server: Server,
    symph: Symph,  # noqa: F811 - the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "k").write_text(KUBECONFIG.replace("127.0.0.1:1", server.host))
    symph(before)
    told: list[str] = []

    def until_told(text: str) -> None:
        told.append(text)
        server.may_answer.set()

    monkeypatch.setattr(subprocess_runner, "_PATIENCE_S", 0.05)
    monkeypatch.setattr("symphony_charts.cli.output.note", until_told)
    server.may_answer.clear()
    status, _ = symph(words.replace("PUBLISH", PUBLISH).replace("HOST", server.host))
    assert status != 0
    assert f"waiting for {whom.replace('HOST', server.host)}" in told


@pytest.mark.parametrize(
    ("status", "cause", "step"),
    [(401, "the cluster denied the request", "log in again"), (403, "the cluster denied the request", "log in")],
)
def test_an_expired_token_is_a_refusal(
    status: int,
    cause: str,
    step: str,
    server: Server,
    symph: Symph,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    server.status = status
    (tmp_path / "k").write_text(KUBECONFIG.replace("127.0.0.1:1", server.host))
    ended, said = symph("ls --on kube --kubeconfig k")
    assert ended == 6, said
    assert [part for part in (cause, step) if part not in said] == [], said


def test_a_registry_that_wants_a_login_says_how(server: Server, symph: Symph) -> None:  # noqa: F811 - the fixture
    server.status = 403
    symph("package e.yaml")
    ended, said = symph(f"push dist/rl-0.1.0.tgz oci://{server.host}/x")
    assert (ended, server.host in said, "helm registry login" in said) == (6, True, True), said


@pytest.mark.parametrize(
    ("earlier", "words", "status", "says"),
    [
        ([], "PUBLISH w", 6, ("currently checked out", "bare repository")),
        (["PUBLISH r --version 0.1.0"], "PUBLISH r --version 0.1.0", 7,
         ("rl 0.1.0 is already published", "remove --version")),
        (["PUBLISH r"], "rollback rl --to 0.9.0 --env dev --repo r", 8,
         ("never ran version 0.9.0", "symph history rl")),
        (["PUBLISH r"], "promote rl --from dve --to prod --repo r", 8, ("dve runs no rl", "symph status --env dve")),
        (["PUBLISH r"], "promote lr --from dev --to prod --repo r", 8, ("dev runs no lr", "symph status --env dev")),
    ],
)  # fmt: skip
def test_a_repository_says_what_it_does_not_take(
    earlier: list[str],
    words: str,
    status: int,
    says: tuple[str, ...],
    symph: Symph,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org"]
    subprocess.run([*git, "init", "-q", "--bare", "-b", "main", "r"], cwd=tmp_path, check=True)
    subprocess.run([*git, "init", "-q", "-b", "main", "w"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path / "w", check=True)
    for line in earlier:
        assert symph(line.replace("PUBLISH", PUBLISH))[0] == 0
    (tmp_path / "e.yaml").write_text(OK.replace("a.py", "b.py"))
    ended, said = symph(words.replace("PUBLISH", PUBLISH))
    assert ended == status, said
    assert [part for part in says if part not in said] == [], said
