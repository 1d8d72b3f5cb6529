"""Options that several verbs share, each with one spelling."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence

from symphony_charts.cli.defaults import typed
from symphony_charts.errors import UsageError
from symphony_charts.spec import variable_names
from symphony_charts.system.launching import entry_points

# Every verb takes `-v`, `-q` and `--color`, before or after its name; verbs add the other options they need.

FORMATS = ("table", "wide", "json", "yaml", "name")
FINDING_FORMATS = ("table", "json", "yaml", "sarif")


class _Backends(tuple[str, ...]):
    """The built-in backends; plugin backends are contained, too, and looked up only when named."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in entry_points("symph.backends")


BACKENDS = _Backends(("tmux", "kube"))
# Names of a folder's spec file, and the help of the argument that takes a spec.
SPEC_NAMES = ("experiment.yaml", "experiment.yml", "experiment.json", "experiment.py")
SPEC_HELP = "experiment file (YAML, JSON or Python), its folder, or `-` for stdin (default: ./experiment.yaml)"


def add_global_options(parser: argparse.ArgumentParser, *, is_verb: bool = False) -> None:
    """Add `-v`, `-q` and `--color`; a verb's copy keeps the value given before the verb."""
    no, auto = (argparse.SUPPRESS, argparse.SUPPRESS) if is_verb else (False, None)
    text = "print more, with the output of programs that failed"
    parser.add_argument("-v", "--verbose", action="store_true", default=no, help=text)
    text = "print only the result: lists as names, without notes and next steps"
    parser.add_argument("-q", "--quiet", action="store_true", default=no, help=text)
    text = "when to colour (default: on a terminal)"
    parser.add_argument("--color", choices=("auto", "always", "never"), default=auto, help=text)
    parser.add_argument(
        "--no-color", dest="color", action="store_const", const="never", default=auto, help=argparse.SUPPRESS
    )


def add_output(
    parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS, *, default: str = "table", headers: bool = True
) -> None:
    parser.add_argument(
        "-o", "--output", choices=tuple(formats), default=default, help=f"output format (default: {default})"
    )
    if headers and "table" in formats:
        add_flag(parser, "--no-headers", help="omit the header line")


def add_flag(parser: argparse._ActionsContainer, *flags: str, help: str) -> None:
    """Add an option without a value, which is False unless it is given."""
    parser.add_argument(*flags, action="store_true", help=help)


def add_list(parser: argparse._ActionsContainer, *flags: str, metavar: str, help: str) -> None:
    """Add an option that may be repeated; its value is a list."""
    parser.add_argument(*flags, metavar=metavar, action="append", default=[], help=help)


def add_watch(parser: argparse.ArgumentParser) -> None:
    text = "stay, print lines, and restart processes (default: all) when a file at or below PATH changes; repeatable"
    add_list(parser, "--watch", metavar="PATH[:PROCESS,...]", help=text)
    add_list(parser, "--ignore", metavar="PATTERN", help="files and folders that --watch leaves out")


def add_dry_run(parser: argparse.ArgumentParser, help: str = "print what would be done, and change nothing") -> None:
    add_flag(parser, "--dry-run", help=help)


def add_dry_run_like_symphony(parser: argparse.ArgumentParser) -> None:
    """Add `--dry-run`, and the hidden `-dr` of Symphony's `delete`, `delete-batch` and `scp`."""
    add_dry_run(parser)
    parser.add_argument("-dr", dest="dry_run", action="store_true", help=argparse.SUPPRESS)


def add_yes(parser: argparse.ArgumentParser) -> None:
    add_flag(parser, "-y", "--yes", help="do not ask for confirmation; needed without a terminal")


def add_force(parser: argparse.ArgumentParser, help: str) -> None:
    """Add `--force` (args.force), and Symphony's `-f` hidden from help because other verbs use `-f` for values."""
    add_flag(parser, "--force", help=help)
    parser.add_argument("-f", dest="force", action="store_true", help=argparse.SUPPRESS)


def add_cluster(parser: argparse.ArgumentParser, namespace: str) -> None:
    parser.add_argument("-n", "--namespace", help=namespace)
    parser.add_argument("--context", help="the kubeconfig's context (default: the current one)")
    text = "default: $KUBECONFIG, else ~/.kube/config"
    parser.add_argument("--kubeconfig", metavar="FILE", type=os.path.expanduser, help=text)


# The flags that choose where an experiment runs.
PLACE_FLAGS = {"on": "--on", "namespace": "-n", "context": "--context", "kubeconfig": "--kubeconfig"}


def cluster_flags(args: argparse.Namespace) -> list[str]:
    """Return the cluster flags that were typed; any of them selects the kube backend."""
    names = ("namespace", "all_namespaces", "context", "kubeconfig")
    return [name.replace("_", "-") for name in names if typed(args, name)]


def add_backend(parser: argparse.ArgumentParser, *, is_one: bool = False) -> None:
    """Add `--on`, and `-n`, `-A`, `--context` and `--kubeconfig`, each of which implies `--on kube`.

    Set `is_one` for a verb that starts an experiment, which has one namespace.
    """
    parser.add_argument("--on", choices=BACKENDS, help="where the experiment runs (default: tmux)")
    if is_one:
        add_cluster(parser, "of the cluster (default: the spec's, else the context's)")
        return
    add_cluster(parser, "of the cluster (default: all that may be read)")
    add_all_namespaces(parser)


def add_all_namespaces(parser: argparse.ArgumentParser) -> None:
    """Add `-A` for verbs that look for experiments; verbs that create or remove a release use one namespace."""
    add_flag(parser, "-A", "--all-namespaces", help="all namespaces that you may read, whatever else sets a namespace")


def add_selector(parser: argparse.ArgumentParser) -> None:
    """Add `-l/--selector` (args.selector: a predicate over labels, or None) for verbs that select experiments."""
    text = "only those with these labels: KEY=VALUE, KEY!=VALUE, KEY or !KEY, all of a list with commas"
    parser.add_argument("-l", "--selector", metavar="LABELS", type=selector, help=text)


def backend_of(args: argparse.Namespace) -> str:
    """Return the backend: the flag, else $SYMPH_ON, else tmux."""
    chosen: str = getattr(args, "on", None) or os.environ.get("SYMPH_ON", "") or "tmux"
    if chosen not in BACKENDS:
        raise UsageError(f'SYMPH_ON names no backend: "{chosen}"', "", f"use one of {', '.join(BACKENDS)}")
    return chosen


def place_of(args: argparse.Namespace) -> str:
    """Return the backend: kube if a flag of a cluster was typed, else that of `backend_of`. Raises UsageError."""
    flags = cluster_flags(args)
    if flags and typed(args, "on") == "tmux":
        raise UsageError(f"--{flags[0]} means a cluster, --on tmux this machine", next="leave one out")
    return "kube" if flags else backend_of(args)


def add_experiment(parser: argparse.ArgumentParser, *, required: bool = False, positional: bool = True) -> None:
    """Add the experiment's name (args.experiment_name), as an argument or as `-e/--exp`."""
    text = "the experiment; part of a name is enough when it fits only one"
    flags = ("-e", "--exp", "--experiment", "--experiment-name")
    if not positional:
        parser.add_argument(*flags, dest="experiment_name", required=required, default=None, help=text)
    elif required:
        parser.add_argument("experiment_name", metavar="EXPERIMENT", help=text)
    else:
        # Without SUPPRESS, a missing argument would overwrite the value of the flag.
        text = f"{text} (default: the current one); also as -e EXPERIMENT"
        absent = argparse.SUPPRESS
        parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=absent, help=text)
        parser.add_argument(*flags, dest="experiment_name", default=None, help=absent)


def add_component(parser: argparse.ArgumentParser) -> None:
    """Add the process (args.component_name), written `process` or `group/process`."""
    parser.add_argument("component_name", metavar="PROCESS", help="process, or group/process where a name fits several")


def add_specs(parser: argparse.ArgumentParser, *, many: bool = True) -> None:
    """Add the spec files (args.specs, a list) or the one file (args.spec), by default that of the current folder."""
    if many:
        parser.add_argument("specs", metavar="SPEC", nargs="*", type=spec_of, default=[spec_of(".")], help=SPEC_HELP)
    else:
        parser.add_argument("spec", metavar="SPEC", nargs="?", type=spec_of, default=".", help=SPEC_HELP)
    add_spec_changes(parser)


def add_spec_changes(parser: argparse.ArgumentParser) -> None:
    """Add `-E`, `--env-file` and `--spec-set` (args.spec_set, in their order) for every verb that reads a spec."""
    text = "set a variable in every process; KEY alone takes the value from here; may be repeated"
    parser.add_argument(
        "-E", "--setenv", dest="spec_set", metavar="KEY=VALUE", action="append", default=[], type=variable, help=text
    )
    text = "set the variables of this file, with a KEY=VALUE a line; may be repeated"
    parser.add_argument(
        "--env-file", dest="spec_set", metavar="FILE", action="extend", default=[], type=variables_in, help=text
    )
    text = "change the spec before it is read, as in processes.agent.replicas=8; may be repeated"
    add_list(parser, "--spec-set", metavar="PATH=VALUE", help=text)


def variable(text: str) -> variable_names.Variable:
    """Return the variable ``KEY=VALUE``; KEY alone has its value in the environment of the command."""
    key, equals, _ = text.partition("=")
    if not key or (not equals and key not in os.environ):
        raise argparse.ArgumentTypeError(f'"{text}" is not KEY=VALUE, and no variable that is set here')
    return variable_names.Variable(text if equals else f"{key}={os.environ[key]}")


def variables_in(path: str) -> list[variable_names.Variable]:
    """Return the variables of a file of ``KEY=VALUE`` lines."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8-sig") as file:  # noqa: PTH111, PTH123 - as in `spec_of`
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#") and "=" not in line:
            raise argparse.ArgumentTypeError(f'{path}:{number} is not KEY=VALUE: "{line.strip()}"')
    found = variable_names.parse_env_file("\n".join(lines))
    return [variable_names.Variable(f"{key}={value}") for key, value in found.items()]


def spec_of(text: str) -> str:
    """Return the spec file of the folder `text`; else `text` itself, and the reader reports a missing spec."""
    is_file, join = os.path.isfile, os.path.join  # pathlib takes 5 ms to import, too long for help
    if not os.path.isdir(text) or is_file(join(text, "Chart.yaml")):  # noqa: PTH112 - likewise
        return text
    paths = [os.path.normpath(join(text, name)) for name in SPEC_NAMES]
    return next((path for path in paths if is_file(path)), SPEC_NAMES[0] if text == "." else text)


def add_pools(parser: argparse.ArgumentParser, text: str) -> None:
    """Add `--pools FILE` (args.pools) for every verb that places pods on nodes."""
    text += "; may be repeated (default: the spec's placement.pools, else the project's)"
    add_list(parser, "--pools", metavar="FILE", help=text)


def add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", metavar="NAME", help="the release (default: the experiment's name)")


def add_placement(parser: argparse.ArgumentParser) -> None:
    add_pools(parser, "node pools to check the fit on")
    add_flag(parser, "--force-unschedulable", help="continue even if a group cannot be scheduled on the pools")


def parse_assignments(texts: Sequence[str], flag: str = "--set") -> dict[str, str]:
    """Parse `["a=1", "b=x=y"]` into `{"a": "1", "b": "x=y"}`. Raises UsageError if the `=` or the key is missing."""
    assignments: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f'{flag} takes KEY=VALUE, got "{text}"')
        assignments[key] = value
    return assignments


def selector(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Return a predicate over labels for a kubectl selector such as ``team=rl,stage!=old,gpu,!draft``."""
    terms = [re.fullmatch(r"(!?)([\w./-]+)(?:(!?==?)([\w.-]*))?", term.strip(), re.ASCII) for term in text.split(",")]
    if not all(term and not (term[1] and term[3]) for term in terms):
        raise argparse.ArgumentTypeError(f"{text!r} selects no labels: write KEY=VALUE,KEY!=VALUE,KEY,!KEY")

    def fits(labels: Mapping[str, str]) -> bool:
        return all(_has(labels, term) for term in terms if term)

    return fits


def _has(labels: Mapping[str, str], term: re.Match[str]) -> bool:
    absent, key, operator, value = term.groups()
    if operator:
        return (labels.get(key) == value) is not operator.startswith("!")
    return (key in labels) is not bool(absent)


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add --system: the resources that the cluster's system pods take on each node."""
    parser.add_argument(
        "--system",
        metavar="FILE|AMOUNTS",
        help="resources of the cluster's own pods: cpu=470m,memory=774Mi of each node; a file with"
        " `kubectl get daemonsets,deployments -A -o json`; or elsewhere, where kube-system runs on other pools",
    )


def add_examples(parser: argparse.ArgumentParser, *lines: str) -> None:
    parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in lines)


def add_workload_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", default="", metavar="KIND", help="workload kind of the result")


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """Parse ``90``, ``90s``, ``5m``, ``1h`` or ``2d`` into seconds; argparse reports a ValueError as wrong usage."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text, re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    return float(match[1]) * _UNITS[match[2]]


def count(text: str) -> int:
    """Parse a number of at least 1; argparse reports a ValueError as wrong usage."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_SET = "change one value; may be repeated; also --set-string, --set-json, --set-file and --set-literal"
_FLAGS = (
    ("--set", "KEY=VALUE", _SET),
    ("--set-string", "KEY=TEXT", "the same, and the value stays a text"),
    ("--set-json", "KEY=JSON", "the same with a value in JSON, or a whole object"),
    ("--set-file", "KEY=FILE", "the same with the content of a file"),
    ("--set-literal", "KEY=TEXT", "the same with all that follows, commas too"),
)


def add_values(parser: argparse.ArgumentParser) -> None:
    add_list(
        parser, "-f", "--values", metavar="FILE", help="values file that overrides the chart's values; `-` is stdin"
    )
    for flag, form, text in _FLAGS:
        add_list(parser, flag, metavar=form, help=text)


def add_target(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser, "the namespace (default: the spec's, else the context's)")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the source to install, the release name, and values."""
    text = "experiment file, its folder or `-` for stdin; chart folder or .tgz archive (default: ./experiment.yaml)"
    parser.add_argument("source", metavar="SPEC|CHART", nargs="?", type=spec_of, default=".", help=text)
    parser.add_argument("--name", help="the release (default: the experiment's name)")
    add_values(parser)
    add_spec_changes(parser)
    add_placement(parser)


def add_waiting(parser: argparse.ArgumentParser) -> None:
    add_flag(parser, "--wait", help="wait until everything is ready or has finished; fail if a Job fails")
    add_flag(parser, "--wait-for-jobs", help="as --wait, and every Job has finished")
    add_timeout(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    text = "for helm and for waiting: 90, 90s, 5m (default)"
    parser.add_argument("--timeout", type=seconds, default=300.0, metavar="TIME", help=text)


CHANGE_FORMATS = ("table", "json", "yaml", "markdown")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add `--repo URL[#BRANCH]` (args.repo) and `--repo-path` (args.repo_path)."""
    parser.add_argument(
        "--repo", metavar="URL[#BRANCH]", help="the Git repository of charts (default: `repository` of .symph.yaml)"
    )
    parser.add_argument("--repo-path", metavar="FOLDER", help="its folder that holds charts and environments")


def add_repository(parser: argparse.ArgumentParser) -> None:
    """Add the location of the repository, and `--team` (args.team)."""
    add_place(parser)
    parser.add_argument("--team", help="team of the experiment (default: the spec's, else .symph.yaml's)")


def add_env(parser: argparse.ArgumentParser, *, text: str = "the environment") -> None:
    parser.add_argument("--env", metavar="NAME", help=f"{text} (default: the only one of .symph.yaml)")


def add_named(parser: argparse.ArgumentParser) -> None:
    """Add the experiment (args.experiment_name) by its name in Git: ``team/name`` if several teams use the name."""
    parser.add_argument("experiment_name", metavar="EXPERIMENT", help="its name, or team/name")


def add_change_options(parser: argparse.ArgumentParser, *, is_alone: bool = True) -> None:
    """Add the options of every change of the repository; with `is_alone`, also output format and `--dry-run`."""
    parser.add_argument("--expect", metavar="VERSION", help="fail unless this version runs there now")
    parser.add_argument("--branch", metavar="NAME", help="push a branch of this name, for a review")
    parser.add_argument("--into", metavar="CHECKOUT", help="write into this work tree; do not push")
    text = "reason, kept in the commit and shown by `symph history`"
    parser.add_argument("-m", "--message", metavar="WHY", help=text)
    if is_alone:
        add_output(parser, CHANGE_FORMATS, headers=False)
        add_dry_run(parser, "show what would change in the repository and push nothing")


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    add_env(parser, text="the target environment")
    add_flag(parser, "--chart-only", help="publish only the chart, without deploying it")
    add_list(parser, "--env-values", metavar="FILE", help="values file of the environment; replaces its own values")
    add_list(parser, "--env-set", metavar="KEY=VALUE", help="set one value of the environment")
    text = "remove a value of the environment; that of .symph.yaml or of the chart applies again"
    add_list(parser, "--env-unset", metavar="KEY", help=text)
    parser.add_argument(
        "--cert", metavar="FILE|URL|cluster", help="certificate for sealed secrets (default: .symph.yaml's)"
    )
    add_repository(parser)


def add_registry(parser: argparse.ArgumentParser) -> None:
    """Add `--plain-http`, `--ca-file` and the other registry options, and credentials."""
    group = parser.add_argument_group("registry")
    add_flag(group, "--plain-http", help="use HTTP without TLS (default: only for this machine)")
    group.add_argument(
        "--ca-file", metavar="FILE", default="", help="trust only the certificate authorities in this file"
    )
    group.add_argument("--cert-file", metavar="FILE", default="", help="client certificate for the registry")
    group.add_argument("--key-file", metavar="FILE", default="", help="the key of --cert-file")
    add_flag(group, "--insecure-skip-tls-verify", help="do not verify the registry's certificate")
    group.add_argument(
        "--username", metavar="USER", default="", help="user name (default: the login of helm or docker)"
    )
    add_flag(group, "--password-stdin", help="read the password of --username from stdin")
