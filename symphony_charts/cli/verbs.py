"""The table of verbs: what `symph --help` shows and which module answers.

A verb is one module of this package with two functions: ``configure(parser)`` adds its arguments, ``run(args)`` does
the work and returns the exit status. Only the module of the verb that was typed is imported, which keeps `symph --help`
fast. To add a verb, write the module and add one row.
"""

from __future__ import annotations

__all__ = ["GROUPS", "HIDDEN", "VERBS", "Verb", "find_verb"]


class Verb:
    """One row: a name, other names, one line of help, the module below `symphony_charts.cli`, a group of the help."""

    __slots__ = ("aliases", "group", "module", "name", "summary")

    # A plain class: importing dataclasses or typing costs more than the whole table.
    def __init__(self, name: str, aliases: tuple[str, ...], summary: str, module: str, group: str) -> None:
        self.name = name
        self.aliases = aliases
        self.summary = summary
        self.module = module
        self.group = group

    @property
    def names(self) -> tuple[str, ...]:
        """The name followed by the aliases."""
        return (self.name, *self.aliases)


# The order of the groups in `symph --help`.
GROUPS = ("Write", "Run here", "Watch and steer", "Charts", "Placement", "Git", "Cluster", "Tools")

VERBS: tuple[Verb, ...] = (
    Verb("init", (), "make the folder of a new experiment", "write.init", "Write"),
    Verb("schema", (), "print the JSON Schema of experiment files, for editors", "write.schema", "Write"),
    Verb(
        "import",
        (),
        "make an experiment of a TorchX, DI-engine, compose or Symphony job",
        "write.import_",
        "Write",
    ),
    Verb("export", (), "put an experiment into the format of another tool", "write.export", "Write"),
    Verb("runopts", (), "list TorchX's run options and what they become", "write.runopts", "Write"),
    Verb("up", (), "start an experiment on this machine, in tmux", "run.up", "Run here"),
    Verb("down", (), "end an experiment on this machine, and everything it started", "run.down", "Run here"),
    Verb("restart", (), "start processes of a running experiment again", "run.restart", "Run here"),
    Verb("sweep", (), "vary settings of an experiment: one chart, many trials", "write.sweep", "Write"),
    Verb("local", (), "runs of this machine: environment, parity, exports, history", "run.local", "Run here"),
    Verb("attach", (), "open the terminal of a running experiment", "run.attach", "Run here"),
    Verb(
        "process",
        ("list-processes", "lsp", "p"),
        "list the processes of an experiment",
        "watch.process",
        "Watch and steer",
    ),
    Verb("logs", ("log", "l"), "print what processes wrote", "watch.logs", "Watch and steer"),
    Verb("ls", ("list-experiments", "lse"), "list the experiments", "watch.ls", "Watch and steer"),
    Verb(
        "describe",
        (),
        "how an experiment is: processes, services, events",
        "watch.describe",
        "Watch and steer",
    ),
    Verb("events", (), "what happened to an experiment", "watch.events", "Watch and steer"),
    Verb("top", (), "what processes do and use, live", "watch.top", "Watch and steer"),
    Verb("wait", (), "return when an experiment is ready, has ended...", "watch.wait", "Watch and steer"),
    Verb("collect", (), "bring logs, states and results here", "watch.collect", "Watch and steer"),
    Verb("exec", ("x",), "run a command where a process runs", "watch.exec", "Watch and steer"),
    Verb("ssh", (), "open a shell where a process runs", "watch.ssh", "Watch and steer"),
    Verb("scp", ("cp",), "copy files from and to where a process runs", "watch.scp", "Watch and steer"),
    Verb(
        "visit",
        ("vi",),
        "open a service in the browser, or print its address",
        "watch.visit",
        "Watch and steer",
    ),
    Verb(
        "switch-experiment",
        ("se", "e"),
        "choose the experiment that verbs mean when they name none",
        "watch.switch_experiment",
        "Watch and steer",
    ),
    Verb("delete", ("d",), "end an experiment and forget it", "watch.delete", "Watch and steer"),
    Verb("delete-batch", ("db",), "end all experiments whose names fit", "watch.delete_batch", "Watch and steer"),
    Verb("package", (), "make Helm charts and archives of experiments", "charts.package", "Charts"),
    Verb("render", (), "print the Kubernetes objects of an experiment", "charts.render", "Charts"),
    Verb("lint", (), "check experiments and their charts, without helm or a cluster", "charts.lint", "Charts"),
    Verb("install", (), "install an experiment as a Helm release, by hand", "helm.install", "Cluster"),
    Verb("upgrade", (), "let a Helm release run another chart or other values", "helm.upgrade", "Cluster"),
    Verb("uninstall", (), "remove a Helm release and all that it left", "helm.uninstall", "Cluster"),
    Verb(
        "plan",
        (),
        "say where an experiment would run, and whether it certainly fits",
        "charts.plan",
        "Placement",
    ),
    Verb(
        "catalog",
        (),
        "look at machine types and at the node pools of a cluster file",
        "charts.catalog",
        "Placement",
    ),
    Verb("push", (), "put charts into an OCI registry, or into a folder with an index", "charts.push", "Charts"),
    Verb(
        "publish",
        (),
        "put charts into the Git repository, and let an environment run them",
        "git.publish",
        "Git",
    ),
    Verb(
        "diff",
        (),
        "what would change, object by object, and what Argo CD would do about it",
        "git.diff",
        "Git",
    ),
    Verb("promote", (), "let one environment run what another runs", "git.promote", "Git"),
    Verb("rollback", (), "let an environment run again what it ran before", "git.rollback", "Git"),
    Verb("retire", (), "take an experiment out of an environment", "git.retire", "Git"),
    Verb("status", (), "what each environment runs", "git.status", "Git"),
    Verb("gitops", (), "begin, check, render and tidy a Git repository of charts", "git.gitops", "Git"),
    Verb("history", (), "what an environment ran, and why", "git.history", "Git"),
    Verb("secrets", (), "make the Secret that an experiment's files need", "charts.secrets", "Charts"),
    Verb("doctor", (), "say what this machine has and lacks", "tools.doctor", "Tools"),
    Verb("completion", (), "print a completion script for a shell", "tools.completion", "Tools"),
)

# Verbs that programs call; no help page lists them.
HIDDEN: tuple[Verb, ...] = (Verb("__complete", (), "names for completion scripts", "tools.complete", "Tools"),)


def find_verb(name: str, verbs: tuple[Verb, ...] = VERBS) -> Verb | None:
    """The verb with that name or alias, or None."""
    for verb in verbs:
        if name in verb.names:
            return verb
    return None
