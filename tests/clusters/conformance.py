"""Behaviour that all backends share: one suite, run on tmux here and on a real API server in tests/e2e.

A backend's test module imports these classes and provides the fixture `place`.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.backend.protocol import chosen_at
from symphony_charts.backend.status import ExperimentStatus, LogQuery
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import CheckFailed, Conflict, NotFound, ToolFailed
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec import files
from symphony_charts.spec.data import from_data
from tests.symph import symph
from tests.waiting import eventually

READY_S = 60.0

# A server that binds its configured address, and reports when it serves.
SERVER = (
    "import http.server, os; print('serving', flush=True); host, port = os.environ['SYMPH_WEB_ADDR'].split(':'); "
    "http.server.HTTPServer((host, int(port)), http.server.SimpleHTTPRequestHandler).serve_forever()"
)


@dataclass(kw_only=True)
class Place:
    """A backend under test: its cluster, and the flags that make `symph` use the same one."""

    cluster: Cluster
    flags: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    def launch(
        self, name: str = "exp", *, force: bool = False, until: str = "", on_failure: str = "stop", **processes: Any
    ) -> None:
        """Start an experiment of these processes, or commands, and wait until it is in a state."""
        records = {key: {"command": value} if isinstance(value, list) else value for key, value in processes.items()}
        data = {"name": name, "image": "python:3.12-slim", "processes": records, "on_failure": on_failure}
        self.cluster.launch(from_data(data), force=force)
        if until:
            self.wait(until, name)

    def symph(self, verb: str, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        before, dashes, after = list(words), [], []
        if "--" in words:
            before, dashes, after = list(words[: words.index("--")]), ["--"], list(words[words.index("--") + 1 :])
        done = symph(verb, *before, *self.flags, *dashes, *after, stdin=stdin or "", env=self.env)
        # pytest shows it if the test fails.
        sys.stdout.write(f"{done}\n")
        return done

    def items(self, verb: str, *words: str) -> list[dict[str, Any]]:
        done = self.symph(verb, *words, "-o", "json")
        assert done.returncode == 0, done.stderr
        items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
        return items

    def wait(self, condition: str, name: str = "exp") -> ExperimentStatus | None:
        return self.cluster.wait(name, condition, timeout_s=READY_S)


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


FOREVER = sh("echo begun; exec sleep 300")


class TestStates:
    """States of an experiment."""

    def test_what_runs_is_listed_by_name_with_symphonys_columns_and_the_same_fields_everywhere(
        self, place: Place
    ) -> None:
        place.launch(a=FOREVER, b={"command": FOREVER, "replicas": 2}, until="ready")
        assert [(item["name"], item["phase"]) for item in place.items("ls")] == [("exp", "running")]
        assert place.symph("ls", "-o", "wide").stdout.split()[:3] == ["NAME", "PHASE", "AGE"]
        done = place.symph("process", "exp")
        assert done.stdout.splitlines()[0].split()[:5] == ["GROUP", "NAME", "READY", "RESTARTS", "STATE"]
        assert [item["name"] for item in place.items("p", "exp")] == ["a", "b-0", "b-1"]
        item = place.items("lsp", "exp")[0]
        fields = "gpus group index name phase place pod process ready reason restarts state status tries"
        assert sorted(item) == fields.split()
        assert (item["phase"], item["ready"], item["restarts"]) == ("running", True, 0)
        waited = place.symph("wait", "exp", "--for=succeeded", "--timeout", "1")
        assert waited.returncode == 6, waited.stderr
        assert "is not succeeded after 1 s" in waited.stderr

    def test_describe_counts_replicas_that_run_succeeded_and_failed(self, place: Place) -> None:
        place.launch(
            run={"command": FOREVER, "replicas": 2},
            good={"command": sh("exit 0"), "replicas": 2},
            bad={"command": sh("exit 3"), "restart": "never"},
            on_failure="continue",
        )
        eventually(lambda: _counts(place) == {"run": (2, 0, 0), "good": (0, 2, 0), "bad": (0, 0, 1)}, 60, "the counts")
        status = place.cluster.describe("exp")
        assert status is not None
        assert [one.status for one in status.instances if one.process == "bad"] == [3]

    def test_describe_of_what_is_not_there_is_none_and_status_8(self, place: Place) -> None:
        assert place.cluster.describe("nothing") is None
        done = place.symph("describe", "nothing")
        assert (done.returncode, done.stdout) == (8, "")

    def test_describe_says_who_holds_it_and_what_happened(self, place: Place) -> None:
        place.launch(a=FOREVER, until="ready")

        def record() -> dict[str, Any]:
            return dict(json.loads(place.symph("describe", "exp", "-o", "json").stdout))

        assert record()["heldBy"]
        # A cluster reports it separately from the state, possibly later.
        eventually(lambda: "Started" in [event["reason"] for event in record()["events"]], 60, "the event")

    def test_groups_keep_their_members_together(self, place: Place) -> None:
        data = {
            "name": "exp",
            "image": "python:3.12-slim",
            "groups": {"g": {"processes": {"x": {"command": FOREVER}, "y": {"command": FOREVER}}}},
        }
        place.cluster.launch(from_data(data))
        place.wait("ready")
        assert [(item["group"], item["name"]) for item in place.items("p")] == [("g", "x"), ("g", "y")]
        assert place.cluster.find_process("exp", "x") == ["g"]
        assert place.symph("logs", "g/x", "exp").returncode == 0
        assert place.symph("logs", "other/x", "exp").returncode == 8

    def test_events_begin_with_the_oldest(self, place: Place) -> None:
        place.launch(a=sh("exit 0"), until="succeeded")
        times = [item["time"] for item in place.items("events", "exp")]
        assert times
        assert times == sorted(times)

    def test_top_shows_the_last_line_of_each_process(self, place: Place) -> None:
        place.launch(a=sh("echo one; echo two; exec sleep 300"), until="ready")
        eventually(lambda: place.items("top", "exp")[0]["lastLine"] == "two", 60, "the last line")

    def test_waiting_ends_when_all_have_succeeded(self, place: Place) -> None:
        place.launch(a=sh("sleep 0.5"))
        done = place.symph("wait", "exp", "--for=succeeded", "--timeout", "60")
        assert (done.returncode, done.stdout) == (0, "exp succeeded\n")

    def test_waiting_for_what_can_no_longer_come_fails_at_once_with_the_reason(self, place: Place) -> None:
        place.launch(a={"command": sh("exit 5"), "restart": "never"})
        with pytest.raises(CheckFailed, match="failed 5"):
            place.wait("succeeded")

    def test_a_name_may_be_written_loosely_where_it_fits_only_one(self, place: Place) -> None:
        place.launch("rl-first", a=FOREVER)
        place.launch("rl-last", a=FOREVER)
        assert place.symph("p", "first", "-o", "name").stdout == "a\n"
        assert place.symph("p", "zzz").returncode == 8
        # Nobody can be asked without a terminal.
        done = place.symph("p", "rl")
        assert done.returncode == 2
        assert "rl-first, rl-last" in done.stderr

    def test_the_current_experiment_is_ours_to_choose(self, place: Place) -> None:
        place.launch("one", a=FOREVER)
        place.launch("two", b=FOREVER)
        assert place.symph("switch-experiment", "one").returncode == 0
        assert place.symph("se").stdout == "one\n"
        assert place.symph("p", "-o", "name").stdout == "a\n"
        assert place.symph("e", "nothing").returncode == 8
        assert chosen_at(place.cluster.watcher.place) == "one"


class TestLogs:
    """Output of processes."""

    def test_lines_of_many_processes_are_merged_in_order_of_time(self, place: Place) -> None:
        place.launch(a=sh("echo first; sleep 1.5; echo third"), b=sh("sleep 0.7; echo second"), until="succeeded")
        lines = list(place.cluster.logs("exp"))
        assert [line.time for line in lines] == sorted(line.time for line in lines)
        assert {line.process for line in lines} == {"a", "b"}
        shown = place.symph("logs", "exp").stdout.splitlines()
        assert sorted(shown) == ["a | first", "a | third", "b | second"]

    def test_one_replica_is_named_by_its_number(self, place: Place) -> None:
        place.launch(w={"command": sh("echo $SYMPH_INDEX"), "replicas": 3}, until="succeeded")
        assert place.symph("logs", "w/2", "exp").stdout == "2\n"
        assert place.symph("logs", "w-1", "exp").stdout == "1\n"
        done = place.symph("logs", "w/9", "exp")
        assert done.returncode == 8
        assert 'no process "w/9"' in done.stderr

    def test_tail_and_regex_choose_lines(self, place: Place) -> None:
        place.launch(a=sh("for i in 1 2 3 4 5; do echo line $i; done"), until="succeeded")
        assert place.symph("logs", "a", "exp", "--tail", "2").stdout == "line 4\nline 5\n"
        assert place.symph("logs", "a", "exp", "--regex", "[24]").stdout == "line 2\nline 4\n"
        assert place.symph("logs", "a", "exp", "--tail", "0").stdout == ""

    def test_since_and_until_choose_a_span(self, place: Place) -> None:
        place.launch(a=sh("echo early; sleep 2.5; echo late"), until="succeeded")
        early, late = place.cluster.logs("exp")
        middle = datetime.fromtimestamp((early.time + late.time) / 2, timezone.utc)
        assert list(place.cluster.log_iter("exp", "a", since=middle)) == ["late\n"]
        assert list(place.cluster.log_iter("exp", "a", until=middle)) == ["early\n"]

    def test_following_gives_every_line_once_and_ends_with_the_experiment(self, place: Place) -> None:
        place.launch(a=sh("for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.2; done"))
        done = place.symph("logs", "-f", "a", "exp")
        assert done.stdout.splitlines() == [f"line {number}" for number in range(1, 9)]

    def test_following_goes_on_over_restarts(self, place: Place) -> None:
        # It succeeds in the end: a Job without retries left deletes the pod, and with it the unread output.
        program = "echo try; test -e /mnt/tried && exit; touch /mnt/tried; sleep 0.3; exit 1"
        kept = [{"at": "/mnt", "empty_dir": None}]
        place.launch(a={"command": sh(program), "restart": "on-failure", "retries": 3, "mounts": kept})
        lines = [line.text for line in place.cluster.logs("exp", LogQuery(follow=True))]
        assert lines == ["try\n", "try\n"]

    def test_lines_keep_their_whitespace_and_ends(self, place: Place) -> None:
        place.launch(a=sh(r"printf '  two  \n\n\ttab\n'"), until="succeeded")
        assert list(place.cluster.log_iter("exp", "a")) == ["  two  \n", "\n", "\ttab\n"]

    def test_each_call_is_a_new_iterator(self, place: Place) -> None:
        place.launch(a=sh("echo one; echo two"), until="succeeded")
        first = place.cluster.log_iter("exp", "a")
        assert next(first) == "one\n"
        assert list(place.cluster.log_iter("exp", "a")) == ["one\n", "two\n"]
        assert list(first) == ["two\n"]

    def test_a_stream_that_is_not_kept_and_a_process_that_is_not_there_are_refused(self, place: Place) -> None:
        place.launch(a=sh("echo one"))
        with pytest.raises(ValueError, match="combined"):
            place.cluster.log_iter("exp", "a", streams="stderr")
        assert place.symph("logs", "a", "exp", "--stream", "stderr").returncode == 2
        unknown = place.symph("logs", "nobody", "exp")
        assert (unknown.returncode, "its processes: a" in unknown.stderr) == (8, True)

    def test_tailing_ends_only_at_a_final_state(self, place: Place) -> None:
        place.launch(a=sh("echo one; sleep 2; echo two"), until="ready")
        assert list(place.cluster.log_iter("exp", "a", should_tail=True)) == ["one\n", "two\n"]
        status = place.cluster.describe("exp")
        assert status is not None
        assert status.phase == "succeeded"


class TestFiles:
    """Access to files and programs of a running process."""

    def test_a_command_has_the_environment_of_the_process_and_gives_its_status(self, place: Place) -> None:
        place.launch(a=FOREVER, until="ready")
        done = place.symph("exec", "a", "exp", "--", "sh", "-c", "echo $SYMPHONY_ROLE; echo bad >&2; exit 7")
        assert (done.returncode, done.stdout, done.stderr) == (7, "a\n", "bad\n")
        assert place.symph("exec", "exp", "a", "--", "echo", "the other order").stdout == "the other order\n"

        assert place.symph("exec", "a", "exp").returncode == 2

    def test_a_command_and_a_shell_read_our_input_to_its_end(self, place: Place) -> None:
        place.launch(a=FOREVER, until="ready")
        done = place.symph("x", "a", "exp", "--", "wc", "-c", stdin="x" * 100_000)
        assert done.stdout.strip() == "100000", done.stderr
        assert "role a" in place.symph("ssh", "a", "exp", stdin='echo "role $SYMPHONY_ROLE"\n').stdout

    def test_a_command_in_what_has_ended_is_a_conflict(self, place: Place) -> None:
        place.launch(a=sh("exit 0"), until="succeeded")
        assert place.symph("exec", "a", "exp", "--", "true").returncode == 7

    def test_files_and_folders_are_copied_both_ways(self, place: Place, tmp_path: Path) -> None:
        place.launch(a=FOREVER, until="ready")
        there = f"/tmp/symph-conformance-{tmp_path.name}-{time.time_ns()}"
        source = tmp_path / "in"
        (source / "deep").mkdir(parents=True)
        (source / "deep" / "data").write_bytes(bytes(range(256)) * 700)
        assert place.symph("scp", str(source), f"a:{there}/x", "exp").returncode == 0
        assert place.symph("cp", f"a:{there}/x", str(tmp_path / "out"), "exp").returncode == 0
        assert (tmp_path / "out/deep/data").read_bytes() == bytes(range(256)) * 700
        place.symph("exec", "a", "exp", "--", "rm", "-rf", there)

    def test_a_copy_has_exactly_one_remote_side_and_what_is_not_there_is_status_8(
        self, place: Place, tmp_path: Path
    ) -> None:
        place.launch(a=FOREVER, until="ready")
        assert place.symph("scp", "a:/x", "a:/y", "exp").returncode == 2
        assert place.symph("scp", "./x", "./y", "exp").returncode == 2
        assert place.symph("scp", "a:/no/such/file", str(tmp_path / "out"), "exp").returncode == 8
        assert not (tmp_path / "out").exists()

    def test_a_link_that_is_named_is_followed_and_links_of_a_folder_stay(self, place: Place, tmp_path: Path) -> None:
        place.launch(a=FOREVER, until="ready")
        there = f"/tmp/symph-links-{tmp_path.name}-{time.time_ns()}"
        made = (
            "mkdir -p $0/ckpt-1 && cd $0 && echo w > ckpt-1/w && ln ckpt-1/w twin && ln -s ckpt-1 latest && ln -s /x x"
        )
        place.symph("exec", "a", "exp", "--", "sh", "-c", made, there)
        for _ in range(2):
            assert place.symph("collect", "exp", "--path", there, "--to", str(tmp_path / "kept")).returncode == 0
        assert place.symph("scp", f"a:{there}/latest", str(tmp_path / "newest"), "exp").returncode == 0
        place.symph("exec", "a", "exp", "--", "rm", "-rf", there)
        folder = tmp_path / "kept/a" / Path(there).name
        assert sorted(path.name for path in folder.iterdir()) == ["ckpt-1", "latest", "twin", "x"]
        assert (str((folder / "latest").readlink()), str((folder / "x").readlink())) == ("ckpt-1", "/x")
        assert (folder / "twin").read_text() == "w\n"
        assert ((tmp_path / "newest").is_symlink(), (tmp_path / "newest/w").read_text()) == (False, "w\n")

    def test_a_service_answers_at_the_url_of_visit(self, place: Place) -> None:
        place.launch(web={"command": ["python3", "-c", SERVER], "binds": ["web"]}, until="ready")
        argv = [sys.executable, "-m", "symphony_charts", "visit", "web", "exp", "--url-only", *place.flags]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**place.env}) as visiting:
            assert visiting.stdout is not None
            url = visiting.stdout.readline().strip()
            try:
                connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
                connection.request("GET", "/")
                assert connection.getresponse().status == 200
            finally:
                visiting.terminate()
        done = place.symph("visit", "nope", "exp", "-u")
        assert (done.returncode, "its services: web" in done.stderr) == (8, True)

    def test_collect_brings_logs_states_and_files_here(self, place: Place, tmp_path: Path) -> None:
        place.launch(a=sh("echo result > /tmp/symph-result; echo hello; exec sleep 300"), until="ready")
        eventually(lambda: "hello" in place.symph("logs", "exp").stdout, 60, "the log")
        done = place.symph("collect", "exp", "--path", "/tmp/symph-result", "--to", str(tmp_path / "kept"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "kept/a/log").read_text() == "hello\n"
        assert (tmp_path / "kept/a/symph-result").read_text() == "result\n"
        assert json.loads((tmp_path / "kept/experiment.json").read_text())["name"] == "exp"


class TestChanges:
    """Start, replacement and end of experiments."""

    def test_a_second_launch_is_a_conflict_and_touches_and_saves_nothing(self, place: Place, tmp_path: Path) -> None:
        place.launch(a=FOREVER, until="ready")
        SymphonyConfig().set_experiment_folder(tmp_path)
        before = place.items("p", "exp")
        with pytest.raises(Conflict, match="already running"):
            place.launch(b=FOREVER)
        assert [(one["name"], one["pod"]) for one in place.items("p", "exp")] == [
            (one["name"], one["pod"]) for one in before
        ]
        assert list(tmp_path.iterdir()) == []

    def test_force_replaces_and_never_merges(self, place: Place) -> None:
        place.launch(a=FOREVER, old=FOREVER, until="ready")
        place.launch(a=sh("echo new; exec sleep 300"), force=True, until="ready")
        assert [one["name"] for one in place.items("p", "exp")] == ["a"]
        eventually(lambda: place.symph("logs", "a", "exp").stdout == "new\n", 60, "the new log")

    def test_it_is_saved_before_it_starts_not_overwritten_and_loads_again(self, place: Place, tmp_path: Path) -> None:
        SymphonyConfig().set_experiment_folder(tmp_path)
        place.launch(a=FOREVER)
        assert list(files.read(tmp_path / "exp/experiment.yaml").experiment.processes) == ["a"]
        place.cluster.delete("exp")
        place.wait("deleted") if place.cluster.watcher.backend == "kube" else None
        with pytest.raises(Conflict, match="is already saved"):
            place.launch(a=FOREVER)
        assert place.cluster.list_experiments() == []

    def test_delete_without_a_terminal_needs_yes_and_a_dry_run_deletes_nothing(self, place: Place) -> None:
        place.launch(a=FOREVER)
        assert place.symph("delete", "exp").returncode == place.symph("delete", "ex").returncode == 2
        assert place.symph("d", "exp", "-dr").returncode == 0
        assert place.cluster.list_experiments() == ["exp"]

    def test_delete_ends_everything(self, place: Place) -> None:
        place.launch(a=FOREVER, until="ready")
        assert place.symph("delete", "exp", "--yes").returncode == 0
        assert place.symph("wait", "exp", "--for=deleted", "--timeout", "60").returncode == 0
        assert place.cluster.describe("exp") is None
        assert place.symph("delete", "nothing", "-f").returncode == 8

    def test_patterns_of_delete_batch_fit_whole_names(self, place: Place) -> None:
        for name in ("sweep-1", "sweep-2", "my-sweep-1"):
            place.launch(name, a=FOREVER)
        done = place.symph("db", "sweep", "--yes")
        assert done.returncode == 8
        assert "add .*" in done.stderr
        listed = place.symph("delete-batch", "sweep-.*", "--dry-run")
        assert "2 of 3 experiments fit: sweep-1, sweep-2" in listed.stderr
        assert place.symph("db", "sweep-.*", "-f").returncode == 0
        eventually(lambda: place.cluster.list_experiments() == ["my-sweep-1"], 60, "two are gone")

    def test_waiting_for_an_experiment_that_is_deleted_fails(self, place: Place) -> None:
        with pytest.raises((NotFound, CheckFailed, ToolFailed)):
            place.wait("ready", "nothing")


def _counts(place: Place) -> dict[str, tuple[int, int, int]]:
    status = place.cluster.describe("exp")
    return {one.name: (one.active, one.succeeded, one.failed) for one in status.processes} if status else {}
