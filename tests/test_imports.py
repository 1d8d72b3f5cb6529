"""Folders import only the folders before them, so no core module an integration; modules keep a readable size."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "symphony_charts"

# The import order of folders and modules: each imports only itself and those before it.
ORDER = (
    *("version", "errors", "formats", "system", "spec", "kinds", "placement", "chart", "oci", "settings", "secrets"),
    *("prepare", "package", "importers", "backend", "local", "kubernetes", "gitops", "clusters", "sweep", "cli"),
    *("engine", "kube", "tmux", "commandline", "integrations", "compat", "torchx_scheduler"),
)
# A documented alias of an integration's module.
ALIASES = {"symphony_charts.clusters.hera_flows"}
# Folders of pure functions: they take values and return values.
PURE = (
    "formats",
    "environment",
    "kinds",
    "chart/build",
    "placement/fit",
    "placement/assign",
    "gitops/operations",
    "local/plan",
)
# Modules and methods that access files, processes, the network or the clock.
WORLD = {
    *("asyncio", "concurrent", "ctypes", "datetime", "fcntl", "http", "kubernetes", "libtmux", "multiprocessing", "os"),
    *("pty", "pwd", "pyhelm3", "random", "requests", "resource", "secrets", "select", "selectors", "shutil", "signal"),
    *("socket", "ssl", "subprocess", "tempfile", "termios", "threading", "time", "tty", "urllib3", "uuid", "websocket"),
}
FILE_METHODS = {
    "exists",
    "is_dir",
    "is_file",
    "iterdir",
    "mkdir",
    "open",
    "read_bytes",
    "read_text",
    "stat",
    "unlink",
    "write_text",
}
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_IMPORTS_IN_FUNCTIONS = 25
MAX_LINES = 500
MAX_SMALL_MODULES = 45
MAX_MODULES_OF_FOLDERS = {"cli": 54}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {module_name(path) for path in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names_in(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        below = {f"{node.module}.{alias.name}" for alias in node.names}
        return {name if name in NAMES else node.module for name in below}
    return set()


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return every module that `path` imports, including imports in functions."""
    return frozenset(name for node in ast.walk(tree_of(path)) for name in names_in(node))


def top_of(module: str) -> str:
    """Return the folder or module below the package: ``symphony_charts.chart.emit`` -> ``chart``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "symphony_charts" and parts[1] in ORDER else ""


def test_a_folder_imports_only_the_folders_before_it() -> None:
    assert {top_of(name) for name in NAMES} - {""} == set(ORDER)
    assert not {
        (module_name(path), name)
        for path in MODULES
        for name in imports_of(path)
        if top_of(name) and top_of(module_name(path)) and module_name(path) not in ALIASES
        if ORDER.index(top_of(name)) > ORDER.index(top_of(module_name(path)))
    }


def test_no_module_is_imported_in_a_circle() -> None:
    graph = {
        module_name(path): {name for statement in tree_of(path).body for name in names_in(statement)} & NAMES
        for path in MODULES
    }
    assert list(TopologicalSorter(graph).static_order())


def test_pure_folders_reach_no_file_process_network_or_clock() -> None:
    paths = [path for path in MODULES if path.relative_to(PACKAGE).as_posix().startswith(tuple(f"{p}/" for p in PURE))]
    assert not {(module_name(path), name) for path in paths for name in imports_of(path) if name.split(".")[0] in WORLD}
    assert not {
        (module_name(path), node.attr)
        for path in paths
        if "pathlib" in imports_of(path)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in FILE_METHODS
    }


def test_imports_in_functions_are_few() -> None:
    late = {
        (module_name(path), statement.lineno)
        for path in MODULES
        for function in ast.walk(tree_of(path))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for statement in ast.walk(function)
        if isinstance(statement, (ast.Import, ast.ImportFrom))
    }
    assert len(late) <= MAX_IMPORTS_IN_FUNCTIONS


def test_modules_and_folders_have_a_readable_size() -> None:
    lines = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert not {name: count for name, count in lines.items() if count > MAX_LINES}
    assert len([name for name, count in lines.items() if 0 < count < 60]) <= MAX_SMALL_MODULES
    folders: dict[str, int] = {}
    for path in MODULES:
        if path.name != "__init__.py":
            folder = path.parent.relative_to(PACKAGE).as_posix()
            folders[folder] = folders.get(folder, 0) + 1
    assert not {name: count for name, count in folders.items() if count > MAX_MODULES_OF_FOLDERS.get(name, 15)}
