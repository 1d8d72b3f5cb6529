"""A real sshd run by this user on its own port, which lets one key in to the repositories of this machine.

The login has an empty home: a shell that a test kills during the start-up files of the user's real home may leave a
lock there that blocks the next login.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")

_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 500:30:500
SetEnv HOME={folder}
"""

_SHELL = """\
#!/bin/sh
n=$(od -An -N1 -tu1 /dev/urandom)
[ $n -lt 8 ] && exit 255
[ $n -gt 239 ] && exec timeout -s KILL 0.$((n % 10)) sh -c "$SSH_ORIGINAL_COMMAND"
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


@dataclass(frozen=True, kw_only=True)
class SshServer:
    """A running server: `folder` holds its keys, `key` is the one that it lets in."""

    folder: Path
    port: int

    @property
    def key(self) -> Path:
        return self.folder / "user"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def url(self, path: Path) -> str:
        return f"ssh://{getuser()}@127.0.0.1:{self.port}{path}"

    def command(self, key: Path | None = None, known_hosts: Path | None = None) -> str:
        files = f"-i {key or self.key} -o UserKnownHostsFile={known_hosts or self.known_hosts}"
        return f"ssh -F /dev/null -o IdentitiesOnly=yes -o IdentityAgent=none {files}"

    def break_sessions(self) -> None:
        """End one session in ten: before git starts, during its work, or right after it."""
        shell, keys = self.folder / "shell", self.folder / "authorized"
        shell.write_text(_SHELL)
        shell.chmod(0o755)
        keys.write_text(f'command="{shell}" {keys.read_text()}')


def make_key(path: Path) -> str:
    """Create a key without a passphrase; return the line of its public half."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(argv, check=True, timeout=30)
    return path.with_suffix(".pub").read_text()


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    assert SSHD, "sshd is not installed"
    folder.mkdir(parents=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = SshServer(folder=folder, port=taken.getsockname()[1])
    (folder / "authorized").write_text(make_key(server.key))
    host = " ".join(make_key(folder / "host").split()[:2])
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {host}\n")
    (folder / "config").write_text(_CONFIG.format(folder=folder, port=server.port))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd chroots here before authentication
    argv = [SSHD, "-D", "-e", "-f", str(folder / "config")]
    with (folder / "log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log) as process:
        try:
            _wait_for(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(server: SshServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"sshd does not answer: {(server.folder / 'log').read_text()}")
