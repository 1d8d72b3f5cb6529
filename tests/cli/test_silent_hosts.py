"""Connecting to an unresponsive host times out quickly, even if the timeout of answers is long."""

from __future__ import annotations

import select
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.kubernetes import connection
from symphony_charts.oci import transport
from symphony_charts.system import subprocess_runner
from symphony_charts.system.git import program
from tests.silent_host import silent_host

SPEC = "name: rl\nimage: busybox:1.37.0\nprocesses: {a: {cmds: ['true']}}\n"


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Record the timeout of each connection."""
    seen: list[float | None] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: tuple[str, int]) -> None:
        seen.append(self.gettimeout())
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setattr(connection, "_CONNECT_S", 0.2)
    monkeypatch.setattr(transport, "_CONNECT_S", 0.2)
    return seen


def test_a_cluster_is_tried_once(
    tmp_path: Path, attempts: list[float | None], capsys: pytest.CaptureFixture[str]
) -> None:
    with silent_host() as (host, port):
        attempts.clear()
        (tmp_path / "k").write_text(
            f"{{current-context: c, contexts: [{{name: c, context: {{cluster: c}}}}],"
            f" clusters: [{{name: c, cluster: {{server: 'http://{host}:{port}'}}}}]}}\n"
        )
        assert main(["ls", "--on", "kube", "--kubeconfig", str(tmp_path / "k")]) == 6
    assert attempts == [0.2]
    assert "the cluster of context c does not answer" in capsys.readouterr().err


def test_a_registry_is_tried_once(
    tmp_path: Path, attempts: list[float | None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rl.yaml").write_text(SPEC)
    assert main(["package", "rl.yaml"]) == 0
    with silent_host() as (host, port):
        attempts.clear()
        assert main(["push", "dist/rl-0.1.0.tgz", f"oci://{host}:{port}/charts"]) == 6
    assert attempts == [0.2]
    assert f"cannot reach {host}:{port}: timed out" in capsys.readouterr().err


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_places: Path) -> Path:
    """Enter a folder with a spec and settings, with a short wait before the warning that git does not answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess_runner, "_MOMENT_S", 0.2)
    monkeypatch.setattr(program, "REACH_S", 0.2)
    (tmp_path / "rl.yaml").write_text(f"{SPEC}team: ml\n")
    (tmp_path / ".symph.yaml").write_text("repository: {url: a.git, author: Ann <ann@example.org>}\n")
    return tmp_path


@pytest.mark.usefixtures("project")
def test_a_git_server_that_takes_no_connection_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    with silent_host() as (host, port):
        assert main(["publish", "rl.yaml", "--env", "dev", "--repo", f"http://{host}:{port}/r.git"]) == 6
    said = capsys.readouterr().err
    assert f"cannot reach http://{host}:{port}/r.git: {host}:{port} accepts no connection" in said


@pytest.mark.usefixtures("project")
def test_a_git_server_that_answers_late_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()

        def answer() -> None:
            # One connection is git's; the other only checks that the host accepts connections.
            both = [server.accept()[0], server.accept()[0]]
            asked = next(one for one in select.select(both, [], [], 60)[0] if one.recv(1024))
            both[1 - both.index(asked)].close()
            asked.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            asked.close()
            server.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert main(["publish", "rl.yaml", "--env", "dev", "--repo", f"http://{host}:{port}/r.git"]) == 6
        thread.join(60)
    said = capsys.readouterr().err
    assert "503" in said
    assert "accepts no connection" not in said


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url.file:///srv/.insteadOf", "https://git.example.org/"),
        ("http.proxy", "http://proxy:3128"),
        ("core.sshCommand", "ssh -J bastion"),
    ],
)
def test_a_configured_route_of_git_is_not_probed(
    key: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "git@git.example.org:team/c.git" if key == "core.sshCommand" else "https://git.example.org/team/c.git"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    subprocess.run(["git", "config", "--file", str(tmp_path / "config"), key, value], check=True)
    assert program.git_address(url) is None
