"""A real registry (the program `docker-registry`) on a free port of this machine, for one test or many."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.waiting import eventually

_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {root}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"{tls}}}
{auth}
"""


@contextlib.contextmanager
def running_registry(program: str, folder: Path, htpasswd: str = "", tls: str = "") -> Iterator[str]:
    """Yield ``host:port`` of a registry that keeps its content below `folder`.

    With `htpasswd` it requires a password; `tls` is the map of its certificate, as in its settings.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    auth = ""
    if htpasswd:
        (folder / "htpasswd").write_text(htpasswd)
        auth = f"auth: {{htpasswd: {{realm: here, path: {folder / 'htpasswd'}}}}}"
    config = folder / "registry.yaml"
    config.write_text(
        _CONFIG.format(root=folder / "registry", port=port, auth=auth, tls=f", tls: {tls}" if tls else "")
    )
    with (
        (folder / "registry.log").open("wb") as log,
        subprocess.Popen(
            [program, "serve", str(config)],
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/bin:/bin", "OTEL_TRACES_EXPORTER": "none"},
        ) as process,
    ):
        try:
            eventually(lambda: process.poll() is not None or _listens(port), 20, "the registry did not start")
            assert process.poll() is None
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False
