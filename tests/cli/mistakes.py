"""Beginners' mistakes, one row each: the command line, its files and the expected message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

OK = "name: rl\nimage: python:3.12-slim\nprocesses:\n  a:\n    command: python\n    args: [a.py]\n"
SPEC = {"e.yaml": OK}
COMPOSE = "services:\n  web:\n    image: nginx:1.29\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 1}\n"
DIJOB = (
    "apiVersion: diengine.opendilab.org/v2alpha1\nkind: DIJob\nmetadata: {name: x}\nspec:\n"
    "  tasks:\n  - {name: a, type: none, replicas: 1,\n"
    "     template: {spec: {containers: [{name: di-container, image: i:1}]}}}\n"
)
SETTINGS = "repository: r.git\nteam: t\nenvironments:\n  dev: {namespace: rl-dev}\n  prod: {namespace: rl-prod}\n"
KUBECONFIG = (
    "apiVersion: v1\nkind: Config\ncurrent-context: one\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    "contexts: [{name: one, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: abc}}]\n"
)


class Mistake(NamedTuple):
    """`says` are place, cause and next step, parts of the output; `then` is the suggested command."""

    title: str
    words: str
    files: Mapping[str, str | bytes | None]
    status: int
    says: tuple[str, ...]
    then: tuple[str, ...]
    before: tuple[str, ...]
    env: Mapping[str, str]


def _row(
    title: str,
    words: str,
    files: Mapping[str, str | bytes | None],
    status: int,
    *says: str,
    then: tuple[str, ...] = (),
    before: tuple[str, ...] = (),
    **env: str,
) -> Mistake:
    return Mistake(title, words, files, status, says, then, before, env)


def _spec(title: str, text: str, *says: str, verb: str = "package", status: int = 3) -> Mistake:
    return _row(title, f"{verb} e.yaml", {"e.yaml": text}, status, *says)


def _with(line: str) -> str:
    return OK + "".join(f"    {part}\n" for part in line.split("\n"))


def _requests(title: str, requests: str, *says: str) -> Mistake:
    return _spec(title, _with(f"requests: {requests}"), "e.yaml:7, processes.a.requests", *says)


_FILES = (
    _row("a compose file", "up docker-compose.yaml", {"docker-compose.yaml": COMPOSE}, 3, "at:   docker-compose.yaml",
         "this is a docker compose file", "symph import compose docker-compose.yaml --to experiment.yaml",
         then=("import compose docker-compose.yaml --to experiment.yaml", "package experiment.yaml")),
    _row("a DIJob", "package x.yaml", {"x.yaml": DIJOB}, 3, "at:   x.yaml", "this is a DIJob",
         "symph import dijob x.yaml --to experiment.yaml", then=("import dijob x.yaml --to experiment.yaml",)),
    _row("a manifest", "up d.yaml", {"d.yaml": DEPLOYMENT}, 3, "at:   d.yaml", "a Kubernetes manifest (Deployment)",
         "kubectl apply -f d.yaml", then=("init d",)),
    _row("a Chart.yaml", "package Chart.yaml", {"Chart.yaml": "apiVersion: v2\nname: rl\nversion: 0.1.0\n"}, 3,
         "at:   Chart.yaml", "Chart.yaml of a Helm chart", "give the spec"),
    _row("the folder of a chart", "package rl", {"rl/Chart.yaml": "name: rl\n"}, 3, "at:   rl",
         "the folder of a Helm chart", "helm install NAME rl"),
    _row("node pools", "package p.yaml", {"p.yaml": "pools: [{name: a}]\n"}, 3, "at:   p.yaml",
         "a file of node pools", "symph plan SPEC --pools p.yaml"),
    _row("settings", "package .symph.yaml", {".symph.yaml": "repository: https://example.org/r.git\n"}, 3,
         "at:   .symph.yaml", "a settings file", "give the spec beside it"),
    _row("a shell script", "up train.sh", {"train.sh": "#!/bin/sh\npython train.py\n"}, 3, "at:   train.sh",
         "this is a shell script", "args: [train.sh]"),
    _row("a SkyPilot task", "up t.yaml", {"t.yaml": "num_nodes: 2\nrun: |\n  python t.py\n"}, 3, "at:   t.yaml",
         "this is a SkyPilot task", "its `replicas`", then=("init t",)),
    _row("a SkyPilot task to import", "import compose t.yaml", {"t.yaml": "resources: {cpus: 2}\nrun: x\n"}, 3,
         "at:   t.yaml", "this is a SkyPilot task", "symph init"),
    _row("a dstack configuration", "up d.yml", {"d.yml": "type: task\ncommands:\n  - python t.py\n"}, 3,
         "at:   d.yml", "this is a dstack configuration", "`cmds`"),
    _row("a process-compose file", "up p.yaml", {"p.yaml": "version: '0.5'\nprocesses:\n  a:\n    command: x\n"}, 3,
         "at:   p.yaml", "this is a process-compose file", "`cmds`"),
    _row("a process-compose file without a version", "up p.yaml",
         {"p.yaml": "processes:\n  a:\n    command: x\n    availability:\n      restart: always\n"}, 3,
         "at:   p.yaml", "this is a process-compose file", "`cmds`"),
    _row("a tmuxp session", "up s.yaml", {"s.yaml": "session_name: x\nwindows:\n  - panes: [vim]\n"}, 3,
         "at:   s.yaml", "this is a tmuxp session", "each pane"),
    _row("a Procfile", "up Procfile", {"Procfile": "web: python app.py\nworker: python w.py\n"}, 3, "at:   Procfile",
         "this is a Procfile", "each line becomes a process"),
    _row("a Ray cluster", "up r.yaml", {"r.yaml": "cluster_name: x\nprovider: {type: aws}\n"}, 3, "at:   r.yaml",
         "the configuration of a Ray cluster", "ray start"),
    _row("a Ray job", "up r.yaml", {"r.yaml": "apiVersion: ray.io/v1\nkind: RayJob\n"}, 3, "at:   r.yaml",
         "a Kubernetes manifest (RayJob)", "kubectl apply"),
    _row("a TorchX component", "up c.py",
         {"c.py": "import torchx.specs as specs\n\ndef job(image: str) -> specs.AppDef:\n    return 1\n"}, 3,
         "at:   c.py", "this is a TorchX component", "symph import torchx c.py:job --to experiment.yaml"),
    _row("a script of xpk", "up x.sh", {"x.sh": "xpk workload create --command 'python t.py'\n"}, 3, "at:   x.sh",
         "this is a file of xpk", "`--command`"),
    _row("the values of a chart", "up values.yaml", {"values.yaml": "replicaCount: 2\nimage: {tag: x}\n"}, 3,
         "at:   values.yaml", "this is the values of a Helm chart", "helm install NAME CHART -f values.yaml"),
    _row("an archive", "package rl.tgz", {"rl.tgz": b"\x1f\x8b\x08\0\xff"}, 3, "at:   rl.tgz", "an archive",
         "helm install NAME rl.tgz"),
    _row("a binary file", "package e.yaml", {"e.yaml": bytes(range(256))}, 3, "at:   e.yaml", "not UTF-8",
         "save it as UTF-8"),
    _row("an empty file", "package e.yaml", {"e.yaml": "# later\n"}, 3, "at:   e.yaml", "is empty", "`name:`"),
    _row("a folder without a spec", "package d", {"d": None}, 3, "at:   d", "the folder d has no experiment.yaml",
         "symph init",
         then=("init d2", "package d2/experiment.yaml")),
    _row("no such file", "up nope.yaml", {}, 3, "at:   nope.yaml", "does not exist", "symph init NAME",
         then=("init nope",)),
    _row("a file's name misspelled", "package exprt.yaml", {"expert.yaml": OK}, 3, "at:   exprt.yaml", "does not exist",
         "did you mean expert.yaml?", then=("package expert.yaml",)),
    _row("a program in place of a spec", "up train.py", {"train.py": "steps = 3\n"}, 3, "at:   train.py",
         "defines no experiment", "symph init NAME"),
    _row("a module that is not installed", "package e.py", {"e.py": "import torchh_\n"}, 3, "at:   e.py:1",
         "No module named 'torchh_'", "the file raised this error"),
    _row("a syntax error in Python", "package e.py", {"e.py": "def x(:\n"}, 3, "at:   e.py:1", "SyntaxError",
         "the file"),
    _row("values in place of --set-file", "package e.yaml -f nope.yaml", SPEC, 3, "at:   nope.yaml",
         "No such file or directory", "give a YAML or JSON file"),
)  # fmt: skip

_TEXTS = (
    _spec("tabs", "name: rl\nprocesses:\n\ta:\n", "at:   e.yaml:3", "a tab where", "indent with blanks"),
    _spec("a key too deep", "name: rl\n image: x\n", "at:   e.yaml:2", "indented below a key", "the same indentation"),
    _spec("a process's keys not deep enough", "name: rl\nimage: x\nprocesses:\n  a:\n  command: x\n",
          "at:   e.yaml:5, processes.command", "expected a name, got the key `command`", "indent it deeper"),
    _spec("no blank behind a colon", "name:rl\nimage: x\n", "at:   e.yaml:2",
          "no blank after the colon of line 1",
          "KEY: VALUE"),
    _spec("an open quote", "name: 'rl\nimage: x\n", "at:   e.yaml:1", "the quote that opens here", "close it"),
    _spec("a value that begins with @", "name: rl\nimage: @x\n", "at:   e.yaml:2", "no value begins with `@`",
          "quotes"),
    _spec("a line without a colon", "name: rl\nimage\nprocesses: {}\n", "at:   e.yaml:2", "is no `KEY: VALUE`",
          "a colon"),
    _spec("a name twice", OK + "  a: {command: x}\n", "at:   e.yaml:7, processes.a", '"a" appears twice', "keep one"),
    _spec("yes", _with("env: {X: yes}"), "at:   e.yaml:7, processes.a.env.X", "`yes` is a boolean to some", '"yes"'),
    _row("comments in JSON", "package e.json", {"e.json": '{\n  // name\n  "name": "x"}'}, 3, "at:   e.json:2:3",
         "JSON does not allow comments", "in YAML"),
    _row("single quotes in JSON", "package e.json", {"e.json": "{'name': 'x'}"}, 3, "at:   e.json:1:2",
         "JSON texts need", "use double quotes"),
)  # fmt: skip

_FIELDS = (
    _spec("replicas: -1", _with("replicas: -1"), "e.yaml:7, processes.a.replicas", "-1 is too low", "at least 0"),
    _spec("replicas in quotes", _with("replicas: '3'"), "e.yaml:7, processes.a.replicas", 'got "3"',
          "write 3 without quotes"),
    _requests("4 GB", "{memory: 4 GB}", "not an amount of memory", 'did you mean "4G"?'),
    _requests("cpu: 1,5", "{cpu: '1,5'}", "not an amount of cpu", 'did you mean "1.5"?'),
    _requests("ram", "{ram: 4Gi}", 'no resource "ram"', 'did you mean "memory"?'),
    _requests("gpus among the requests", "{gpus: 1}", 'no resource "gpus"', "a field beside `requests`"),
    _spec("resources around requests", _with("resources: {requests: {cpu: 1}}"), "e.yaml:7, processes.a.resources",
          'unknown key "resources"', "write `requests` and `limits` right here"),
    _spec("env as a list of maps", _with("env:\n- {name: X, value: 1}"), "e.yaml:7, processes.a.env", "got a list",
          'without dashes, as in `X: "1"`'),
    _spec("a variable without a value", _with("env: {X: }"), "e.yaml:7, processes.a.env.X", "has no value", 'write ""'),
    _spec("a blank in a variable's name", _with("env: {'MY VAR': a}"), "e.yaml:7, processes.a.env.MY VAR",
          "is not a valid name of a variable", "use letters"),
    _spec("processes as a list", "name: x\nprocesses:\n- {name: a, command: x}\n", "e.yaml:2, processes",
          "expected a map, got a list", "without dashes, as in `a:`"),
    _spec("a key of a process at the margin", f"{OK}command: x\n", "e.yaml:7, command", "unknown key",
          "belongs to a process"),
    _spec("services of compose in a spec", OK + "services: {web: {image: x}}\n", "e.yaml:7, services", "unknown key",
          "what a process `binds`", "symph import compose"),
    _spec("a field misspelled", _with("replica: 2"), "e.yaml:7, processes.a.replica", "unknown key",
          'did you mean "replicas"?'),
    _spec("after a process that is not there", f"{OK}  b: {{command: x, after: [aa]}}\n", "e.yaml:7, processes.b.after",
          'unknown process "aa"', 'did you mean "a"?'),
    _spec("cyclic after", _with("after: [b]") + "  b: {command: x, after: [a]}\n", "e.yaml:7, processes.a.after",
          "wait for each other: a -> b -> a", "remove one"),
    _spec("a service misspelled", _with("binds: [replay]") + "  b: {command: x, connects: [repaly]}\n",
          "e.yaml:8, processes.b.connects[0]", "but no process binds it", 'did you mean "replay"?'),
    _spec("two processes bind one service", _with("binds: [x]") + "  b: {command: x, binds: [x]}\n",
          "e.yaml:8, processes.b.binds[0]", 'both "b" and "a" listen on "x"', "`replicas`"),
    _spec("ports of compose", _with("binds: {x: '80:6006'}"), "e.yaml:7, processes.a.binds.x", 'got "80:6006"',
          "listens: 6006"),
    _spec("an image with a blank", OK.replace("python:3.12-slim", "python 3.12"), "e.yaml, image",
          "is not a valid image name", "without blanks"),
    _spec("no image", OK.replace("image: python:3.12-slim\n", ""), "e.yaml, processes.a.image", "has no image",
          "`image` for the whole experiment"),
    _spec("a config file that is not there", f"configs: {{c: {{file: c.yaml}}}}\n{OK}", "e.yaml:1, configs.c.file",
          'cannot read "c.yaml"', "start at the folder"),
    _spec("restart: sometimes", _with("restart: sometimes"), "e.yaml:7, processes.a.restart", "is none of",
          "write one"),
    _spec("a variable in a name", OK.replace("rl", "${NAME}", 1), "e.yaml:1, name", "is not a valid name",
          "lower-case"),
    _spec("a line in place of a program", OK.replace("python\n", "python3 -V\n"), "containers.a.command",
          "taken for the name of one program", "`cmds:`", verb="validate", status=0),
    _spec("memory without a unit", _with("requests: {memory: 4}"), "requests.memory", "are bytes", '"4Gi"',
          verb="validate", status=0),
)  # fmt: skip

_WORDS = (
    _row("a flag misspelled", "up e.yaml --wiat", SPEC, 2, "unrecognized", "did you mean --wait?", "symph up --help",
         then=("up --help",)),
    _row("a flag before the verb", "-n x ls", {}, 2, "-n", "options come after the verb", "symph --help",
         then=("--help",)),
    _row("local for tmux", "ls --on local", {}, 2, "--on", "did you mean tmux?", "symph ls --help"),
    _row("a dry run of kubectl", "up --dry-run=client e.yaml", SPEC, 2, "--dry-run", "takes no value",
         "symph up --help", then=("up --dry-run e.yaml",)),
    _row("a format misspelled", "package e.yaml -o josn", SPEC, 2, "'josn'", "did you mean json?",
         "symph package --help"),
    _row("a time in words", "logs rl --since yesterday", {}, 2, "--since", "'yesterday' is not a time",
         "symph logs --help"),
    _row("list", "list", {}, 2, 'no verb "list"', "did you mean `symph ls`", "symph help --all", then=("ls",)),
    _row("two specs of one name", "package e.yaml f.yaml", {"e.yaml": OK, "f.yaml": OK}, 3, "at:   name",
         "e.yaml and f.yaml both make", "rename one"),
    _row("a flag below a nested verb misspelled", "gitops init --repositry x", {}, 2, "--repositry",
         "did you mean --repo?", "symph gitops init --help", then=("gitops init --help",)),
    _row("a verb misspelled", "pubish e.yaml", SPEC, 2, 'no verb "pubish"', "symph publish",
         "all verbs: symph help --all"),
    _row("a value misspelled", "package e.yaml --set groups.a.replica=9", SPEC, 3, "groups.a.replica",
         "is not a value of this chart", "did you mean groups.a.replicas?",
         then=("package e.yaml --set groups.a.replicas=9",)),
    _row("--set without a value", "package e.yaml --set groups.a.replicas", SPEC, 2, "--set groups.a.replicas",
         "has no value", "KEY=VALUE"),
    _row("a group misspelled", "package e.yaml --set groups.agnet.replicas=3",
         {"e.yaml": OK.replace("  a:", "  agent:")}, 3, "groups.agnet", "is not a value of this chart",
         "did you mean groups.agent?"),
    _row("a field of the spec for --set", "package e.yaml --set groups.a.cwd=/w", SPEC, 3, "groups.a.cwd",
         "is not a value of this chart", "--spec-set processes.a.cwd=VALUE",
         then=("package e.yaml --spec-set processes.a.cwd=/w",)),
    _row("values that are no YAML", "package e.yaml -f v.yaml", {**SPEC, "v.yaml": "a: 1\nb: yes\nc: 010\n"}, 3,
         "at:   v.yaml:2, b\n", "write true, false", "at:   v.yaml:3, c\n"),
    _row("a spec as values", "package e.yaml -f e.yaml", SPEC, 3, "at:   e.yaml", "is an experiment, and -f takes",
         "without -f"),
    _row("a spec behind -f", "up --dry-run -f e.yaml", SPEC, 3, "at:   experiment.yaml", "does not exist",
         "give one: e.yaml", then=("up --dry-run e.yaml",)),
    _row("a folder that cannot be written", "package e.yaml -d /proc/x", SPEC, 6, "at:   /proc/x", "cannot write",
         "-d FOLDER", then=("package e.yaml -d out",)),
    _row("a sweep over a field misspelled", "sweep e.yaml --grid processes.a.replica=1,2", SPEC, 3,
         "e.yaml, processes.a.replica", "unknown key", 'did you mean "replicas"?'),
    _row("init of what is there", "init x", {"x/a": ""}, 7, "x already exists", "next:", "another name",
         then=("init y",)),
    _row("a template misspelled", "init x --template pyhton", {}, 8, 'unknown template "pyhton"', "not yaml, python",
         "symph init --help"),
    _row("a version of Kubernetes", "validate e.yaml --kube-version 1.99", SPEC, 3, '"1.99"', "no schemas",
         "use one of", then=("validate e.yaml --kube-version 1.34",)),
    _row("the spec of what does not run", "down e.yaml", SPEC, 8, "does not run here", "symph up SPEC", then=("ls",)),
    _row("logs of what does not run", "logs rl", {}, 8, 'no experiment "rl"', "next:", "symph up SPEC"),
    _row("a plan without pools", "plan e.yaml", SPEC, 2, "at:   e.yaml", "no node pools", "symph init",
         then=("init x", "plan e.yaml --pools x/pools.yaml")),
    _row("pools that are not there", "plan e.yaml --pools p.yaml", SPEC, 3, "p.yaml", "does not exist",
         "give a file"),
)  # fmt: skip

_PLACES = (
    _row("no cluster is configured", "ls --on kube", {}, 6, ".kube/config", "no cluster is configured", "$KUBECONFIG"),
    _row("a broken kubeconfig", "ls --on kube --kubeconfig k", {"k": "a: [b"}, 3, "at:   k:2", "is not YAML",
         "kubectl config view"),
    _row("a context misspelled", "ls --on kube --kubeconfig k --context noe", {"k": KUBECONFIG}, 3, "at:   k",
         'unknown context "noe"', 'did you mean "one"?'),
    _row("a cluster that refuses connections", "ls --on kube --kubeconfig k", {"k": KUBECONFIG}, 6, "127.0.0.1:1",
         "does not answer", "kubectl cluster-info"),
    _row("no tmux", "up e.yaml", SPEC, 5, "tmux is not installed", "next:", "install tmux", PATH="/nope"),
    _row("publish without settings", "publish e.yaml --env dev", SPEC, 2, "which repository", "next:", "--repo URL"),
    _row("settings misspelled", "publish e.yaml --env dev", {**SPEC, ".symph.yaml": "tem: x\n"},
         3, ".symph.yaml:1, tem",
         'unknown key "tem"', 'did you mean "team"?'),
    _row("promote to an unknown environment", "promote rl --from dev --to prdo", {**SPEC, ".symph.yaml": SETTINGS}, 2,
         ".symph.yaml, environments", 'unknown environment "prdo"', 'did you mean "prod"?'),
    _row("publish without a team", "publish e.yaml --env dev --repo r", SPEC, 3, "e.yaml, team", "has no team",
         "--team"),
    _row("a repository that is not there", "publish e.yaml --env dev --team t --repo /nope.git", SPEC, 6, "/nope.git",
         "does not appear to be a git repository", "git ls-remote"),
    _row("a repository behind a name that nobody has",
         "publish e.yaml --env dev --team t --repo https://a.invalid/r.git",
         SPEC, 6, "a.invalid", "esolve host", "check the address"),
    _row("a version that is none", "publish e.yaml --env dev --team t --repo r --version v1", SPEC, 3, "version",
         '"v1" is not a semantic version', "1.2.3"),
    _row("gitops lint of no folder", "gitops lint x", {}, 3, "at:   x", "no folder x", "folder of a checkout"),
    _row("status of what nobody knows", "status rl", {}, 8, "nothing is known of rl", "not asked", "symph status",
         then=("status",)),
    _row("a registry that refuses connections", "push dist/rl-0.1.0.tgz oci://127.0.0.1:1/x", SPEC, 6, "127.0.0.1:1",
         "cannot reach",
         "check the address", before=("package e.yaml",)),
)  # fmt: skip

MISTAKES = (*_FILES, *_TEXTS, *_FIELDS, *_WORDS, *_PLACES)
