"""Only the kinds themselves compare names of kinds: all other code asks the registry."""

from __future__ import annotations

import ast

from symphony_charts.kinds.registry import ALL, KINDS, kind_of
from tests.test_imports import ORDER, PACKAGE

NAMES = {
    *KINDS,
    *(word for kind in ALL for api, word in (*kind.gvks, *kind.further)),
    *(kind_of({"apiVersion": api, "kind": word}) for kind in ALL for api, word in kind.gvks),
}
# They read and write other projects' names of kinds, or get them from users of other tools.
FOREIGN = {"importers", "integrations", "torchx_scheduler", "compat"}
BUILDERS = {f"chart/build/{kind}" for kind in ("appwrapper", "jobset", "registry", "volcano")}
# Maximum number of remaining comparisons: words of other tools, backends and gangs.
REMAINING = {
    "chart/build/faults": 1,
    "cli/import_": 2,
    "cli/sweep": 2,
    "cli/sweep_show": 1,
    "clusters/hera_flows": 1,
    "placement/pools/nodes": 1,
}


def comparisons_in(tree: ast.Module) -> int:
    """Return the number of comparisons with a name of a kind."""
    compared = (
        side for node in ast.walk(tree) if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)
    )
    return sum(
        any(isinstance(part, ast.Constant) and part.value in NAMES for part in _parts(side)) for side in compared
    )


def _parts(side: ast.expr) -> list[ast.expr]:
    return [*side.elts] if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]


def test_only_kinds_compare_the_names_of_kinds() -> None:
    folders = set(ORDER[ORDER.index("kinds") + 1 :]) - FOREIGN
    modules = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in PACKAGE.rglob("*.py")}
    others = {name: path for name, path in modules.items() if name.split("/")[0] in folders and name not in BUILDERS}
    found = {module: count for module, path in others.items() if (count := comparisons_in(ast.parse(path.read_text())))}
    assert not {module: count for module, count in found.items() if count > REMAINING.get(module, 0)}
