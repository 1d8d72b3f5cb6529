"""Holds the imports of the package against what pyproject.toml declares, and the declarations against each other."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import symphony_charts

ROOT = Path(__file__).parents[1]
DECLARED = [Requirement(text) for text in metadata.requires("symphony-charts") or []]
# Imported where a user's own script brings it: Symphony's names belong to what runs under `symphony_charts.compat`.
OF_USERS = {"symphony"}


def imports_of(file: Path) -> set[str]:
    """The top-level names of all that a module imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> dict[str, str]:
    """Every distribution that the package imports something of, with a file that does."""
    homes = metadata.packages_distributions()
    found = {}
    for folder in ("symphony_charts", "torchx_plugins"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            foreign = imports_of(file) - set(sys.stdlib_module_names) - OF_USERS
            for name in foreign - {"symphony_charts", "torchx_plugins"}:
                found[normal(homes.get(name, [name])[0])] = str(file.relative_to(ROOT))
    return found


def test_everything_that_is_imported_is_declared() -> None:
    declared = {normal(item.name) for item in DECLARED}
    assert {name: file for name, file in imported().items() if name not in declared} == {}


def test_everything_that_is_declared_is_imported() -> None:
    declared = {normal(item.name) for item in DECLARED}
    assert declared - set(imported()) - {"symphony-charts"} == set()


@pytest.mark.parametrize("wanted", DECLARED, ids=str)
def test_every_dependency_has_a_lower_bound(wanted: Requirement) -> None:
    assert wanted.name == "symphony-charts" or any(spec.operator == ">=" for spec in wanted.specifier)


def test_the_extra_all_holds_every_extra_but_torchx() -> None:
    extras = set(metadata.metadata("symphony-charts").get_all("Provides-Extra") or [])
    in_all = {item.name for item in DECLARED if item.marker and item.marker.evaluate({"extra": "all"})}
    each = {
        extra: {item.name for item in DECLARED if item.marker and item.marker.evaluate({"extra": extra})}
        for extra in extras
    }
    assert in_all == set().union(*(each[extra] for extra in extras - {"all", "torchx"}))


@pytest.mark.skipif(not os.environ.get("SYMPH_REQUIRE_TOOLS"), reason="only where no test may be skipped")
def test_torchx_is_there_where_its_tests_may_not_be_skipped() -> None:
    # It is installed without its dependencies, which the group `dev` names.
    assert importlib.import_module("torchx.specs")


def test_the_version_is_one_everywhere() -> None:
    assert metadata.version("symphony-charts") == symphony_charts.__version__
