"""Extension of the parser by projects: their verbs beside the built-in ones, and the handling of a command line."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import VERBS
from symphony_charts.errors import NotFound, UsageError
from tests.cli.grammar import all_commands


class Listing:
    """A cluster with three experiments."""

    def fuzzy_match_experiment(self, name: str) -> tuple[list[str], bool]:
        names = ["rl-old", "rl-new", "other"]
        return ([name], True) if name in names else ([each for each in names if name in each], False)


class Project(SymphonyParser):
    """A project's command line, as Symphony's README shows it."""

    prog = "project"

    def __init__(self) -> None:
        self.made = 0
        self.seen: list[argparse.Namespace] = []
        super().__init__()

    def create_cluster(self) -> Any:
        self.made += 1
        return Listing()

    def setup(self) -> None:
        super().setup()
        create = self.add_subparser("create", aliases=["c"])
        self._add_experiment_name(create)
        create.add_argument("--agents", type=int, default=2)
        self.add_dry_run(create)
        show = self.add_subparser("show-all")
        self._add_experiment_name(show, required=False, positional=False)

    def action_create(self, args: argparse.Namespace) -> int:
        """Create an
        experiment."""
        self.seen.append(args)
        return int(args.agents)

    def action_show_all(self, args: argparse.Namespace) -> None:
        """Show everything."""
        self.seen.append(args)


def test_a_verb_calls_its_method_whose_answer_is_the_status() -> None:
    project = Project()
    assert project.main(["create", "rl", "--agents", "3"]) == 3
    (args,) = project.seen
    assert (args.experiment_name, args.dry_run, args.remainder, args.has_remainder) == ("rl", False, [], False)


def test_an_alias_and_symphonys_flag_mean_the_same() -> None:
    project = Project()
    assert project.main(["c", "rl", "-dr"]) == 2
    assert project.seen[0].dry_run is True


def test_a_method_without_an_answer_is_a_success_and_dashes_are_underscores() -> None:
    assert Project().main(["show-all"]) == 0


@pytest.mark.parametrize("flag", ["-e", "--exp", "--experiment", "--experiment-name"])
def test_an_optional_experiment_has_symphonys_flags(flag: str) -> None:
    project = Project()
    assert project.main(["show-all", flag, "rl"]) == 0
    assert project.seen[0].experiment_name == "rl"


def test_words_after_two_dashes_are_not_parsed() -> None:
    project = Project()
    project.main(["create", "rl", "--", "--agents", "9", "--", "b"])
    assert (project.seen[0].remainder, project.seen[0].has_remainder) == (["--agents", "9", "--", "b"], True)


def test_a_verb_needs_a_method() -> None:
    with pytest.raises(ValueError, match="action_launch"):
        Project().add_subparser("launch")


def test_help_lists_the_projects_verbs_with_their_docstrings_and_all_of_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = Project()
    assert project.main(["help", "--all"]) == 0
    page = capsys.readouterr().out
    assert ("create, c" in page, "Create an experiment." in page) == (True, True)
    assert all(verb.name in page for verb in VERBS)
    assert project.made == 0


def test_the_cluster_is_made_once_and_only_when_needed() -> None:
    project = Project()
    project.main(["create", "rl"])
    assert project.made == 0
    assert project.cluster is project.cluster
    assert project.made == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["crate"], "did you mean `project create`"),
        (["create", "rl", "--agent", "3"], "did you mean --agents?"),
        (["create"], "EXPERIMENT"),
        (["create", "rl", "--agents", "many"], "expected a whole number"),
        (["proces"], "did you mean `project ps`"),
    ],
)
def test_wrong_usage_is_status_2_with_a_way_out(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Project().main(words) == 2
    assert said in capsys.readouterr().err


def test_an_experiment_is_matched_loosely_on_the_projects_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    project = Project()
    args = argparse.Namespace
    assert project._get_experiment(args(experiment_name="other")) == "other"
    assert project._get_experiment(args(experiment_name="oth")) == "other"
    assert "using other" in capsys.readouterr().err
    assert project._get_experiment(args(experiment_name=None)) is None
    with pytest.raises(UsageError, match="rl-old, rl-new"):
        project._get_experiment(args(experiment_name="rl"))
    with pytest.raises(NotFound):
        project._get_experiment(args(experiment_name="ghost"))


class Replacing(SymphonyParser):
    """A project that replaces two built-in verbs: `doctor`, and the alias `visit` with a parser of its own."""

    def setup(self) -> None:
        self.add_subparser("visit").add_argument("what")

    def action_doctor(self, args: argparse.Namespace) -> int:
        """Our own doctor."""
        return 41

    def action_visit(self, args: argparse.Namespace) -> int:
        """Our own visit."""
        return 42 if args.what == "it" else 1


def test_a_project_may_answer_our_verbs_itself() -> None:
    assert (Replacing().main(["doctor"]), Replacing().main(["visit", "it"])) == (41, 42)


def test_our_verbs_can_be_called_from_a_verb_of_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    class Calling(SymphonyParser):
        def setup(self) -> None:
            self.add_subparser("look").set_defaults(output="json")

        def action_look(self, args: argparse.Namespace) -> int:
            """Call another verb with defaults of its own."""
            status: int = self.action_version(args)
            return status

    assert Calling().main(["look"]) == 0
    assert capsys.readouterr().out.startswith("{")


def test_a_default_can_be_set_for_one_of_our_verbs() -> None:
    project = Project()
    project.get_subparser("doctor").set_defaults(output="json")
    assert project.parse(["doctor"]).output == "json"
    with pytest.raises(KeyError):
        project.get_subparser("nothing")


def test_an_error_of_the_projects_verb_is_printed_like_ours(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(SymphonyParser):
        def setup(self) -> None:
            self.add_subparser("go")

        def action_go(self, args: argparse.Namespace) -> None:
            """Fail."""
            raise NotFound("nothing there", "here", "look elsewhere")

    assert Failing().main(["go"]) == 8
    assert capsys.readouterr().err == "error: nothing there\n  at:   here\n  next: look elsewhere\n"


def test_a_script_that_ends_in_a_bare_main_leaves_with_the_status(tmp_path: Path) -> None:
    script = tmp_path / "project.py"
    script.write_text(
        "from symphony_charts.commandline import SymphonyParser\n"
        "class P(SymphonyParser):\n"
        "    def setup(self):\n        super().setup()\n        self.add_subparser('go')\n"
        "    def action_go(self, args):\n        '''Go.'''\n        return 5\n"
        "if __name__ == '__main__':\n    P().main()\n"
    )
    done = subprocess.run([sys.executable, str(script), "go"], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (5, b"")
    page = subprocess.run(
        [sys.executable, str(script), "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "usage: project.py VERB" in page.stdout


COMMANDS = {" ".join(command.words): command for command in all_commands()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistyped_option_names_the_nearest_one_of_the_very_action(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = COMMANDS[name]
    shown = [action for action in command.parser._actions if action.help is not argparse.SUPPRESS]
    flag = max((flag for action in shown for flag in action.option_strings if flag.startswith("--")), key=len)
    typed = flag[:-2] + flag[-1]
    assert SymphonyParser().main([*command.least(), typed]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: unrecognized arguments: {typed} (did you mean {flag}?)\n")
    assert said.endswith(f"{name} --help\n")


@pytest.mark.parametrize(
    "words",
    [("restart", "a", "--with-peers", "rl"), ("logs", "a", "--tail", "5", "rl"), ("ps", "--no-headers", "rl")],
)
def test_flags_may_stand_between_the_words(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words]) == 8
    assert 'experiment "rl"' in capsys.readouterr().err


def test_a_mistyped_action_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert SymphonyParser().main(["gitops", "lnt"]) == 2
    assert "(did you mean lint?)\n" in capsys.readouterr().err
