"""On tmux an experiment keeps the names that its launcher wrote, and is shown on the tmux server that it names."""

# Symphony's names exist only while the fixture holds them, so imports are inside the tests.
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from symphony_charts.errors import SpecError
from symphony_charts.local.runs import live_runs
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("symphony", "here")

Tmux = Callable[..., list[str]]


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tmux]:
    """Yield a function that runs tmux on the server `shown` in a private folder and returns its output lines."""
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))

    def ask(*words: str) -> list[str]:
        argv = ["tmux", "-L", "shown", "-f", "/dev/null", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()

    yield ask
    ask("kill-server")


def described(name: str, server: str | None = None, line: str = "sleep 60") -> tuple[Any, Any]:
    """Return a cluster, and an experiment with a group and a lone process whose names are invalid in Kubernetes."""
    from symphony.engine import Cluster

    cluster = Cluster.new("tmux", server_name=server)
    exp = cluster.new_experiment(name)
    exp.new_process_group("G_1").new_process("my_proc", cmds=["echo of $SYMPH_EXPERIMENT", line])
    exp.new_process("Lone", cmds=["echo alone", line])
    return cluster, exp


def test_what_a_launcher_called_its_parts_is_what_its_cluster_calls_them() -> None:
    cluster, exp = described("my_exp")
    assert (exp.name, exp.get_process("Lone").name) == ("my_exp", "Lone")
    cluster.launch(exp)
    live = {"G_1": {"my_proc": {"status": "live"}}, None: {"Lone": {"status": "live"}}}
    eventually(lambda: cluster.describe_experiment("my_exp") == live)
    assert cluster.list_experiments() == ["my_exp"]
    eventually(lambda: cluster.get_log("my_exp", "my_proc", "G_1") == ["of my-exp"])
    assert cluster.exec_command("my_exp", "my_proc", ["true"], "G_1") == 0
    status = cluster.watcher.describe("my_exp")
    assert [(status.name, one.path) for one in status.instances] == [("my_exp", "G_1/my_proc"), ("my_exp", "Lone")]
    assert {line.process for line in cluster.logs("my_exp")} == {"G_1/my_proc", "Lone"}
    cluster.delete("my_exp")
    assert cluster.list_experiments() == []


def test_a_process_in_the_foreground_writes_under_the_name_of_its_launcher(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new("subproc", stdout_mode="file", stderr_mode="none", log_dir=str(tmp_path / "logs"))
    exp = cluster.new_experiment("my_exp")
    exp.new_process_group("G_1").new_process("my_proc", cmd="echo here")
    exp.new_process("Lone.1", cmd="echo alone")
    cluster.launch(exp)
    assert sorted(file.name for file in (tmp_path / "logs").iterdir()) == ["G_1--my_proc.out", "Lone.1.out"]
    printing = Cluster.new("subproc", stdout_mode="print", stderr_mode="none").new_experiment("my_exp")
    printing.new_process("my_proc", cmd="echo here")
    Cluster.new("subproc", stdout_mode="print", stderr_mode="none").launch(printing)
    assert "my_proc | here" in capsys.readouterr().out
    assert type(exp).load_dict(exp.dump_dict()).dump_dict() == exp.dump_dict()


def test_a_dump_keeps_the_names_and_gives_them_back() -> None:
    from symphony.tmux import TmuxExperimentSpec

    dump = described("my_exp")[1].dump_dict()
    (group,) = dump["process_groups"]
    assert (dump["name"], group["name"], group["processes"][0]["name"]) == ("my_exp", "G_1", "my_proc")
    assert TmuxExperimentSpec.load_dict(dump).dump_dict() == dump


def test_two_names_that_would_be_one_are_refused() -> None:
    _, exp = described("my_exp")
    exp.new_process("lone", cmds=["true"])
    with pytest.raises(SpecError, match="'Lone' and 'lone' would have the same process name"):
        exp.finish()


def test_an_experiment_is_there_until_it_is_deleted() -> None:
    from symphony.errors import ResourceExistsError

    cluster, exp = described("my_exp", line="true")
    cluster.launch(exp)
    eventually(lambda: live_runs() == [])
    with pytest.raises(ResourceExistsError, match='"my_exp" is there already'):
        cluster.launch(exp)
    assert (cluster.current_experiment(), cluster.fuzzy_match_experiment("my_exp")) == ("my_exp", (["my_exp"], True))
    cluster.delete("my_exp")
    cluster.launch(exp)


def test_what_has_ended_in_the_foreground_is_not_there_any_more() -> None:
    from symphony.engine import Cluster

    foreground = Cluster.new("subproc", stdout_mode="none", stderr_mode="none")
    once = foreground.new_experiment("once")
    once.new_process("p", cmd="true")
    foreground.launch(once)
    cluster, exp = described("my_exp", line="true")
    cluster.launch(exp)
    eventually(lambda: live_runs() == [])
    assert (cluster.current_experiment(), cluster.list_experiments()) == ("my_exp", ["my_exp"])
    cluster.launch(described("once")[1])
    assert cluster.list_experiments() == ["my_exp", "once"]


def test_nothing_is_started_in_the_foreground_into_a_run_of_its_name() -> None:
    from symphony.engine import Cluster
    from symphony.errors import ResourceExistsError

    cluster, exp = described("my_exp")
    cluster.launch(exp)
    again = Cluster.new("subproc", stdout_mode="none", stderr_mode="none")
    other = again.new_experiment("my_exp")
    other.new_process("other", cmd="true")
    with pytest.raises(ResourceExistsError, match='"my_exp" is there already'):
        again.launch(other)
    assert len(live_runs()) == 1


def test_a_server_that_a_launcher_names_shows_its_experiments_and_no_other_session_is_touched(
    tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symphony.errors import ResourceExistsError

    cluster, exp = described("my_exp", "shown")
    cluster.launch(exp)
    titles = ("list-windows", "-t", "=my_exp", "-F", "#{window_name}")
    assert tmux(*titles) == ["__main__", "G_1:my_proc", "Lone"]
    eventually(lambda: "alone" in tmux("capture-pane", "-p", "-t", "=my_exp:Lone"))
    empty = cluster.new_experiment("empty_exp")
    cluster.launch(empty)
    assert tmux("list-windows", "-t", "=empty_exp", "-F", "#{window_name}") == ["__main__"]
    assert cluster.describe_experiment("empty_exp") == {}
    tmux("new-session", "-d", "-s", "mine")
    _, mine = described("mine", "shown")
    with pytest.raises(ResourceExistsError, match="is not of symph"):
        cluster.launch(mine)
    cluster.delete("my_exp")
    assert tmux("list-sessions", "-F", "#{session_name}") == ["empty_exp", "mine"]
    monkeypatch.delenv("TMUX_TMPDIR")
    assert main(["rm", "empty-exp", "--yes"]) == 0
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    assert tmux("list-sessions", "-F", "#{session_name}") == ["mine"]


@pytest.mark.parametrize("server", ["../outside", "a/b", "a\nb"])
def test_a_name_that_leads_out_of_tmuxs_folder_is_refused(server: str) -> None:
    from symphony.engine import Cluster

    with pytest.raises(ValueError, match="is not a valid name of a tmux server"):
        Cluster.new("tmux", server_name=server)


def test_options_behind_a_module_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text("import sys\nprint(sys.argv[1:])\n")
    argv = ["-m", "symphony_charts.compat", "-m", "says", "-x", "a", "--", "--unroll", "5"]
    done = subprocess.run([sys.executable, *argv], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "['-x', 'a', '--', '--unroll', '5']\n"
