"""A hundred hostile and a hundred mangled files: each is imported or refused by name and line, none crashes."""

from __future__ import annotations

import copy
import json
import random
import re
import time
from collections.abc import Callable, Iterator

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.importers.input_file import Source, read
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.compose.importer import ComposeContext, import_compose
from symphony_charts.integrations.dijob.importer import import_dijob
from symphony_charts.integrations.symphony.importer import import_legacy
from symphony_charts.integrations.torchx.importer import import_torchx
from tests.importers.samples import EXAMPLES

Importer = Callable[[Source], Imported]


def compose(source: Source) -> Imported:
    return import_compose(source, ComposeContext())


IMPORTERS: dict[str, tuple[Importer, str]] = {
    "torchx": (import_torchx, "appdef.json"),
    "dijob": (import_dijob, "dijob-v1.1.0.yaml"),
    "dijob-v1.0": (import_dijob, "dijob-v1.0.yaml"),
    "compose": (compose, "compose.yaml"),
    "symphony": (import_legacy, "symphony-kube.yaml"),
}
HEADS = {
    "torchx": '{"name": "x", "roles": [{"name": "r", "image": "i", "entrypoint": "e", %s}]}',
    "dijob": (
        "apiVersion: diengine.opendilab.org/v2alpha1\nkind: DIJob\nmetadata: {name: j}\nspec: {tasks: [{name: t, %s}]}"
    ),
    "compose": "services: {a: {image: i, %s}}",
    "symphony": "name: x\nprocesses: [{name: a, %s}]",
}
FIELDS = {
    "torchx": ("args", "env", "num_replicas", "resource", "mounts", "port_map"),
    "dijob": ("type", "replicas", "template"),
    "compose": ("command", "ports", "environment", "volumes", "deploy", "healthcheck", "depends_on", "configs"),
    "symphony": ("container_yml", "binded_services", "cmds", "pod_yml"),
}
JUNK = (
    "[[[[]]]]",
    '{"a": {"b": []}}',
    "1e999",
    "-1",
    f"{10**40}",
    '"\\u0000"',
    '"' + "x" * 9000 + '"',
    "[null, 1, {}]",
)


def hostile() -> Iterator[tuple[str, bytes]]:
    """Yield a hundred files and more: every format with every kind of damage."""
    for kind, head in HEADS.items():
        for field in FIELDS[kind]:
            for junk in JUNK:
                yield kind, (head % f'"{field}": {junk}').encode()
        text = (EXAMPLES / IMPORTERS[kind][1]).read_bytes()
        yield kind, text[: len(text) // 2]
        yield kind, text.replace(b"\n", b"\n\t", 3)
        yield kind, text.decode().encode("utf-16")
        yield kind, b"\x00" + text
        yield kind, b"[" * 100_000
        yield kind, b"{" * 100_000
        yield kind, b"- " * 20_000
        yield kind, b'{"a":' * 20_000
        yield kind, b"a: &a [" + b"*a," * 10 + b"]"
        yield (
            kind,
            b"x: &x [1,1,1,1,1,1,1,1,1]\n"
            + b"".join(
                b"x%d: &x%d [%s]\n" % (n, n, b",".join([b"*x%d" % (n - 1) if n else b"*x"] * 9)) for n in range(9)
            ),
        )
        yield kind, b"name: x\nname: y\n"
        yield kind, b"? [a, b]\n: c\n"
        yield kind, b"!!python/object/apply:os.system [id]\n"
        yield kind, b"---\n" * 500
        yield kind, b"9" * 100_000
        yield kind, b"a: " + b"9" * 5_000
        yield kind, b"null"


FILES = list(hostile())


def outcome(importer: Importer, content: bytes) -> str:
    """Return ``imported``, or the text of the refusal as the command prints it."""
    try:
        source = read(content, "evil.yaml")
    except SpecError as error:
        return str(error)
    try:
        source.located(importer(source).report)
    except SpecError as error:
        return str(source.with_location(error))
    return "imported"


@pytest.mark.parametrize(("kind", "content"), FILES, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(FILES)])
def test_a_hostile_file_is_refused_by_name_and_line_or_imported_at_once(kind: str, content: bytes) -> None:
    start = time.process_time()
    said = outcome(IMPORTERS[kind][0], content)
    faults = [line for line in said.splitlines() if line.startswith("  at:")]
    assert said == "imported" or faults
    assert all(re.match(r"  at:   evil\.yaml:[1-9]", line) for line in faults)
    assert time.process_time() - start < 5


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of everything inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    1.5,
    10**30,
    "",
    "x" * 300,
    "a b/c",
    [],
    {},
    [[]],
    [None],
    {"a": None},
    [{"name": {}}],
)


def mangle(value: object, chance: random.Random) -> object:
    """Return `value` with one to three of its parts replaced or removed."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        found = list(places(value))
        if not found:
            break
        *path, last = chance.choice(found)
        inner: object = value
        for key in path:
            inner = inner[key]  # type: ignore[index] # a path of this very value
        if chance.random() < 0.7:
            inner[last] = copy.deepcopy(chance.choice(WRONG))  # type: ignore[index] # likewise
        else:
            del inner[last]  # type: ignore[attr-defined] # likewise
    return value


@pytest.mark.parametrize("kind", list(IMPORTERS))
@pytest.mark.parametrize("seed", range(30))
def test_a_mangled_example_is_imported_or_every_fault_has_a_line(kind: str, seed: int) -> None:
    importer, name = IMPORTERS[kind]
    value = mangle(load((EXAMPLES / name).read_text()), random.Random(seed))
    said = outcome(importer, json.dumps(value, indent=1).encode())
    faults = [line for line in said.splitlines() if line.startswith("  at:")]
    assert said == "imported" or faults
    assert all(re.match(r"  at:   evil\.yaml:\d+", line) for line in faults)
