"""Generated values from files and flags, judged by real helm: many cases in one call, each under its own key.

In the texts of a case, ``@`` stands for that key.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from symphony_charts.chart.release import Overrides, merge, user_values
from symphony_charts.errors import UsageError
from symphony_charts.formats.yaml_write import dumps
from tests.chart.harness import run_helm
from tests.tools import HELM_VERSIONS

_FLAGS = {
    "--set-json": "json",
    "--set": "sets",
    "--set-string": "strings",
    "--set-file": "from_files",
    "--set-literal": "literals",
}
Difference: TypeAlias = "tuple[list[Case], str | None, str | None]"
"""Cases, and the values in JSON: ours, helm's."""
_CONTENTS = {"f1": "one\n", "f2": "two, {x}\r\n\ufffd\u2028"}
_RAW = {"f1": b"one\n", "f2": b"two, {x}\r\n\xff\xe2\x80\xa8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The value of one key in the chart and in files, and the flags that assign to it."""

    default: object = None
    files: tuple[object, ...] = ()
    flags: tuple[tuple[str, str], ...] = ()

    def known_to(self, version: str) -> Case:
        """Return the case without features that this helm lacks: objects for --set-json came with helm 4."""
        objects = [(flag, text) for flag, text in self.flags if flag == "--set-json" and text.strip().startswith("{")]
        return replace(self, flags=tuple(flag for flag in self.flags if version != "3.19" or flag not in objects))


_KEYS = ["a", "b", "c"]
_SCALARS: list[object] = [True, 0, 7, -1, 1.5, "x", "", "null"]


# The data has these names with values of any kind; other names are new.
_NAMES = [".a", ".b", ".c", ".d", ".e", ".f", ".g", ".h", r".a\.b", ".\u00e9", ".d[0]", ".e[1].a", ".f.a"]
_STEPS = [".a", ".a", ".b", ".c", "[0]", "[0]", "[1]", r".a\.b", r".\[0\]", "[+1]", "[01]", r"[\0]", ".a b", ".\u00e9"]
_BAD_STEPS = ["[-1]", "[x]", "[]", "[0", ".", "..", "[65537]", "[9223372036854775808]", "[0]x", "[ 0]", "[1_0]"]
_TYPED = ["", "x", "TRUE", "True", "tRue", "false", "FALSE", "null", "Null", "NULL", "~", "0", "00", "-0", "+0", "+5"]
_TYPED += ["007", "-007", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"]
_TYPED += ["1.5", "1e3", "+", "0x1", "1_0", "\u0661", "fal\u017fe", "\uff54rue", " 1", "1 ", r"\1", r"a\,b", r"a\=b"]
_TYPED += [
    r"a\.b",
    "a=b",
    "a.b",
    "{}",
    "{a,b}",
    "{1,null,TRUE,}",
    "{a},",
    r"{a\,b,c\}}",
    "a{b,c}",
    r"\{a",
    "[1]",
    '"x"',
]
_BAD_TYPED = ["\\", "{a", "{a}x", "{{a}}", "{a}@=1", "a,b"]
_JSON = ["", " ", "1", " 2 ", "-0", "1e2", "9007199254740993", "null", "true", '"x"', r'"\ud800"', r'"\ud83d\ude00"']
_JSON += ['[1,"a",null]', '{"a":{"b":null}}', '{"a":1,"a":2}', "{}", '{"b":1}  ', "\u00a0 3", "1 @.b=2", "1@.b=2"]
_BAD_JSON = ["01", "1.", "1.5.", "1e", "1e+", "1e400", "1" * 400, "nullx", "NaN", "-Infinity", '"a', r'"\x"', '"\t"']
_BAD_JSON += ["[1", "[1,]", "{a:1}", "\u001c3", "-", "tru"]
_VALUES = {
    "--set": (_TYPED, _BAD_TYPED),
    "--set-string": (_TYPED, _BAD_TYPED),
    "--set-json": (_JSON, _BAD_JSON),
    "--set-file": (["f1", "f2", "f1,@.b=f2", "{f1,f2}", ""], ["missing", "{}", " f1"]),
    "--set-literal": (_TYPED, _BAD_TYPED),
}
_BROKEN_OFF = ["", ".", ".e", ".e.", ".e[0]", ".e[0].", ".e[0].a", ".e[0].a=", ".e[0][1]", ".e[0]=", ".e[0", ".e,"]
_BROKEN_OFF += [".b[0]", ".b[0].a=", ".b[3].a=", ".b[2][0]", ".b[2][1].a=", ".e=,", ".e={a}", ".e={a},", ".e={", "=,"]
_BROKEN_OFF += [",", r".e\ "]
# No argument can hold NUL.
_HOSTILE = [*"=,.[]{}\\ \t\n@a0", "\u00e9", "\u2028", "\U0001f600", ""]
_OBJECTS = ['{"@":{"b":2}}', ' {"@": {"a": null, "b": [1]}} ', '{"@":{"a":1},"@":{"c":2}}', "{}"]
_BAD_OBJECTS = ['{"@":{}}x', '{"@":', "{@=1"]


def generated(seed: int, count: int) -> list[Case]:
    """Return cases of which helm accepts about two in three; the same for the same seed."""
    chance = random.Random(seed)
    return [_case(chance) for _ in range(count)]


def systematic() -> list[Case]:
    """Return each form of a value with each flag, and each form of a name on values of a file."""
    texts = [(flag, f"@.a={value}") for flag, forms in _VALUES.items() for values in forms for value in values]
    texts += [(flag, f"@.a={value},@.b=1") for flag, forms in _VALUES.items() for value in forms[0]]
    texts += [("--set-json", text) for text in [*_OBJECTS, *_BAD_OBJECTS]]
    data = {"a": {"a": 1}, "b": [1, {"a": 1}, [1]], "c": "x", "d": None}
    texts += [
        (flag, f"@.{key}{step}=2") for flag in _FLAGS for key in data for step in [".a", "[0]", "[1].a", "[2][0]"]
    ]
    texts += [
        (flag, f"@.e{step}{end}") for flag in ("--set", "--set-literal") for step in _STEPS for end in ("=2", "=")
    ]
    texts += [("--set", f"@.e{step}=2") for step in _BAD_STEPS] + [("--set", f"@{end}") for end in _BROKEN_OFF]
    return [Case(default=data["b"], files=(data,), flags=(text,)) for text in texts]


def _case(chance: random.Random) -> Case:
    flags = chance.choices([*_FLAGS, "--set"], k=chance.choice([1, 1, 2, 3]))
    return Case(
        default=_data(chance, _SCALARS),
        files=tuple(_data(chance, [*_SCALARS, None]) for _ in range(chance.choice([0, 1, 2]))),
        flags=tuple((flag, _text(chance, flag)) for flag in flags),
    )


def _data(chance: random.Random, scalars: list[object], depth: int = 0) -> object:
    """Return a value, usually a map of lists and maps."""
    kind = chance.choice(["map", "map", "list", "scalar", "scalar"] if depth else ["map"] * 9 + ["list", "scalar"])
    if kind == "scalar" or depth > 3:
        return chance.choice(scalars)
    if kind == "list":
        return [_data(chance, scalars, depth + 1) for _ in range(chance.randint(0, 3))]
    return {key: _data(chance, scalars, depth + 1) for key in chance.sample(_KEYS, chance.randint(0, 3))}


def _text(chance: random.Random, flag: str) -> str:
    """Return a text for `flag` that may be invalid."""
    if flag == "--set-json" and chance.random() < 0.1:
        return _mostly(chance, _OBJECTS, _BAD_OBJECTS)
    text = ",".join(_part(chance, flag) for _ in range(chance.choice([1, 1, 1, 2, 3])))
    for _ in range(chance.choice([0] * 9 + [1, 2])):
        at = chance.randint(1, len(text))
        text = text[:at] + chance.choice(_HOSTILE) + text[at + chance.randint(0, 1) :]
    return text


def _part(chance: random.Random, flag: str) -> str:
    steps = [_mostly(chance, _STEPS, _BAD_STEPS) for _ in range(chance.choice([0, 0, 1, 2]))]
    path = "".join([_mostly(chance, _NAMES, ["", "[0]", "."]), *steps])
    return f"@{path}{chance.choice(['='] * 29 + [''])}{_mostly(chance, *_VALUES[flag])}"


def _mostly(chance: random.Random, good: list[str], bad: list[str]) -> str:
    return chance.choice(bad if chance.random() < 0.04 else good)


def ours(batch: Sequence[Case], folder: Path) -> str | None:
    """Return the values in JSON, as Go writes it; None if they are refused."""
    defaults, files, flags = _together(batch, folder)
    texts = {name: tuple(text for given, text in flags if given == flag) for flag, name in _FLAGS.items()}
    contents = {str(folder / name): text for name, text in _CONTENTS.items()}
    try:
        return dumps(merge(defaults, user_values(Overrides(files=tuple(files), contents=contents, **texts))))
    except UsageError:
        return None


def sorted_out(batch: Sequence[Case], folder: Path) -> tuple[list[Case], list[Case]]:
    """Return the cases that we accept together, and those that we refuse alone."""
    taken: list[Case] = []
    refused: list[Case] = []
    for case in batch:
        if ours([case], folder) is None:
            refused.append(case)
        elif ours([*taken, case], folder) is not None:
            taken.append(case)
    return taken, refused


def _together(
    batch: Sequence[Case], folder: Path
) -> tuple[dict[str, object], list[dict[str, object]], list[tuple[str, str]]]:
    keyed = [(f"k{index}", case) for index, case in enumerate(batch)]
    defaults = {key: case.default for key, case in keyed if case.default is not None}
    files = [{key: case.files[row] for key, case in keyed if row < len(case.files)} for row in range(2)]
    flags = [(flag, _placed(text, flag, key, folder)) for key, case in keyed for flag, text in case.flags]
    return defaults, files, flags


def _placed(text: str, flag: str, key: str, folder: Path) -> str:
    text = text.replace("@", key)
    return text.replace("f1", f"{folder}/f1").replace("f2", f"{folder}/f2") if flag == "--set-file" else text


@dataclass(slots=True)
class Judge:
    """Real helm, with a chart in `folder` that prints its values."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "chart" / "templates").mkdir(parents=True)
        (self.folder / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: printer\nversion: 0.1.0\n")
        (self.folder / "chart" / "templates" / "all.yaml").write_text("text: {{ toJson .Values | b64enc }}\n")
        for name, content in _RAW.items():
            (self.folder / name).write_bytes(content)

    def values(self, version: str, batch: Sequence[Case]) -> str | None:
        """Return the values that helm renders with, in JSON; None if it refuses them."""
        defaults, files, flags = _together(batch, self.folder)
        self._file("chart/values.yaml", defaults)
        paths = [self._file(f"{row}.yaml", values) for row, values in enumerate(files)]
        args = [*(f"--values={path}" for path in paths), *(f"{flag}={text}" for flag, text in flags)]
        ended = run_helm(version, "template", "x", self.folder / "chart", *args, check=False)
        if ended.returncode:
            return None
        # The notation of a byte that is not UTF-8 depends on the version of Go.
        return base64.b64decode(ended.stdout.split("text: ")[1]).decode().replace(r"\ufffd", "\ufffd")

    def takes(self, case: Case) -> bool:
        """Return True if every helm accepts the case."""
        return all(self.values(version, [case.known_to(version)]) is not None for version in HELM_VERSIONS)

    def differences(self, version: str, batch: Sequence[Case]) -> list[Difference]:
        """Return the cases of `batch`, all of which we accept together, that this helm refuses or reads differently."""
        known = [case for case in batch if case == case.known_to(version)]
        theirs, mine = self.values(version, known), ours(known, self.folder)
        if theirs == mine:
            return []
        middle = len(known) // 2
        halves = [known[:middle], known[middle:]] if middle else []
        # Cases that differ only in combination are reported together.
        parts = [difference for half in halves for difference in self.differences(version, half)]
        return parts or [(known, mine, theirs)]

    def _file(self, name: str, values: Mapping[str, object]) -> Path:
        path = self.folder / name
        path.write_text(f"{json.dumps(values)}\n")
        return path
