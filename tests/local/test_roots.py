"""Volumes at paths whose first folder this machine does not have, such as /data: in a root private to the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from symphony_charts.local import up as local_run
from tests.local.ordinary import Person
from tests.local.runs import log_of, python, start, until
from tests.local.test_ordinary_user import free, person, write  # noqa: F401 - fixtures
from tests.local.test_runs import STUBBORN, survivors_of

pytestmark = pytest.mark.usefixtures("tmux")

NAME = "symph-no-such-folder"
LOOK = f"""
import os
open('/{NAME}/x', 'a').write('1')
print(open('/{NAME}/x').read(), sorted(set(os.listdir('/')) - {{'{NAME}'}}), os.getcwd(), flush=True)
"""


def run_of(folder: Path, at: str, program: str = LOOK) -> str:
    process = {**python(program), "mounts": [{"volume": "v", "at": at}], "local": {"tty": False}}
    run = start(folder, volumes={"v": {"type": "empty_dir"}}, processes={"a": process}, configs={"c": {"text": "t"}})
    assert local_run.wait(run) == 0, log_of(run, "a")
    return log_of(run, "a").strip()


def test_a_folder_at_the_root_is_there_for_the_process_alone(tmp_path: Path) -> None:
    assert run_of(tmp_path, f"/{NAME}") == f"1 {sorted(os.listdir('/'))} {tmp_path}"  # noqa: PTH208 - names only
    assert not Path(f"/{NAME}").exists()


def test_a_folder_deeper_than_the_root_is_there_too(tmp_path: Path) -> None:
    assert run_of(tmp_path, f"/{NAME}/a/b", f"import os; print(os.listdir('/{NAME}/a'))") == "['b']"


def test_what_is_written_elsewhere_reaches_the_machine(tmp_path: Path) -> None:
    run_of(tmp_path, f"/{NAME}", f"open('{tmp_path}/out', 'w').write('kept')")
    assert (tmp_path / "out").read_text() == "kept"


def test_configs_are_still_where_they_belong(tmp_path: Path) -> None:
    assert run_of(tmp_path, f"/{NAME}", "print(open('/etc/symph/config/c').read())") == "t"


def test_an_ordinary_user_has_it_as_well(free: Person) -> None:  # noqa: F811 - the fixture
    spec = {
        "name": "plain",
        "volumes": {"v": {"type": "empty_dir"}},
        "processes": {"a": {"cmds": [f"echo hi >/{NAME}/x", f"cat /{NAME}/x"], "mounts": [_MOUNT]}},
    }
    done = free.symph("up", write(free, spec), "--wait")
    assert done.returncode == 0
    assert all(line.startswith("a * succeeded") for line in done.stderr.splitlines()), done.stderr
    assert free.symph("logs", "a", "plain").stdout == "hi\n"


_MOUNT = {"volume": "v", "at": f"/{NAME}"}


def test_stopping_finds_everything_in_such_a_root(tmp_path: Path) -> None:
    program = {**python(STUBBORN), "grace_period": 1, "mounts": [_MOUNT]}
    run = start(tmp_path, volumes={"v": {"type": "empty_dir"}}, processes={"a": program})
    until(lambda: "ready" in log_of(run, "a"))
    assert len(survivors_of(run)) >= 6
    local_run.down(run)
    assert survivors_of(run) == []
