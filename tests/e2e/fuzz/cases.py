"""Command lines and their surroundings: everything about a case follows from its seed."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field

from tests.cli.grammar import Command, all_commands

# Files of the sandbox, by the name of the argument.
SPECS = ["rl.yaml", "rl.json", "rl.py", "naps.yaml", "study.yaml", "wrong.yaml", "nowhere.yaml", ".", "repo.git", "-"]
FILES = [*SPECS, "values.yaml", "pools.yaml", "cluster.tf.json", "job.yaml", "compose.yaml", "app.json"]
FILES += ["dist/rl-0.1.0.tgz", "dist/rl", "checkout", "rl.lock.yaml", "cert.pem", "kubeconfig", "/dev/null", "noise"]
ODD = ["", " ", "-", "--", "x" * 300, "../..", "*", "{}", "=", "a=b=c", "~nobody/x", "a\nb", "\udce9", "\u202e\x1b[31m"]
ODD += ["0", "-1", "1e999", "9" * 40, "null", "[]", "\u00e9", "%s", "$(id)", "{{ x }}", "[[ x ]]", "//", "oci://", "::"]
SETS = ["groups.agent.replicas=3", "groups.agent.replicas=x", "workload.kind=jobz", "workload.kind=dijob"]
SETS += ["a.b[9].c=1", "groups=3", "services.data=7", "groups.agent=null", "groups.agent.containers=3", "=", "x"]
SETS += [".=1", "a..b=1", "groups.agent.containers.agent.env.X={{ 1 }}", "workload=x", "a[99999999999]=1"]
SETS += ["defaults=[]", "lr=1,2", "x=1:9"]
NAMES = ["rl", "naps", "r", "nobody", "naps/a", "ml/rl", "learner", "a", "agent/0", "a:/etc/hostname"]
ENVIRONMENTS = ["dev", "prod", "nowhere"]
VERSIONS = ["0.1.0", "0.1.1", "9.9.9", "1", "v1.0.0", "0.1.0-rc.1+b"]
REPOSITORIES = ["repo.git", "nowhere.git", "repo.git#review", "http://127.0.0.1:1/x.git", "ssh://127.0.0.1:1/x"]
REPOSITORIES += ["rl.yaml"]
# Options and verbs that wait forever by design.
FOLLOWING = {"--follow", "-f", "--watch", "-w", "--wait", "--interval", "wait", "top", "events", "attach", "logs"}

DAMAGES = ["truncate", "empty", "binary", "latin", "directory", "unreadable", "number", "bomb", "deep", "remove"]
DAMAGES += ["loop", "nul", "utf16", "list", "null", "text", "flip", "twist"]
DAMAGED = ["rl.yaml", "rl.json", "rl.py", "rl.lock.yaml", ".symph.yaml", "values.yaml", "pools.yaml"]
DAMAGED += ["cluster.tf.json", "dist/rl-0.1.0.tgz", "dist/rl/values.yaml", "dist/rl/Chart.yaml", "kubeconfig"]
DAMAGED += ["cert.pem", "job.yaml", "repo.git/HEAD", "repo.git/config", "repo.git/objects", "repo.git/refs"]
DAMAGED += ["checkout/.git", "secret.txt", "checkout/charts", "checkout/envs", "state/*", "state/*", "state/*"]
DAMAGED += ["compose.yaml", "app.json", "checkout/*"]

PLACES: dict[str, list[str | None]] = {
    "HOME": [None, "/nowhere", "/proc", "relative", ""],
    "TERM": [None, "dumb", "xterm-256color", "nonsense"],
    "COLUMNS": ["1", "0", "-5", "x"],
    "PATH": ["/nowhere", "", None, "{tools}/no-helm", "{tools}/no-tmux", "{tools}/no-git"],
    "SYMPH_ON": ["kube", "nonsense", ""],
    "SYMPH_STATE_DIR": ["/proc/x", "rl.yaml", "", "relative", "/dev/null"],
    "SYMPH_RUNTIME_DIR": ["/proc/x", "{here}/" + "d" * 120, "rl.yaml", ""],
    "TMPDIR": ["/nowhere", "/proc"],
    "KUBECONFIG": ["rl.yaml", "/nowhere", "noise", ".", "kubeconfig:rl.yaml", ""],
    "HELM_BIN": ["/nowhere", "rl.yaml", "/bin/false", "/bin/true"],
    "LC_ALL": ["C", "POSIX", "de_DE.ISO-8859-1"],
    "PYTHONIOENCODING": ["ascii", "latin-1"],
    "PYTHONUTF8": ["0", "1"],
    "NO_COLOR": ["1"],
    "FORCE_COLOR": ["1"],
    "GIT_DIR": ["/nowhere"],
    "SYMPH_CONFIG": ["/nowhere", "rl.yaml"],
    "TZ": ["nonsense"],
    "XDG_RUNTIME_DIR": ["/nowhere", "relative"],
}
STREAMS = ["stdin:closed", "stdin:noise", "stdout:closed", "stdout:full", "stdout:cut", "stderr:closed", "cwd:gone"]
STREAMS += ["files:24", "umask:777", "cwd:readonly"]


@dataclass(kw_only=True)
class Case:
    """One command line, the damage before it (file and kind), the variables and streams that differ."""

    seed: int
    words: list[str]
    damages: list[tuple[str, str]] = field(default_factory=list)
    variables: dict[str, str | None] = field(default_factory=dict)
    streams: list[str] = field(default_factory=list)

    @property
    def may_wait(self) -> bool:
        return bool(FOLLOWING & set(self.words))


def commands() -> list[Command]:
    return all_commands()


def make_case(seed: int, known: list[Command]) -> Case:
    """Return the case of a seed: mostly with one odd thing, rarely with several."""
    chance = random.Random(seed)
    case = Case(seed=seed, words=_words(chance, chance.choice(known)))
    while chance.random() < 0.55:
        case.damages.append((chance.choice(DAMAGED), chance.choice(DAMAGES)))
    while chance.random() < 0.35:
        name = chance.choice(list(PLACES))
        case.variables[name] = chance.choice(PLACES[name])
    if chance.random() < 0.2:
        case.streams.append(chance.choice(STREAMS))
    return case


def _words(chance: random.Random, command: Command) -> list[str]:
    words = list(command.words)
    for action in command.positionals:
        count = (
            1
            if action.nargs is None
            else chance.choice([0, 1, 1, 2, 3])
            if action.nargs in ("*", "+")
            else chance.randrange(2)
        )
        words += [_value(chance, action) for _ in range(count)]
    options = [action for action in command.parser._actions if action.option_strings and action.dest != "help"]
    for action in options:
        if action.required or chance.random() < 2.0 / max(len(options), 1):
            words.append(chance.choice(action.option_strings))
            if action.nargs != 0 and chance.random() < 0.97:
                words.append(_value(chance, action))
    if chance.random() < 0.015:
        words.insert(chance.randrange(len(words) + 1), chance.choice(ODD))
    if chance.random() < 0.04:
        words += ["--", *chance.choice([[], ["true"], ["sh", "-c", "exit 3"], ["nowhere"]])]
    return [word.replace("\0", "") for word in words]


def _value(chance: random.Random, action: argparse.Action) -> str:
    if chance.random() < 0.06:
        return chance.choice(ODD)
    if action.choices and chance.random() < 0.93:
        return str(chance.choice(list(action.choices)))
    if action.type in (int, float):
        return chance.choice(["0", "1", "3", "-1", "99999999999999999999", "x", "1.5", "nan", ""])
    return chance.choice(_known_values(f"{action.metavar or ''} {action.dest}".lower()))


def _known_values(name: str) -> list[str]:
    for words, values in (
        (("key=value", "k=v", "grid", "param", "where", "list"), SETS),
        (("spec",), SPECS),
        (("experiment", "process", "component", "release", "pattern", "name"), NAMES),
        (("env", "before", "after"), ENVIRONMENTS),
        (("version",), VERSIONS),
        (("repo", "url"), REPOSITORIES),
        (("into", "checkout"), ["checkout", "repo.git", "nowhere", "."]),
        (("file", "dir", "path", "source", "dest", "cert", "values", "pools", "chart", "target", "template"), FILES),
        (("timeout", "since", "interval", "age"), ["1", "0", "1s", "2h", "-1", "x"]),
    ):
        if any(word in name for word in words):
            return values
    return [*FILES, *NAMES, *ODD]
