"""Symphony's verbs read their arguments under Symphony's names, so that verbs of a project can call them."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.commandline import SymphonyParser
from tests.compat.conftest import Script

# symphony 0.10, symphony/commandline/commandline_interface.py.
ARGUMENTS = {
    "delete": {"experiment_name", "force", "dry_run"},
    "delete-batch": {"experiment_names", "force", "dry_run"},
    "scp": {"src_file", "dest_file", "experiment_name", "dry_run"},
    "ssh": {"component_name", "experiment_name"},
    "exec": {"component_name", "experiment_name"},
    "log": {"component_name", "experiment_name", "follow", "since", "tail"},
    "list-experiments": {"experiment_name"},
    "switch-experiment": {"experiment_name", "force"},
    "list-processes": {"experiment_name"},
    "visit": {"service_name", "url_only", "experiment_name"},
}

# Surreal's code for its verb of this name.
PROJECT = """
from symphony.commandline import SymphonyParser
from symphony.engine import Cluster

SERVE = 'exec python3 -c "import os, socket, time; s = socket.create_server((os.environ[\\'SYMPH_{0}_HOST\\'], \
int(os.environ[\\'SYMPH_{0}_PORT\\']))); time.sleep(300)"'

class Project(SymphonyParser):
    def create_cluster(self):
        return Cluster.new("tmux")

    def setup(self):
        super().setup()
        parser = self.add_subparser("tensorboard", aliases=["tb"])
        self._add_experiment_name(parser, required=False, positional=True)
        parser.set_defaults(service_name="tensorboard")
        parser.add_argument("-u", "--url-only", action="store_true")
        self.add_subparser("create")

    def action_create(self, args):
        exp = self.cluster.new_experiment("rl")
        for name in ("tensorboard", "frontend"):
            exp.new_process(name, cmds=[SERVE.format(name.upper())]).exposes(name)
        self.cluster.launch(exp)

    def action_tensorboard(self, args):
        self.action_visit(args)

Project().main()
"""


def test_the_arguments_of_a_verb_have_symphonys_names() -> None:
    for verb, names in ARGUMENTS.items():
        assert names <= {action.dest for action in SymphonyParser().get_subparser(verb)._actions}, verb


def test_a_verb_of_a_project_has_defaults_ls_prints_names_and_db_reports_names_that_are_not_there(
    script: Script, tmp_path: Path
) -> None:
    (tmp_path / "project.py").write_text(PROJECT)
    started = script(tmp_path / "project.py", "create")
    assert started.returncode == 0, started.stderr
    try:
        done = script(tmp_path / "project.py", "tensorboard", "-u")
        assert (done.returncode, done.stdout[:10]) == (0, "http://127"), done.stderr
        for words in (("ls",), ("list-experiments",)):
            assert script(tmp_path / "project.py", *words).stdout == "rl\n"
        removed = script(tmp_path / "project.py", "db", "-f", "rl", "nosuch")
        assert (removed.returncode, "nosuch" in removed.stderr) == (8, True), removed.stderr
        assert script(tmp_path / "project.py", "ls").stdout == ""
    finally:
        script(tmp_path / "project.py", "delete", "rl", "-f")
