"""Restarts: by hand, and by `up` of a running experiment."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.local import up as local_run
from symphony_charts.local.plan.scripts import read_environment
from symphony_charts.local.run_folder import rewrite
from symphony_charts.local.runs import Run
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start, supervisor_pid, until, wrapper_pids

pytestmark = pytest.mark.usefixtures("here")

SAY = "import os; print('v' + os.environ.get('V', '-'), flush=True); input()"


def wrappers(run: Run) -> list[int]:
    return wrapper_pids(run)


def two(value: str) -> dict[str, object]:
    return {"a": {**python(SAY), "env": {"V": value}}, "b": python(SAY)}


def test_up_again_restarts_only_what_changed(tmp_path: Path) -> None:
    run = start(tmp_path, processes=two("1"))
    until(lambda: log_of(run, "a") == "v1\n")
    before = wrappers(run)
    assert start(tmp_path, processes=two("2")) == run
    until(lambda: log_of(run, "a") == "v1\nv2\n")
    after = wrappers(run)
    assert before[0] != after[0]
    assert before[1] == after[1]


@pytest.mark.parametrize("value", ["1", "2"])
def test_a_run_that_ends_while_it_is_compared_is_joined_or_followed_by_another(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def processes_with(value: str) -> dict[str, object]:
        return {"a": {"cmds": ["until [ -e go ]; do sleep 0.05; done"], "env": {"V": value}}}

    def rewritten(run: Run, *rest: Any) -> None:
        (tmp_path / "go").touch()
        until(lambda: not run.is_live)
        rewrite(run, *rest)

    run = start(tmp_path, processes=processes_with("1"))
    monkeypatch.setattr(local_run, "rewrite", rewritten)
    assert (start(tmp_path, processes=processes_with(value)) == run) == (value == "1")
    assert not (run.process_dir(0) / "start").exists()


def test_up_from_another_shell_restarts_nothing_and_says_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, processes=two("1"))
    before, path = wrappers(run), os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path}:{path}")
    monkeypatch.setenv("LANG", "xx")
    assert start(tmp_path, processes=two("1")) == run
    assert wrappers(run) == before
    (note,) = run.plan().notes
    assert note.startswith("exp keeps the PATH and LANG of its start")
    # A process that restarts for another reason gets them too.
    start(tmp_path, processes=two("2"))
    until(lambda: wrappers(run)[0] != before[0])
    script = (run.process_dir(0) / "start").read_text(encoding="utf-8")
    assert (read_environment(script)["PATH"], wrappers(run)[1]) == (path, before[1])


def test_a_dry_run_of_up_again_says_what_would_restart_and_restarts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(tmp_path, processes=two("1"))
    before = wrappers(run)
    experiment = from_data({"name": "exp", "processes": two("2")})
    assert local_run.up(experiment, allocate(experiment), folder=tmp_path, dry_run=True) is None
    assert capsys.readouterr().out == "restart a: env V\n"
    assert wrappers(run) == before


def test_a_changed_config_file_is_seen_after_up_again(tmp_path: Path) -> None:
    show = "import os; print(open(os.environ['SYMPH_CONFIG_DIR'] + '/c').read(), flush=True); input()"
    run = start(tmp_path, processes={"a": python(show)}, configs={"c": {"text": "old"}})
    until(lambda: log_of(run, "a") == "old\n")
    start(tmp_path, processes={"a": python(show)}, configs={"c": {"text": "new"}})
    until(lambda: log_of(run, "a") == "old\nnew\n")


def test_a_changed_secret_restarts_only_the_processes_that_see_it(tmp_path: Path) -> None:
    show = "import os; print(open(os.environ['SYMPH_SECRETS_DIR'] + '/k').read(), flush=True); input()"
    (tmp_path / "k").write_text("old")

    def up() -> Run:
        return start(tmp_path, processes={"a": python(show), "b": python(SAY)}, secrets=[{"file": "k", "only": ["a"]}])

    run = up()
    until(lambda: log_of(run, "a") == "old\n")
    before = wrappers(run)
    (tmp_path / "k").write_text("new")
    up()
    until(lambda: log_of(run, "a") == "old\nnew\n")
    assert [one == other for one, other in zip(before, wrappers(run), strict=True)] == [False, True]


def test_a_changed_secret_is_new_at_each_of_its_places(tmp_path: Path) -> None:
    show = "print(*(open(f).read() for f in ('/etc/secrets/k', '/run/secrets/word', '/srv/x/k')), flush=True); input()"
    blind = (
        "import pathlib as p; f = p.Path('/run/secrets/word'); print(f.exists() and f.read_text(), flush=True); input()"
    )
    secrets = [{"file": "k", "only": ["a"], "also_at": ["/run/secrets/word", "/srv/x/k"]}, {"file": "all"}]
    (tmp_path / "all").write_text("")
    for word, seen in (("old", "old old old\n"), ("new", "old old old\nnew new new\n")):
        (tmp_path / "k").write_text(word)
        run = start(tmp_path, processes={"a": python(show), "b": python(blind)}, secrets=secrets)
        until(lambda: log_of(run, "a") == seen)  # noqa: B023 - called at once
    # The placeholder for mounts is empty.
    until(lambda: log_of(run, "b") in ("False\n", "\n"))


def test_a_config_file_that_is_declared_no_more_is_gone_after_up_again(tmp_path: Path) -> None:
    show = "import os; print(sorted(os.listdir(os.environ['SYMPH_CONFIG_DIR'])), flush=True); input()"
    run = start(tmp_path, processes={"a": python(show)}, configs={"c": {"text": "1"}, "d": {"text": "2"}})
    until(lambda: log_of(run, "a") == "['c', 'd']\n")
    start(tmp_path, processes={"a": python(show)}, configs={"c": {"text": "1"}})
    until(lambda: log_of(run, "a") == "['c', 'd']\n['c']\n")


def test_processes_that_are_restarted_together_come_in_the_order_of_their_start(tmp_path: Path) -> None:
    serve = """
import os, socket, time
time.sleep(0.7)
server = socket.create_server((os.environ["SYMPH_X_HOST"], int(os.environ["SYMPH_X_PORT"])))
time.sleep(60)
"""
    dial = """
import os, socket
socket.create_connection((os.environ["SYMPH_X_HOST"], int(os.environ["SYMPH_X_PORT"]))).close()
print("connected", flush=True)
input()
"""
    run = start(tmp_path, processes={"c": {**python(dial), "connects": "x"}, "s": {**python(serve), "binds": "x"}})
    until(lambda: log_of(run, "c") == "connected\n")
    local_run.restart(run, [0, 1])
    until(lambda: log_of(run, "c") == "connected\nconnected\n")
    assert [item.restarts for item in run.state().processes] == [0, 0]


def test_a_supervisor_that_takes_over_keeps_the_order_of_a_restart(tmp_path: Path) -> None:
    slow = "import time; time.sleep(1)"
    run = start(
        tmp_path,
        processes={
            "a": python(slow),
            "b": {**python("print('ran', flush=True)"), "after": "a"},
            "c": python("input()"),
        },
    )
    until(lambda: log_of(run, "b") == "ran\n")
    local_run.restart(run, [0, 1])
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    local_run.ensure_supervised(run)
    until(lambda: log_of(run, "b") == "ran\nran\n")


def test_up_again_with_other_terminals_or_processes_alone_is_refused(tmp_path: Path) -> None:
    start(tmp_path, processes={"a": python("input()")})
    with pytest.raises(Conflict, match="other mounts or terminals"):
        start(tmp_path, processes={"a": python("input()")}, local={"tty": False})
    with pytest.raises(Conflict, match="it keeps none of the processes"):
        start(tmp_path, processes={"b": python("input()")})


def test_a_restart_is_no_failure_and_begins_the_count_again(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python(SAY), "restart": "never"}})
    until(lambda: log_of(run, "a") == "v-\n")
    local_run.restart(run, [0])
    until(lambda: log_of(run, "a") == "v-\nv-\n")
    state = run.state()
    assert state.failed is None
    assert (state.processes[0].restarts, state.processes[0].phase) == (0, "running")


def test_a_restart_of_a_run_that_is_over_is_refused(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python("pass")})
    local_run.wait(run)
    with pytest.raises(NotFound, match="has ended"):
        local_run.restart(run, [0])
