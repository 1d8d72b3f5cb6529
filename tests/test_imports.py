"""Imports lead from the outer rooms to the inner ones, and pure rooms do not touch the world."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "symphony_charts"

# In the order of imports: each room imports itself and those before it. docs/development.md describes them.
ROOMS = (
    *("version", "errors", "formats", "system", "spec", "environment", "kinds", "placement", "chart", "oci", "secrets"),
    *("settings", "prepare", "gate", "package", "importers", "backend", "local", "kubernetes", "gitops", "clusters"),
    *("sweep", "cli", "torchx_scheduler", "engine", "kube", "tmux", "commandline", "compat"),
)
# Rooms and folders that take values and return values.
PURE = (
    *("chart/build", "chart/lint", "chart/values", "environment", "errors", "formats", "gitops/argocd", "gitops/diff"),
    *("gitops/operations", "importers/common", "importers/compose", "importers/dijob", "kinds", "local/plan"),
    *("placement/assign", "placement/fit", "placement/machines", "placement/report", "prepare", "spec/builder"),
    *("spec/checks", "spec/model"),
)
# Clock, chance, files, processes and network.
WORLD = {
    *("datetime", "fcntl", "http", "kubernetes", "libtmux", "os", "pyhelm3", "random", "requests", "shutil", "signal"),
    *("socket", "ssl", "subprocess", "tempfile", "threading", "time", "urllib.request", "urllib3", "uuid"),
}
MAX_LATE_IMPORTS = 44
MAX_LINES = 400
MAX_MODULES = 30

MODULES = sorted(PACKAGE.rglob("*.py"))


def path_in_package(path: Path) -> str:
    """Return ``chart/files/read`` for ``symphony_charts/chart/folder.py``."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix().removesuffix("__init__").rstrip("/")


def module_name(path: Path) -> str:
    return ".".join(filter(None, ["symphony_charts", *path_in_package(path).split("/")]))


NAMES = {module_name(path) for path in MODULES}


def names_in(node: ast.AST) -> set[str]:
    """Return the modules that one statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        below = {f"{node.module}.{alias.name}" for alias in node.names}
        return {name if name in NAMES else node.module for name in below}
    return set()


@cache
def imports_in(path: Path) -> tuple[tuple[frozenset[str], bool], ...]:
    """Return the modules of each import of a file, and True for an import inside a function."""
    found: list[tuple[frozenset[str], bool]] = []
    ahead: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while ahead:
        node, is_late = ahead.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((frozenset(names_in(node)), is_late))
        elif not isinstance(node, ast.expr):
            is_late = is_late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            ahead += [(child, is_late) for child in ast.iter_child_nodes(node)]
    return tuple(found)


def imports_of(path: Path) -> frozenset[str]:
    """Return every module that `path` imports, also inside functions and for types alone."""
    return frozenset[str]().union(*(names for names, _ in imports_in(path)))


def room_number(module: str) -> int:
    """Return the place of a module's room in `ROOMS`; -1 for the package itself and for other projects."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return ROOMS.index(room) if package == "symphony_charts" and room in ROOMS else -1


def test_a_room_imports_only_the_rooms_above_it() -> None:
    tops = {path_in_package(path).split("/")[0] for path in MODULES} - {"", "__main__"}
    assert tops == set(ROOMS)
    pairs = {(module_name(path), name) for path in MODULES for name in imports_of(path)}
    assert not {(user, used) for user, used in pairs if -1 < room_number(user) < room_number(used)}


def test_a_pure_room_touches_no_clock_file_process_or_network() -> None:
    pure = [path for path in MODULES if f"{path_in_package(path)}/".startswith(tuple(f"{room}/" for room in PURE))]
    touched = {
        module_name(path): {n for n in imports_of(path) if n in WORLD or n.split(".")[0] in WORLD} for path in pure
    }
    assert not {module: world for module, world in touched.items() if world}


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


def test_hardly_anything_is_imported_inside_of_functions() -> None:
    late = [(module_name(path), *names) for path in MODULES for names, is_late in imports_in(path) if is_late]
    assert len(late) <= MAX_LATE_IMPORTS, late


def test_no_module_is_long_and_no_folder_is_crowded() -> None:
    long = {module_name(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES}
    crowded = {folder for folder in {path.parent for path in MODULES} if len(list(folder.glob("*.py"))) > MAX_MODULES}
    assert not long | {str(folder) for folder in crowded}
