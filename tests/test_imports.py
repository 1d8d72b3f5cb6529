"""The house stands only while imports point down: each package may use those below it, and the pure ones no world."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "symphony_charts"

# package -> the packages it may import, itself and the errors aside
PURE: dict[str, set[str]] = {
    "spec": set(),
    "network": {"spec"},
    "placement": {"network", "spec"},
    "workloads": {"network", "spec"},
    "secrets": {"network", "spec"},
    "chart": {"workloads", "placement", "secrets", "network", "spec"},
    "gitops": {"chart", "workloads", "placement", "secrets", "network", "spec"},
    "local": {"network", "spec"},
    "importers": {"network", "spec"},
}
DOMAIN = set(PURE)
ALLOWED: dict[str, set[str]] = {
    **PURE,
    # Adapters bring the world to values; they may name the values, but never each other's subjects.
    "adapters": {"spec", "network"},
    "cluster": DOMAIN | {"adapters"},
    "cli": DOMAIN | {"adapters", "cluster"},
    "compat": DOMAIN | {"adapters", "cluster", "cli"},
    # What TorchX loads: at the top like the command, and of no use to anybody below.
    "torchx_scheduler": DOMAIN | {"adapters", "cluster"},
}
# What a pure package may not touch: files, processes, network, clock, chance.
WORLD = {
    "asyncio",
    "http",
    "os",
    "random",
    "requests",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
    "kubernetes",
    "libtmux",
    "pyhelm3",
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """Every module that `path` names in an import, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def load_imports_of(path: Path) -> set[str]:
    """The imports that run when the module is loaded: not those inside functions or `if TYPE_CHECKING`."""
    found: set[str] = set()
    todo: list[ast.AST] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        todo.extend(ast.iter_child_nodes(node))
    return found


def package_of(module: str) -> str:
    """``symphony_charts.chart.compile`` -> ``chart``; empty for modules at the top."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "symphony_charts" and parts[1] in ALLOWED else ""


@pytest.mark.parametrize("path", [path for path in MODULES if package_of(module_name(path))], ids=module_name)
def test_imports_point_down_only(path: Path) -> None:
    own = package_of(module_name(path))
    used = {package_of(name) for name in imports_of(path)} - {"", own}
    assert used <= ALLOWED[own], f"{own} may not import {sorted(used - ALLOWED[own])}"


@pytest.mark.parametrize("path", [path for path in MODULES if package_of(module_name(path)) in PURE], ids=module_name)
def test_pure_packages_do_not_touch_the_world(path: Path) -> None:
    used = {name.split(".")[0] for name in imports_of(path)} & WORLD
    assert not used, f"{module_name(path)} imports {sorted(used)}"


def test_no_module_is_imported_in_a_circle_at_load() -> None:
    known = {module_name(path) for path in MODULES}
    graph = {module_name(path): load_imports_of(path) & known for path in MODULES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail[trail.index(module) :], module))
        if module not in done:
            for name in sorted(graph[module] - {module}):
                visit(name, (*trail, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_only_compat_uses_compat() -> None:
    users = {
        module_name(path)
        for path in MODULES
        if package_of(module_name(path)) != "compat" and any(package_of(n) == "compat" for n in imports_of(path))
    }
    assert not users
