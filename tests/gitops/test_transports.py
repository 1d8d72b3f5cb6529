"""Publishing over a real sshd and against real TLS: the headline is the error of ssh or TLS, and no command hangs.

Difficulty: git ends each of these failures with the same three sentences, and GnuTLS, OpenSSL, libcurl and OpenSSH
word the same errors differently.
"""

from __future__ import annotations

import http.server
import random
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.errors import ToolFailed
from symphony_charts.gitops.store.environments import events_in, pointers
from symphony_charts.gitops.store.store import Store
from symphony_charts.system.git import remote
from symphony_charts.system.git.program import Author
from symphony_charts.system.git.remote import Log, ToolUnreachable
from tests.gitops.samples import NOW, small_publish
from tests.gitops.servers import fake_ssh, history, http_server, make_bare, set_hook
from tests.gitops.ssh_server import SSHD, SshServer, make_key, ssh_server

ANN = Author(name="Ann <ann@example.org>")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    if SSHD is None:
        pytest.skip("sshd is not installed")
    with ssh_server(tmp_path_factory.mktemp("ssh") / "server") as running:
        yield running


def publish(url: str, folder: Path, notices: list[str] | None = None) -> None:
    store = Store(url, "main", root=folder / "cache", author=ANN, notice=([] if notices is None else notices).append)
    store.apply([small_publish("rl", 1)], now=NOW)


def test_ssh_publishes(server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", server.command())
    bare = make_bare(tmp_path / "charts.git")
    publish(server.url(bare), tmp_path)
    assert history(bare)[-1] == "publish team/rl 0.1.0 -> dev"


@pytest.mark.parametrize(
    ("case", "said", "step"),
    [
        ("key", "Permission denied (publickey)", "ssh -vT HOST; add one: ssh-add KEY"),
        ("unknown", "Host key verification failed", "ssh HOST"),
        ("changed", "Host key for [127.0.0.1]:", "ssh-keygen -R HOST"),
        ("port", "Connection refused", "git ls-remote"),
        ("name", "Could not resolve hostname", "git ls-remote"),
        ("repository", "does not appear to be a git repository", "git ls-remote"),
    ],
)
def test_what_ssh_said_is_the_headline_and_the_end(
    case: str, said: str, step: str, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "none").write_text("")
    other = " ".join(make_key(tmp_path / "other").split()[:2])
    (tmp_path / "changed").write_text(f"[127.0.0.1]:{server.port} {other}\n")
    hosts = tmp_path / {"unknown": "none", "changed": "changed"}.get(case, "")
    key = tmp_path / "other" if case == "key" else None
    command = server.command(key, hosts if hosts != tmp_path else None)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{command} -o BatchMode=yes")
    url = server.url(make_bare(tmp_path / "charts.git"))
    places = {"port": url.replace(f":{server.port}", ":1"), "name": "ssh://nobody.invalid/x.git"}
    notices: list[str] = []
    with pytest.raises(ToolFailed) as caught:
        publish(places.get(case, f"{url}x" if case == "repository" else url), tmp_path, notices)
    assert said in caught.value.what
    assert step in caught.value.next
    assert not isinstance(caught.value, ToolUnreachable)
    assert notices == []


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[str]:
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([*argv, *files], check=True, timeout=60, capture_output=True)
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    listener.handle_error = lambda *_request: None  # type: ignore[method-assign]  # the client hangs up
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"https://localhost:{listener.server_address[1]}/charts.git"
    listener.shutdown()
    listener.server_close()
    thread.join(5)


def test_a_certificate_that_nobody_signed_is_the_end(untrusted: str, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="certificate") as caught:
        publish(untrusted, tmp_path)
    assert "http.sslCAInfo" in caught.value.next
    assert not isinstance(caught.value, ToolUnreachable)


def test_what_is_asked_again_is_said_once(tmp_path: Path) -> None:
    make_bare(tmp_path / "charts.git")
    notices: list[str] = []
    faults = iter(["503"] * 2)
    with http_server(tmp_path) as running:
        running.fault = lambda _path, done: "" if done else next(faults, "")
        publish(f"{running.url}/charts.git", tmp_path, notices)
    (notice,) = notices
    assert "returned error: 503; trying again for 15 s" in notice


@pytest.mark.parametrize("fault", ["502", "cut"])
def test_every_request_is_made_again_while_the_connection_fails(fault: str, tmp_path: Path) -> None:
    """Also while files and the history are read, whoever asks."""
    make_bare(tmp_path / "charts.git")
    with http_server(tmp_path) as running:
        url = f"{running.url}/charts.git"
        for number in (1, 2):
            other = Store(url, "main", root=tmp_path / "other", author=ANN)
            other.apply([small_publish("rl", number)], now=NOW)
        chance = random.Random(1)
        running.fault = lambda _path, done: fault if not done and chance.random() < 0.25 else ""
        publish(url, tmp_path)
        store = Store(url, "main", root=tmp_path / "third", author=ANN)
        assert [each.pointer.version for each in pointers(store.tip(), "dev") if each.pointer] == ["0.1.0"]
        assert len(events_in(Log(store.cache), "rl", "dev")) == 3


def test_a_session_of_ssh_that_ends_without_a_word_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make_bare(tmp_path / "charts.git")
    calls = tmp_path / "calls"
    script = f"echo >> {calls}; [ $(($(wc -l < {calls}) % 3)) = 1 ] && exit 255"
    monkeypatch.setenv("GIT_SSH_COMMAND", fake_ssh(tmp_path, script))
    url = f"ssh://host{bare}"
    publish(url, tmp_path)
    store = Store(url, "main", root=tmp_path / "other", author=ANN)
    assert [each.pointer.version for each in pointers(store.tip(), "dev") if each.pointer] == ["0.1.0"]
    assert len(events_in(Log(store.cache), "rl", "dev")) == 1


def test_a_new_branch_on_a_server_of_protocol_0_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a server hangs up when a branch is missing, as an sshd does that accepts no GIT_PROTOCOL."""
    monkeypatch.setenv("GIT_SSH_COMMAND", fake_ssh(tmp_path, "unset GIT_PROTOCOL"))
    url = f"ssh://host{make_bare(tmp_path / 'charts.git')}"
    notices: list[str] = []
    store = Store(url, "review", base="main", root=tmp_path / "cache", author=ANN, notice=notices.append)
    store.apply([small_publish("rl", 1)], now=NOW)
    assert notices == []


def test_objects_that_git_itself_fetches_are_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git fetches what a partial clone lacks when it is read, after the loss of a pack also noted files."""
    fail = tmp_path / "fail"
    monkeypatch.setenv("GIT_SSH_COMMAND", fake_ssh(tmp_path, f"rm {fail} 2>/dev/null && exit 255"))
    url = f"ssh://host{make_bare(tmp_path / 'charts.git')}"
    publish(url, tmp_path)
    store = Store(url, "main", root=tmp_path / "other", author=ANN)
    pointers(store.tip(), "dev")
    shutil.rmtree(store.cache.repo / "objects/pack")
    tip = store.tip()
    fail.touch()
    assert [each.pointer.version for each in pointers(tip, "dev") if each.pointer] == ["0.1.0"]
    log = Log(store.cache)
    (commit,) = log.find("rl")
    fail.touch()
    assert log.read([f"{commit.oid}:README.md"]) == [b"charts\n"]
    assert not fail.exists()


def test_a_branch_that_wants_signatures_is_told_how_to_sign(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "charts.git")
    set_hook(bare, "pre-receive", "echo 'error: Commits must have verified signatures.' >&2\nexit 1")
    with pytest.raises(ToolFailed) as caught:
        publish(str(bare), tmp_path)
    assert "commit.gpgsign" in caught.value.next


@pytest.mark.parametrize(("fault", "is_hinted"), [("500", False), ("", True)])
def test_a_branch_for_review_helps_where_the_server_refused_and_not_where_it_failed(
    fault: str, is_hinted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", 0.2)
    bare = make_bare(tmp_path / "charts.git")
    set_hook(bare, "pre-receive", "exit 1")
    with http_server(tmp_path) as running:
        running.fault = lambda path, _done: fault if path.endswith("receive-pack") else ""
        with pytest.raises(ToolFailed) as caught:
            publish(f"{running.url}/charts.git", tmp_path)
    assert ("--branch NAME" in caught.value.next) == is_hinted
