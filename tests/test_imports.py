"""The house stands while every room imports only the rooms above it, and only named modules touch the world."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from symphony_charts.cli.verbs import GROUPS, HIDDEN, VERBS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "symphony_charts"

# The rooms in the order of imports: each imports itself and those before it. docs/development.md says what is in them.
ROOMS = (
    "version",
    "errors",
    "formats",
    "system",
    "spec",
    "environment",
    "kinds",
    "placement",
    "chart",
    "oci",
    "secrets",
    "settings",
    "prepare",
    "gate",
    "package",
    "importers",
    "backend",
    "local",
    "kubernetes",
    "gitops",
    "clusters",
    "sweep",
    "cli",
    "torchx_scheduler",
    "engine",
    "kube",
    "tmux",
    "commandline",
    "compat",
)
# Other people's names for all this: nobody imports them but each other.
OUTERMOST = ROOMS[ROOMS.index("torchx_scheduler") :]

# What a pure module may not import: files, processes, network, clock, chance.
WORLD = {
    "asyncio",
    "concurrent",
    "ctypes",
    "datetime",
    "fcntl",
    "http",
    "kubernetes",
    "libtmux",
    "multiprocessing",
    "os",
    "pty",
    "pwd",
    "pyhelm3",
    "random",
    "requests",
    "resource",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "termios",
    "threading",
    "time",
    "tty",
    "urllib",
    "urllib3",
    "uuid",
    "webbrowser",
    "websocket",
}
# Texts about addresses, not the network.
NOT_WORLD = {"urllib.parse"}
# Methods of paths that look at a file system.
FILE_METHODS = {
    "absolute",
    "chmod",
    "cwd",
    "exists",
    "expanduser",
    "glob",
    "home",
    "is_dir",
    "is_file",
    "iterdir",
    "mkdir",
    "open",
    "read_bytes",
    "read_text",
    "rename",
    "resolve",
    "rglob",
    "stat",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
}
# The rooms and modules that may touch clock, files, processes or network; every other module takes values and returns
# values. A folder stands for what is below it.
TOUCHES_THE_WORLD = (
    "backend/current_experiment",
    "backend/status",
    "chart/files/package_cache",
    "chart/files/read",
    "cli",
    "clusters/base",
    "clusters/gitops",
    "clusters/gke_dispatcher",
    "clusters/symphony_api",
    "compat",
    "gitops/bootstrap_files",
    "gitops/store/checkout",
    "gitops/store/store",
    "importers/torchx/components",
    "kubernetes",
    "local/backend",
    "local/completion_names",
    "local/di_server",
    "local/history",
    "local/log_file",
    "local/log_tail",
    "local/logs",
    "local/machine",
    "local/mounts",
    "local/process_files",
    "local/reload",
    "local/restart_changed",
    "local/run_files",
    "local/run_folder",
    "local/run_identity",
    "local/runs",
    "local/show_environment",
    "local/shown_sessions",
    "local/status",
    "local/supervisor",
    "local/tmux_client",
    "local/up",
    "local/volumes",
    "oci/client",
    "oci/logins",
    "oci/push",
    "oci/transport",
    "oci/workspace",
    "package",
    "placement/pools/files",
    "placement/pools/of_spec",
    "secrets/files",
    "settings/places",
    "settings/project",
    "settings/saved_experiments",
    "settings/user",
    "settings/values_files",
    "spec/files",
    "sweep/kubernetes",
    "sweep/local",
    "sweep/record",
    "sweep/search",
    "system",
    "torchx_scheduler",
)
MODULES = sorted(PACKAGE.rglob("*.py"))
# Our own modules that are imported inside of functions: who does it, what is imported, and why not at the top.
LATE = {
    ("cli.commands.chart.package", "cli.commands.chart.workspace"): "28 ms, of the 250 in which a chart is packaged",
    ("cli.commands.chart.package", "cli.commands.gitops.publish"): "45 ms, likewise",
    (
        "cli.commands.gitops.git_repository",
        "cli.commands.gitops.review",
    ): "60 ms, which only the text of a pull request needs",
    ("cli.commands.helm.choice", "cli.commands.helm.release"): "190 ms, which Git's half of the verb has not",
    ("cli.commands.look.status_sources", "kubernetes.backend"): "100 ms, which whoever has no cluster has not",
    ("cli.commands.look.top", "cli.cockpit.app"): "500 ms, which the plain table has not",
    ("cli.commands.start.attach", "cli.commands.start.attach_tiles"): "90 ms, which a terminal has not",
    ("cli.commands.start.run", "cli.commands.start.run_here"): "190 ms, in which the supervisor starts",
    ("cli.commands.start.run", "cli.commands.start.run_kube"): "100 ms, which no run on this machine has",
    ("cli.commands.start.up", "cli.commands.start.up_run"): "190 ms, in which the supervisor starts",
    ("cli.commands.study.sweep", "cli.commands.study.sweep_search"): "700 ms of optuna, which a grid has not",
    ("cli.diagnosis", "cli.full_pools"): "100 ms of placement, which only a full pool needs",
    ("cli.experiments", "kubernetes.backend"): "100 ms, of the 80 in which `symph ps` answers",
    ("cli.experiments", "spec.files"): "190 ms, which a verb that is given a name does not need",
    ("cli.failures", "cli.error_report"): "15 ms, which only a failure pays",
    ("cli.error_report", "system.installation"): "15 ms, which only a missing extra pays",
    ("cli.output", "formats.yaml_text"): "17 ms, which a table has not",
    ("clusters.builders", "clusters.render"): "the chart, which launching in tmux does without",
    ("clusters.kubernetes", "kubernetes.releases.releases"): "230 ms, which only who installs pays",
    ("kubernetes.delete", "kubernetes.releases.releases"): "230 ms, which only who deletes a release pays",
    ("placement.pools.of_spec", "placement.pools.files"): "10 ms, which experiments without pools have not",
    ("local.backend", "local.machine.gpu_use"): "20 ms, of the 80 in which `symph ps` answers",
    ("local.backend", "local.deletion"): "120 ms, of the 80 in which `symph ps` answers",
}
MAX_LATE = 44
# What the options of verbs may import: help and completion of a verb load nothing else.
FOR_OPTIONS = {"__future__", "argparse", "collections.abc", "datetime", "os", "re", "time"}
FOR_OPTIONS |= {"symphony_charts.errors", "symphony_charts.system.entry_points"}
MAX_LINES = 400
MAX_MODULES = 30


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names_in(node: ast.AST) -> set[str]:
    """The modules that one statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        below = {f"{node.module}.{alias.name}" for alias in node.names}
        return {name if name in NAMES else node.module for name in below}
    return set()


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module that `path` imports, wherever in the file: inside functions and for types alone, too."""
    return frozenset(name for node in ast.walk(tree_of(path)) for name in names_in(node))


def room_of(module: str) -> str:
    """``symphony_charts.chart.compile`` -> ``chart``; empty for the package itself and for other projects."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "symphony_charts" and parts[1] in ROOMS else ""


def in_room(path: Path) -> str:
    """``symphony_charts/chart/files/read.py`` -> ``chart/files/read``."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix().removesuffix("/__init__")


def may_touch_the_world(path: Path) -> bool:
    name = in_room(path)
    return any(name == allowed or name.startswith(f"{allowed}/") for allowed in TOUCHES_THE_WORLD)


def imports_paths_of_files(path: Path) -> bool:
    """Whether a module imports more of pathlib than pure paths, which have no methods that touch files."""
    imports = [node for node in ast.walk(tree_of(path)) if "pathlib" in names_in(node)]
    names = {alias.name for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names}
    return any(isinstance(node, ast.Import) for node in imports) or not names <= {"PurePath", "PurePosixPath"}


def world_in(path: Path) -> set[str]:
    """What of the world a module touches."""
    modules = {name for name in imports_of(path) - NOT_WORLD if name.split(".")[0] in WORLD}
    attributes = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    names = {node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name)}
    files = attributes & FILE_METHODS if imports_paths_of_files(path) else set()
    return modules | files | (names & {"open"})


def test_every_module_is_in_a_room() -> None:
    tops = {in_room(path).split("/")[0] for path in MODULES} - {"symphony_charts", "__init__", "__main__", "."}
    assert tops == set(ROOMS)
    assert len([room for room in ROOMS if (PACKAGE / room).is_dir()]) <= 20


def test_a_room_imports_only_the_rooms_above_it() -> None:
    upwards = {
        (module_name(path), name)
        for path in MODULES
        for name in imports_of(path)
        if room_of(name) and room_of(module_name(path))
        if ROOMS.index(room_of(name)) > ROOMS.index(room_of(module_name(path)))
    }
    assert not upwards


def test_a_pure_module_touches_no_clock_file_process_or_network() -> None:
    touched = {module_name(path): world_in(path) for path in MODULES if not may_touch_the_world(path)}
    assert not {module: world for module, world in touched.items() if world}


def test_what_may_touch_the_world_does() -> None:
    touching = [f"{in_room(path)}/" for path in MODULES if world_in(path)]
    assert not [
        allowed for allowed in TOUCHES_THE_WORLD if not any(name.startswith(f"{allowed}/") for name in touching)
    ]


def test_no_module_is_imported_in_a_circle() -> None:
    graph = {module_name(path): imports_of(path) & NAMES for path in MODULES}

    def reached_from(module: str) -> set[str]:
        reached: set[str] = set()
        ahead = list(graph[module])
        while ahead:
            name = ahead.pop()
            if name not in reached:
                reached.add(name)
                ahead.extend(graph[name])
        return reached

    assert not {module for module in graph if module in reached_from(module)}


def late_imports() -> list[tuple[str, str]]:
    """The imports inside of functions: the module and what it imports there, once for each statement."""
    found: list[tuple[str, str]] = []
    for path in MODULES:
        functions = (
            node for node in ast.walk(tree_of(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        statements = {node for function in functions for node in ast.walk(function) if names_in(node)}
        found += [(module_name(path), min(names_in(node))) for node in statements]
    return found


def test_hardly_anything_is_imported_inside_of_functions() -> None:
    late = late_imports()
    ours = {tuple(name.removeprefix("symphony_charts.") for name in pair) for pair in late if pair[1] in NAMES}
    assert ours == set(LATE)
    assert len(late) <= MAX_LATE


def test_no_import_is_for_type_checkers_alone() -> None:
    assert not [module_name(path) for path in MODULES if "TYPE_CHECKING" in path.read_text(encoding="utf-8")]


def test_options_import_nothing_heavy() -> None:
    imported = {
        (module_name(path), name)
        for path in MODULES
        if in_room(path).startswith("cli/options/")
        for name in imports_of(path)
        if name not in FOR_OPTIONS and not name.startswith("symphony_charts.cli.options.")
    }
    assert not imported


def test_every_verb_has_its_options_beside_its_command() -> None:
    def below(folder: str) -> set[str]:
        return {in_room(path).removeprefix(f"cli/{folder}/") for path in MODULES if f"cli/{folder}/" in in_room(path)}

    verbs = {verb.module.replace(".", "/") for verb in (*VERBS, *HIDDEN)}
    assert verbs <= below("options") & below("commands")
    assert {verb.group for verb in VERBS} == set(GROUPS)


def test_nobody_imports_what_carries_other_peoples_names() -> None:
    users = {
        (module_name(path), room_of(name))
        for path in MODULES
        for name in imports_of(path)
        if room_of(name) in OUTERMOST and room_of(module_name(path)) not in OUTERMOST
    }
    assert not users


def test_no_module_is_long_and_no_folder_is_crowded() -> None:
    long = {module_name(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES}
    crowded = {folder for folder in {path.parent for path in MODULES} if len(list(folder.glob("*.py"))) > MAX_MODULES}
    assert not long | {str(folder) for folder in crowded}
