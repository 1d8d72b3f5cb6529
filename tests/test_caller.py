"""The suite passes with any signals, umask, descriptors, environment and settings files of its caller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
# Each fails if it sees the caller's state below.
_SELECTION = (
    "tests/cli/test_run.py::test_without_a_terminal_it_ends_what_it_runs_but_not_with_the_connection",
    "tests/cli/test_narrow_terminals.py::test_no_table_is_wider_than_the_terminal",
    "tests/cli/test_status.py::test_with_nothing_to_ask_it_says_so_and_is_content",
    "tests/settings/test_project.py::test_the_nearest_settings_above_are_taken",
    "tests/spec/test_files.py::test_config_files_are_read_from_the_folder_of_the_spec",
)
_HOSTILE = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGUSR1))
os.umask(int(sys.argv[1], 8))
os.set_inheritable(os.open("/dev/null", os.O_RDWR), True)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
_ENVIRONMENT = {
    "COLUMNS": "20",
    "FORCE_COLOR": "1",
    "GIT_DIR": "/nonexistent",
    "KUBERNETES_SERVICE_HOST": "192.0.2.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "LC_ALL": "C",
    "NO_COLOR": "1",
    "PAGER": "false",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONUTF8": "0",
    "SYMPH_OUTPUT": "json",
    "SYMPH_STATE_DIR": "/nonexistent",
    "TERM": "dumb",
    "TMUX": "/nonexistent,1,0",
    "TZ": "Asia/Kathmandu",
    "XDG_CONFIG_HOME": "/nonexistent",
}


def test_a_hostile_caller_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[commit]\ngpgsign = true\n[core]\nautocrlf = true\n")
    (tmp_path / ".symph.yaml").write_text("[broken")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), **_ENVIRONMENT}
    # In the controller, and then in a worker, which inherits the controller's state.
    for umask, words in (("077", ["-n", "0", _SELECTION[0]]), ("000", ["-n", "1", *_SELECTION])):
        argv = [sys.executable, "-c", _HOSTILE, umask, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
        done = subprocess.run(argv, cwd=_ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
