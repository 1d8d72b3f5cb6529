"""A flag has one meaning in all verbs, and so has its environment variable."""

from __future__ import annotations

import argparse
import copy
import json

import pytest

from symphony_charts.cli.defaults import VARIABLES, Default, typed
from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.errors import UsageError
from tests.cli.grammar import Command, all_commands

COMMANDS = {" ".join(command.words): command for command in all_commands()}
# The destination of each flag, in every verb that has it.
MEANINGS = {
    "-A": "all_namespaces",
    "-E": "spec_set",
    "-e": "experiment_name",
    "-l": "selector",
    "-n": "namespace",
    "-o": "output",
    "-q": "quiet",
    "-t": "tail",
    "-v": "verbose",
    "-w": "watch",
    "-y": "yes",
    "--color": "color",
    "--context": "context",
    "--dry-run": "dry_run",
    "--env": "env",
    "--force": "force",
    "--kubeconfig": "kubeconfig",
    "--namespace": "namespace",
    "--on": "on",
    "--output": "output",
    "--repo": "repo",
    "--set": "set",
    "--setenv": "spec_set",
    "--sign": "sign",
    "--spec-set": "spec_set",
    "--timeout": "timeout",
    "--values": "values",
    "--wait": "wait",
}


# Verbs that make, change or end one release, or print its objects, use one namespace; `doctor` checks permissions.
ONE_NAMESPACE = {
    *("run", "sweep", "install", "upgrade", "uninstall", "history", "rollback", "secrets", "render", "doctor"),
    *("export appwrapper", "export kustomize", "export manifests"),
}
# Verbs for several experiments at once.
SEVERAL = {"ls", "status", "rm"}


def shown(command: Command) -> list[argparse.Action]:
    """Return the options in the help of a command."""
    return [action for action in command.parser._actions if action.help is not argparse.SUPPRESS]


def options_of(command: Command) -> set[str]:
    """Return the options that may occur once; a repeatable option defaults to "all"."""
    several = {action.dest for action in command.parser._actions if isinstance(action.default, list)}
    return {flag.removeprefix("--") for flag in command.flags} - several


@pytest.mark.parametrize("name", COMMANDS)
def test_a_flag_means_one_thing_in_every_verb(name: str) -> None:
    verb = name.split()[-1]
    meanings = {**MEANINGS, "-f": "follow" if verb == "logs" else "values"}
    meanings["-d"] = "dest" if verb == "package" else "detach"
    given = {flag: action.dest for action in shown(COMMANDS[name]) for flag in action.option_strings}
    assert {flag: dest for flag, dest in given.items() if dest != meanings.get(flag, dest)} == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dry_run_is_asked_for_in_full(name: str) -> None:
    command = COMMANDS[name]
    shorts = {"-dr"} if name in ("rm", "cp") else set()
    flags = {flag for action in command.parser._actions for flag in action.option_strings}
    assert {flag for flag in flags if len(flag) > 2 and not flag.startswith("--")} == shorts
    for word in ("-d", "--dry"):
        try:
            args = SymphonyParser().parse([*command.least(), word, "x"])
        except UsageError:
            continue
        assert not getattr(args, "dry_run", False), word


def having(*flags: str) -> set[str]:
    return {name for name, command in COMMANDS.items() if not set(flags).isdisjoint(command.flags)}


def test_whoever_looks_for_experiments_looks_in_all_namespaces_if_asked_to() -> None:
    assert having("--namespace") == having("--all-namespaces") | ONE_NAMESPACE
    assert having("--all-namespaces").isdisjoint(ONE_NAMESPACE)


def test_whoever_means_several_experiments_takes_labels() -> None:
    assert having("--selector") == SEVERAL


def test_whoever_knows_a_cluster_takes_all_that_chooses_one() -> None:
    # The others print objects that another tool brings to a cluster.
    alone = {name for name in having("--namespace") if name.split()[0] in ("render", "export")}
    assert having("--context") == having("--kubeconfig") == having("--namespace") - alone


def test_a_kubeconfig_in_the_home_folder_is_found_by_each_verb_and_by_helm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    for words in (["rm", "rl"], ["doctor"], ["install", "rl.yaml"]):
        # The shell expands no ~ behind the equals sign.
        assert SymphonyParser().parse([*words, "--kubeconfig=~/kube"]).kubeconfig == "/home/ann/kube"


def test_whoever_speaks_to_a_repository_of_charts_takes_its_address() -> None:
    assert having("--repo") - having("--env") == {"promote", "gitops init", "gitops gc"}
    assert having("--env") - having("--repo") == {"gitops review"}


@pytest.mark.parametrize("name", COMMANDS)
def test_quiet_and_verbose_are_taken_by_every_verb(name: str) -> None:
    assert {"--quiet", "--verbose", "--color"} <= set(COMMANDS[name].flags)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_the_variable_of_each_option_that_has_one(name: str) -> None:
    page = " ".join(COMMANDS[name].parser.format_help().split())
    flags = options_of(COMMANDS[name]) & VARIABLES.keys()
    said = {option for option in flags if f"[${VARIABLES[option]}]" in page}
    assert flags - said <= ({"output"} if name.startswith("import") else set())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_variable_stands_for_the_option_and_what_is_typed_beats_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = COMMANDS[name]
    options = options_of(command) & {"namespace", "context", "env", "repo"}
    for option in options:
        monkeypatch.setenv(VARIABLES[option], "said")
    args = SymphonyParser().parse(command.least())
    assert {getattr(args, option) for option in options} <= {"said"}
    assert not any(typed(args, option) for option in options)
    words = [word for option in options for word in (f"--{option}", "typed")]
    args = SymphonyParser().parse([*command.least(), *words])
    assert {typed(args, option) for option in options} <= {"typed"}


def test_a_format_counts_where_a_verb_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMPH_OUTPUT", "wide")
    parsed = {verb: SymphonyParser().parse([verb, "x"]).output for verb in ("ls", "render", "describe")}
    assert parsed == {"ls": "wide", "render": "yaml", "describe": "table"}


def test_a_variable_that_names_no_format_is_wrong_usage_but_help_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYMPH_OUTPUT", "josn")
    assert SymphonyParser().main(["ls"]) == 2
    assert "$SYMPH_OUTPUT" in capsys.readouterr().err
    assert SymphonyParser().main(["ls", "--help"]) == 0


def test_a_default_namespace_turns_no_verb_from_this_machine_to_a_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYMPH_NAMESPACE", "ml")
    monkeypatch.setenv("SYMPH_CONTEXT", "nowhere")
    assert SymphonyParser().main(["ls", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == []
    assert SymphonyParser().main(["ls", "-n", "ml"]) != 0


def test_a_default_is_a_text_that_says_where_it_comes_from() -> None:
    value = Default("ml", "$SYMPH_NAMESPACE")
    assert (value, value.source, json.dumps(value)) == ("ml", "$SYMPH_NAMESPACE", '"ml"')
    assert copy.copy(value).source == value.source


@pytest.mark.parametrize("words", [["ps", "-e", "rl"], ["ps", "rl"], ["logs", "learner", "-e", "rl"]])
def test_the_experiment_is_a_word_or_a_flag(words: list[str]) -> None:
    assert SymphonyParser().parse(words).experiment_name == "rl"


def test_quiet_leaves_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert SymphonyParser().main(["doctor", "-q"]) == 0
    answer = capsys.readouterr()
    assert "tmux" in answer.out.splitlines()
    assert answer.err == ""
    assert SymphonyParser().main(["ls"]) == 0
    assert capsys.readouterr().err != ""
