"""Real Git servers for the tests: bare repositories, and `git http-backend` behind a real HTTP server with faults."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Called with the request's path before (`done` false) and after git has answered; "cut" closes the connection.
Fault = Callable[[str, bool], str]

_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "T",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "T",
    "GIT_COMMITTER_EMAIL": "t@example.org",
}


def git(folder: Path, *args: str, input: bytes | None = None) -> str:
    argv = ["git", "-C", str(folder), *args]
    ended = subprocess.run(argv, env=_ENV, input=input, capture_output=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def make_bare(
    path: Path, files: dict[str, str] | None = None, *, filters: bool = True, object_format: str = "sha1"
) -> Path:
    git_init = ["git", "init", "--quiet", "--bare", "--initial-branch=main", f"--object-format={object_format}"]
    subprocess.run([*git_init, str(path)], env=_ENV, check=True, timeout=30)
    if filters:
        git(path, "config", "uploadpack.allowFilter", "true")
        git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(path, "config", "http.receivepack", "true")
    files = {"README.md": "charts\n"} if files is None else files
    if files:
        commit(path, files, "first")
    return path


def commit(bare: Path, files: Mapping[str, str | bytes | None], message: str = "by hand") -> str:
    """Commit these files to main; None removes one."""
    has_main = git(bare, "for-each-ref", "refs/heads/main")
    parts = [b"commit refs/heads/main\ncommitter T <t@example.org> 1600000000 +0000\n", _data(message)]
    if has_main:
        parts.append(b"from refs/heads/main^0\n")
    for path, text in files.items():
        name = path.encode()
        parts.append(b"D %s\n" % name if text is None else b"M 100644 inline %s\n%s" % (name, _data(text)))
    git(bare, "fast-import", "--quiet", input=b"".join(parts))
    return git(bare, "rev-parse", "main").strip()


def _data(text: str | bytes) -> bytes:
    content = text.encode() if isinstance(text, str) else text
    return b"data %d\n%s\n" % (len(content), content)


def fake_ssh(folder: Path, script: str) -> str:
    """Return a command in the place of ssh that runs `script`, then the server's git on this machine."""
    command = folder / "ssh"
    command.write_text(f'#!/bin/sh\nfor last; do :; done\n{script}\nexec sh -c "$last"\n')
    command.chmod(0o755)
    return str(command)


def set_hook(bare: Path, name: str, script: str) -> None:
    hook = bare / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def history(bare: Path, branch: str = "main") -> list[str]:
    return git(bare, "log", "--reverse", "--format=%s", branch).splitlines()


def files_at(bare: Path, revision: str = "main") -> dict[str, str]:
    lines = git(bare, "ls-tree", "-r", revision).splitlines()
    return {line.split("\t")[1]: line.split()[0] for line in lines}


@dataclass
class HttpServer:
    """A running server: `url` of the folder of repositories, the current `fault`, and the requests being served."""

    url: str
    fault: Fault = lambda _path, _done: ""
    requests: set[object] = field(default_factory=set)


@contextmanager
def http_server(root: Path) -> Iterator[HttpServer]:
    backend = shutil.which("git-http-backend") or str(Path(_exec_path()) / "git-http-backend")
    assert Path(backend).is_file(), "git http-backend is not installed"
    server = HttpServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            server.requests.add(self)
            try:
                self._serve(self._body())
            finally:
                server.requests.discard(self)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _serve(self, body: bytes) -> None:
            if self._fails(done=False):
                return
            answer = subprocess.run([backend], input=body, env=self._cgi(len(body)), capture_output=True, check=False)
            if self._fails(done=True):
                return
            head, _, content = answer.stdout.partition(b"\r\n\r\n")
            headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n") if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _fails(self, *, done: bool) -> bool:
            kind = server.fault(self.path, done)
            if kind == "cut":
                self.close_connection = True
                self.connection.shutdown(2)
            elif kind:
                self.send_response(int(kind))
                self.send_header("Content-Length", "0")
                self.end_headers()
            return bool(kind)

        def _cgi(self, length: int) -> dict[str, str]:
            path, _, query = self.path.partition("?")
            env = {
                **_ENV,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "REMOTE_ADDR": "127.0.0.1",
                "REMOTE_USER": "writer",
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(length),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            encoding = self.headers.get("Content-Encoding")
            return {**env, "HTTP_CONTENT_ENCODING": encoding} if encoding else env

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle(self) -> None:
            # The client may disconnect, as killed clients do.
            with contextlib.suppress(ConnectionError, ValueError):
                super().handle()

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    server.url = f"http://127.0.0.1:{listener.server_address[1]}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(5)


def _exec_path() -> str:
    return subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
