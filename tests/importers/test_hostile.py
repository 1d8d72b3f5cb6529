"""A hundred hostile and a hundred mangled files: each is imported or refused by name and line, none crashes.

Files that no importer sees, since their text is refused, are in `test_source`.
"""

from __future__ import annotations

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
from tests.damage import mangled
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
    """Yield a hundred files and more: every format with damage that only its importer can see."""
    for kind, head in HEADS.items():
        for field in FIELDS[kind]:
            for junk in JUNK:
                yield kind, (head % f'"{field}": {junk}').encode()
        text = (EXAMPLES / IMPORTERS[kind][1]).read_bytes()
        yield kind, text[: len(text) // 2]
        yield kind, text.replace(b"\n", b"\n\t", 3)
        yield kind, b"9" * 100_000
        yield kind, b"null"


FILES = list(hostile())


def check_outcome(importer: Importer, content: bytes) -> None:
    """Fail unless the file is imported, or every fault of the refusal has a line."""
    source = None
    try:
        source = read(content, "evil.yaml")
        source.located(importer(source).report)
    except SpecError as error:
        said = str(source.with_location(error) if source else error)
        faults = re.findall(r"(?m)^  at:   (.*)", said)
        assert faults, said
        assert all(re.match(r"evil\.yaml:[1-9]", fault) for fault in faults), said


@pytest.mark.parametrize(("kind", "content"), FILES, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(FILES)])
def test_a_hostile_file_is_refused_by_name_and_line_or_imported_at_once(kind: str, content: bytes) -> None:
    start = time.process_time()
    check_outcome(IMPORTERS[kind][0], content)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", list(IMPORTERS))
@pytest.mark.parametrize("seed", range(30))
def test_a_mangled_example_is_imported_or_every_fault_has_a_line(kind: str, seed: int) -> None:
    importer, name = IMPORTERS[kind]
    value = mangled(load((EXAMPLES / name).read_text()), random.Random(seed))
    check_outcome(importer, json.dumps(value, indent=1).encode())
