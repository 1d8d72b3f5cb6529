"""The table of verbs: the content of `symph --help`, and the module of each verb.

A module adds the arguments of its verb with ``configure(parser)`` and runs it with ``run(args)``, which returns the
exit status. A module of several verbs has such a pair for each: ``configure_ssh`` and ``run_ssh``. It is imported when
one of its verbs is typed. To add a verb, write a module, or a pair of functions, and add one row.
"""

from __future__ import annotations

# The verbs of `symph --help`, in four groups.
COMMON = {
    "Run": ("init", "run", "up", "down", "restart", "attach"),
    "Look": ("ps", "logs", "status", "wait"),
    "Package": ("validate", "plan", "package", "diff"),
    "Publish and vary": ("publish", "promote", "rollback", "sweep"),
}
# The groups of `symph help --all` in their order, with their titles.
GROUPS = {
    "start": "Start",
    "look": "Look",
    "inside": "Inside",
    "chart": "Chart",
    "gitops": "GitOps",
    "helm": "Helm",
    "study": "Study",
    "tools": "Tools",
}


class Verb:
    """One row: name, aliases, one line of help, the key of its group in `GROUPS`, and its module below `cli`.

    Help, messages and documentation use the name. The aliases are Symphony's names; they work, but no text lists them.
    A verb of a user's own project has neither group nor module.
    """

    __slots__ = ("aliases", "group", "module", "name", "summary")

    # A plain class: importing dataclasses costs more than the whole table.
    def __init__(self, name: str, aliases: tuple[str, ...], summary: str, group: str = "", module: str = "") -> None:
        self.name = name
        self.aliases = aliases
        self.summary = summary
        self.group = group
        self.module = module

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def without(self, taken: set[str]) -> Verb:
        if taken.isdisjoint(self.aliases):
            return self
        aliases = tuple(name for name in self.aliases if name not in taken)
        return Verb(self.name, aliases, self.summary, self.group, self.module)


VERBS: tuple[Verb, ...] = (
    Verb("init", (), "create the folder of a new experiment", "start", "init"),
    Verb("run", (), "start an experiment, print its output, and exit with its status", "start", "run"),
    Verb("up", (), "start an experiment on this machine, in tmux", "start", "run"),
    Verb("down", (), "end an experiment on this machine, and everything it started", "start", "down"),
    Verb("restart", (), "start processes of a running experiment again", "start", "down"),
    Verb("stop", (), "stop processes of a running experiment; the others keep running", "start", "down"),
    Verb("start", (), "start processes of a running experiment that have ended", "start", "down"),
    Verb("scale", (), "change the number of replicas in a running experiment", "start", "down"),
    Verb("attach", (), "open the terminal of a running experiment", "start", "attach"),
    Verb("ps", ("process", "list-processes", "lsp", "p"), "list the processes of an experiment", "look", "look"),
    Verb("logs", ("log", "l"), "print what processes wrote", "look", "logs"),
    Verb(
        "status", (), "show experiments here, on clusters and in Git; of one also services and events", "look", "status"
    ),
    Verb("top", (), "show processes and their usage, live", "look", "top"),
    Verb("wait", (), "wait until an experiment is ready or has ended", "look", "look"),
    Verb("ls", ("list-experiments", "lse"), "list the experiments", "look", "look"),
    Verb("exec", ("x",), "run a command where a process runs", "inside", "inside"),
    Verb("ssh", (), "open a shell where a process runs", "inside", "inside"),
    Verb("cp", ("scp",), "copy files from and to where a process runs", "inside", "inside"),
    Verb("open", ("visit", "vi"), "open a service in the browser, or print its address", "inside", "inside"),
    Verb("collect", (), "download logs, states and results", "inside", "inside"),
    Verb("rm", ("delete", "d"), "end experiments and remove their records", "inside", "rm"),
    Verb("validate", (), "check experiments and their charts, without helm or a cluster", "chart", "validate"),
    Verb("render", (), "print the Kubernetes objects of an experiment", "chart", "validate"),
    Verb("plan", (), "show where an experiment would run, and whether it fits for certain", "chart", "plan"),
    Verb("diff", (), "show what would change, object by object, and what Argo CD would do", "chart", "diff"),
    Verb("package", (), "make Helm charts and archives of experiments", "chart", "package"),
    Verb("push", (), "put charts into an OCI registry, or into a folder with an index", "chart", "push"),
    Verb("publish", (), "publish charts to the Git repository, and deploy them to an environment", "gitops", "publish"),
    Verb("promote", (), "promote an experiment from one environment to another", "gitops", "promote"),
    Verb("rollback", (), "return an environment to an earlier version", "gitops", "promote"),
    Verb("retire", (), "take an experiment out of an environment", "gitops", "promote"),
    Verb("history", (), "show what an environment ran, and why", "gitops", "promote"),
    Verb("gitops", (), "set up, check and clean up a Git repository of charts", "gitops", "gitops"),
    Verb("install", (), "install an experiment as a Helm release, by hand", "helm", "install"),
    Verb("upgrade", (), "upgrade a Helm release to another chart or other values", "helm", "install"),
    Verb("uninstall", (), "remove a Helm release and all that it left", "helm", "install"),
    Verb("sweep", (), "vary settings of an experiment: one chart, many trials", "study", "sweep"),
    Verb("import", (), "convert a TorchX, DI-engine, compose or Symphony job to an experiment", "study", "import_"),
    Verb("export", (), "convert an experiment to the format of another tool", "study", "export"),
    Verb("schema", (), "print the JSON Schema of experiment files, for editors", "study", "init"),
    Verb("use", ("switch-experiment", "se", "e"), "choose the default experiment of verbs", "tools", "config"),
    Verb("config", (), "show the settings in effect, and where each comes from", "tools", "config"),
    Verb("secrets", (), "create the Secret of an experiment's files", "tools", "secrets"),
    Verb("catalog", (), "look up machine types and the node pools of a cluster file", "tools", "catalog"),
    Verb("local", (), "inspect and clean up runs on this machine", "tools", "local"),
    Verb("doctor", (), "check what this machine has and lacks", "tools", "doctor"),
    Verb("completion", (), "print a completion script for a shell", "tools", "completion"),
    Verb("help", (), "print the help of a verb, or this page", "tools", "help"),
    Verb("version", (), "print the version", "tools", "help"),
)

# Verbs that no help page lists: one for programs, parts of `status`, and one of Symphony that differs from `rm`.
HIDDEN: tuple[Verb, ...] = (
    Verb("describe", (), "show an experiment, its processes, services and events, as `status`", "hidden", "look"),
    Verb("events", (), "show the events of an experiment, as `status`", "hidden", "look"),
    Verb("__complete", (), "names for completion scripts", "hidden", "completion"),
    Verb("delete-batch", ("db",), "end all experiments whose names fit, as `rm --match`", "hidden", "rm"),
)

# Names of actions in other tools, and the verbs that do the same here.
MEANINGS: dict[str, tuple[str, ...]] = {
    "add": ("publish",),
    "apply": ("up", "install", "publish"),
    "build": ("package",),
    "cancel": ("down", "rm"),
    "check": ("validate", "doctor"),
    "clean": ("local gc", "rm"),
    "connect": ("attach", "ssh"),
    "console": ("ssh", "attach"),
    "context": ("use",),
    "convert": ("import", "export"),
    "copy": ("cp",),
    "create": ("init", "up", "install"),
    "dashboard": ("top",),
    "delete-all": ("rm --match",),
    "deploy": ("publish", "install"),
    "destroy": ("rm", "down"),
    "docs": ("help",),
    "dry-run": ("plan", "up --dry-run"),
    "edit": ("upgrade",),
    "end": ("down",),
    "env": ("local env", "config"),
    "explain": ("plan --explain", "status"),
    "forward": ("open",),
    "generate": ("init", "render"),
    "get": ("ps", "ls", "status"),
    "info": ("status", "doctor"),
    "inspect": ("status",),
    "jobs": ("ls",),
    "kill": ("down", "rm"),
    "launch": ("run", "up"),
    "lint": ("validate",),
    "list": ("ls", "ps"),
    "login": ("ssh", "attach"),
    "man": ("help",),
    "manifests": ("render", "export manifests"),
    "monitor": ("top", "status"),
    "new": ("init",),
    "outputs": ("collect",),
    "pack": ("package",),
    "pods": ("ps",),
    "port-forward": ("open",),
    "prune": ("local gc", "gitops gc"),
    "queue": ("status",),
    "release": ("publish", "install"),
    "reload": ("up --watch", "restart"),
    "remove": ("rm",),
    "results": ("collect",),
    "revert": ("rollback",),
    "rsync": ("cp",),
    "search": ("sweep", "catalog search"),
    "services": ("status", "open"),
    "settings": ("config",),
    "shell": ("ssh",),
    "show": ("status", "ps"),
    "state": ("status",),
    "submit": ("up", "install", "publish"),
    "sync": ("publish",),
    "tail": ("logs -f",),
    "teardown": ("down", "rm"),
    "template": ("render",),
    "terminate": ("down",),
    "test": ("validate",),
    "tune": ("sweep",),
    "undeploy": ("retire", "uninstall"),
    "undo": ("rollback",),
    "update": ("up", "upgrade"),
    "verify": ("validate",),
    "volumes": ("local volumes",),
    "watch": ("ps -w", "top"),
    "where": ("plan",),
    "why": ("status",),
}


DESCRIPTION = "Experiments of many processes: in tmux on this machine, as a Helm chart on Kubernetes."
_OPTIONS = {
    "-h, --help": "this page; after a verb, the page of that verb",
    "-v, --verbose": "print more, with the output of programs that failed",
    "-q, --quiet": "print only the answer",
    "--color WHEN": "auto, always or never",
    "--version": "print the version",
}


def page_of(prog: str, description: str, verbs: tuple[Verb, ...], *, shows_all: bool = False) -> str:
    """Return the text of `symph --help`, or with `shows_all` of `symph help --all`."""
    # List aliases of a project's verbs only: built-in aliases exist for users who know them already.
    names = {verb.name: verb.name if verb.group else ", ".join(verb.names) for verb in verbs}
    width = max(map(len, (*names.values(), *_OPTIONS)))
    lines = [f"usage: {prog} VERB [ARGUMENTS] [-- COMMAND]", "", description]
    groups = {"This project": [verb for verb in verbs if not verb.group]}
    built_in = {verb.name: verb for verb in verbs if verb.group in GROUPS}
    if shows_all:
        groups |= {title: [verb for verb in built_in.values() if verb.group == key] for key, title in GROUPS.items()}
    else:
        groups |= {title: [built_in[name] for name in some if name in built_in] for title, some in COMMON.items()}
    groups["Plugins"] = [verb for verb in verbs if verb.group == "plugins"]
    for title, shown in groups.items():
        rows = {names[verb.name]: verb.summary for verb in shown}
        lines += ["", f"{title}:", *_aligned(rows, width)] if rows else []
    more = [] if shows_all else ["", f"{prog} help --all lists all {len(built_in)} verbs."]
    return "\n".join([*lines, "", "Options:", *_aligned(_OPTIONS, width), *more, ""])


def _aligned(rows: dict[str, str], width: int) -> list[str]:
    return [f"  {name:{width}}  {text}".rstrip() for name, text in rows.items()]


def find_verb(name: str, verbs: tuple[Verb, ...] = VERBS) -> Verb | None:
    for verb in verbs:
        if name in verb.names:
            return verb
    return None
