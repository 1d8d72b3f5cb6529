"""Isolate tests from the caller: its environment, signals, umask, locale, files, tmux and git settings."""

from __future__ import annotations

import locale
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The caller's variables that tests may see: paths of programs, network access, and options of the suite,
# which test modules read at import (SYMPH_SOAK); the fixture below removes all SYMPH_*.
_KEPT = {"CI", "HOME", "KUBEBUILDER_ASSETS", "KUBECONFIG", "LD_LIBRARY_PATH", "PATH", "XDG_CACHE_HOME"}
_KEPT |= {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}
_KEPT_PREFIXES = ("COV_", "GO", "HYPOTHESIS_", "PIP_", "PYENV_", "PYTEST_", "SSL_CERT_", "SYMPH_", "UV_")
_SET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8", "TERM": "xterm", "TZ": "UTC"}


def _reset_inherited_state() -> None:
    """Undo the state that this process inherited; the workers of xdist inherit the result, and do the same."""
    for name in list(os.environ):
        if name not in _KEPT and not name.startswith(_KEPT_PREFIXES) and not name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ.update(_SET, TMPDIR=_temporary_folder())
    tempfile.tempdir = os.environ["TMPDIR"]
    time.tzset()
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    os.umask(0o022)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        if signal.getsignal(number) is signal.SIG_IGN:
            # pytest keeps ignoring it, as under nohup; programs start with the default again.
            signal.signal(number, lambda *_: None)
    for descriptor in Path("/proc/self/fd").iterdir():
        if int(descriptor.name) > 2 and descriptor.exists():
            os.set_inheritable(int(descriptor.name), False)


def _temporary_folder() -> str:
    """Return a folder with a short path and without settings of `symph` in it or above."""
    for folder in map(Path, ("/tmp", "/var/tmp", "/dev/shm")):
        if folder.is_dir() and not any(list(place.glob(".symph.y*ml")) for place in (folder, *folder.parents)):
            return str(folder)
    raise pytest.UsageError("every temporary folder has a .symph.yaml in it or above, which tests would read")


_reset_inherited_state()

# No deadlines: the machine may be busy with other tests. A run that decides about a merge tries the same
# examples each time; all others draw new ones.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def private_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put state, sockets and home in a folder of this test; its path is short, since socket paths are limited."""
    folder = Path(tempfile.mkdtemp(prefix="symph-t-"))
    for name in [name for name in os.environ if name.startswith(("KUBE", "SYMPH_", "XDG_"))]:
        if name != "SYMPH_REQUIRE_TOOLS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("SYMPH_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("SYMPH_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    (folder / "home").mkdir()
    monkeypatch.chdir(folder / "home")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def need_tool() -> Callable[[str], str]:
    """Return the path of a program on PATH; without it, skip the test, or fail where every tool is required."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is not None:
            return path
        if os.environ.get("CI") or os.environ.get("SYMPH_REQUIRE_TOOLS"):
            pytest.fail(f"{name} is not installed, and this run may not skip")
        pytest.skip(f"{name} is not installed")

    return find


@pytest.fixture
def here(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[None]:
    """Run experiments on this machine; end them with the test."""
    from symphony_charts.local import up
    from symphony_charts.local.runs import live_runs

    need_tool("tmux")
    yield
    for run in live_runs():
        up.down(run)
