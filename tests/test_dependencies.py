"""Checks of the package's imports against pyproject.toml, and of its declarations against each other."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import symphony_charts
from tests.tools import BESIDE

ROOT = Path(__file__).parents[1]
DECLARED = [Requirement(text) for text in metadata.requires("symphony-charts") or []]
# Imported only if a user's script brings it: Symphony's names belong to scripts under `symphony_charts.compat`.
OF_USERS = {"symphony"}


def imports_of(file: Path) -> set[str]:
    """Return the top-level names of all imports of a module, including those in functions."""
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
    """Return every distribution that the package imports, with a file that does."""
    homes = metadata.packages_distributions()
    found = {}
    for folder in ("symphony_charts", "torchx_plugins"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            foreign = imports_of(file) - set(sys.stdlib_module_names) - OF_USERS
            for name in foreign - {"symphony_charts", "torchx_plugins"}:
                found[normal(homes.get(name, [name])[0])] = str(file.relative_to(ROOT))
    return found


def test_everything_that_is_imported_is_declared_and_nothing_more() -> None:
    declared, found = {normal(item.name) for item in DECLARED}, imported()
    assert {name: file for name, file in found.items() if name not in declared} == {}
    assert declared - {*found, "symphony-charts"} == set()


@pytest.mark.parametrize("wanted", DECLARED, ids=str)
def test_every_dependency_has_a_lower_bound(wanted: Requirement) -> None:
    assert wanted.name == "symphony-charts" or any(spec.operator == ">=" for spec in wanted.specifier)


def test_the_extra_all_holds_every_extra_but_the_large_and_the_compiled_ones() -> None:
    extras = set(metadata.metadata("symphony-charts").get_all("Provides-Extra") or [])
    in_all = {item.name for item in DECLARED if item.marker and item.marker.evaluate({"extra": "all"})}
    each = {
        extra: {item.name for item in DECLARED if item.marker and item.marker.evaluate({"extra": extra})}
        for extra in extras
    }
    assert in_all == set().union(*(each[extra] for extra in extras - {"all", "optuna", "torchx"}))


@pytest.mark.skipif(not os.environ.get("SYMPH_REQUIRE_TOOLS"), reason="only where no test may be skipped")
def test_torchx_is_there_where_its_tests_may_not_be_skipped() -> None:
    # It is installed without its dependencies, which the group `dev` names.
    assert importlib.import_module("torchx.specs")


def test_the_version_is_one_everywhere() -> None:
    assert metadata.version("symphony-charts") == symphony_charts.__version__


PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def locked(*names: str) -> list[Requirement]:
    """Return the pins of files in requirements/, without their hashes."""
    lines = [line for name in names for line in (ROOT / "requirements" / name).read_text().splitlines()]
    return [Requirement(line.removesuffix("\\")) for line in lines if line and not line.startswith((" ", "#"))]


def group(name: str) -> list[Requirement]:
    tomllib = pytest.importorskip("tomllib", reason="newer than the oldest Python")
    return [
        Requirement(text) for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"][name]
    ]


def wanted_by(extra: str, python: str) -> list[Requirement]:
    """Return the requirements of a plain installation, or of one with an extra, on that Python."""
    needed = [item for item in DECLARED if not item.marker or item.marker.evaluate({"extra": extra, **of(python)})]
    return [item for item in needed if item.name != "symphony-charts"]


def of(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_holds_one_version_of_each_dependency_within_its_bounds(python: str) -> None:
    pins = [pin for pin in locked("dev.txt", "dev-no-deps.txt") if not pin.marker or pin.marker.evaluate(of(python))]
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}
    assert len(versions) == len(pins)
    needed = [*wanted_by("all", python), *wanted_by("optuna", python), *wanted_by("torchx", python), *group("dev")]
    wrong = [str(item) for item in needed if versions.get(canonicalize_name(item.name), "0") not in item.specifier]
    assert wrong == []


@pytest.mark.parametrize("name", ["docs", "sbom"])
def test_the_lock_of_a_tool_is_within_its_bounds(name: str) -> None:
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in locked(f"{name}.txt")}
    assert [item for item in group(name) if versions[canonicalize_name(item.name)] not in item.specifier] == []


def test_what_is_installed_beside_the_environment_is_locked() -> None:
    assert [[str(pin) for pin in locked(f"{item.replace('==', '-')}.txt")] for item in BESIDE] == [
        [item] for item in BESIDE
    ]


def test_every_locked_package_has_a_hash_and_no_address() -> None:
    for file, (line, after) in itertools.chain.from_iterable(
        ((file, pair) for pair in itertools.pairwise([*file.read_text().splitlines(), ""]))
        for file in (ROOT / "requirements").iterdir()
    ):
        assert "://" not in line, file
        assert line.startswith(" ") or after.startswith("    --hash=sha256:"), (file, line)
