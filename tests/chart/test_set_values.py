"""`-f`, `--set` and related flags mean the same as in helm; real helm 3.19 and 4.3 judge."""

from __future__ import annotations

import copy
import os
import random
from pathlib import Path

import pytest

from symphony_charts.chart.release import Overrides, merge, paths_of, user_values
from symphony_charts.errors import UsageError
from symphony_charts.formats.yaml_read import load
from tests.chart.set_cases import Case, Judge, generated, sorted_out, systematic
from tests.tools import HELM_VERSIONS

_BATCH = 50
_SOAK = int(os.environ.get("SYMPH_SOAK") or 0)
_BATCHES = max(_SOAK // _BATCH, 3)
# CI tries the same cases each time; other runs look for new ones.
_SEED = int(os.environ.get("SYMPH_SEED") or (0 if os.environ.get("CI") else random.SystemRandom().randrange(1 << 32)))


def differences(batch: list[Case], folder: Path) -> list[object]:
    """Return the cases that helm reads differently, and those that all helms accept and we refuse."""
    judge = Judge(folder)
    taken, refused = sorted_out(batch, folder)
    found: list[object] = [found for version in HELM_VERSIONS for found in judge.differences(version, taken)]
    return found + [case for case in refused if judge.takes(case)]


@pytest.mark.parametrize("number", range(_BATCHES))
def test_generated_overrides_give_the_values_that_helm_gives(number: int, tmp_path: Path) -> None:
    assert differences(generated(_SEED + number, _BATCH), tmp_path) == [], f"SYMPH_SEED={_SEED + number}"


@pytest.mark.parametrize("number", range(4))
def test_every_form_of_names_and_values_gives_what_helm_gives(number: int, tmp_path: Path) -> None:
    assert differences(systematic()[number::4], tmp_path) == []


DEFAULTS = {"list": ["a", "b"], "map": {"x": 1, "y": 2}}
FILE = {"list": ["c", "d"], "map": {"y": 3}}


def values(
    *,
    json: tuple[str, ...] = (),
    sets: tuple[str, ...] = (),
    strings: tuple[str, ...] = (),
    from_files: tuple[str, ...] = (),
    literals: tuple[str, ...] = (),
) -> dict[str, object]:
    """Return the values of flags alone."""
    return user_values(Overrides(json=json, sets=sets, strings=strings, from_files=from_files, literals=literals))


def test_files_and_defaults_are_not_changed() -> None:
    before = copy.deepcopy((DEFAULTS, FILE))
    merge(DEFAULTS, user_values(Overrides(files=(FILE,), sets=("list[0]=x", "map.y=9"), json=('{"map":{"z":1}}',))))
    assert before == (DEFAULTS, FILE)


def test_an_alias_in_a_file_is_a_value_of_its_own() -> None:
    file = load("a: &anchor {x: [1]}\nb: *anchor\n")
    assert isinstance(file, dict)
    assert user_values(Overrides(files=(file,), sets=("a.x[0]=2",))) == {"a": {"x": [2]}, "b": {"x": [1]}}


def test_the_files_of_a_text_are_known_before_they_are_read() -> None:
    assert paths_of("a=x,b.c={y,z}") == ["x", "y", "z"]
    given = Overrides(from_files=("a=x",), contents={"x": "one\n"})
    assert user_values(given) == {"a": "one\n"}


@pytest.mark.parametrize(
    ("flag", "text", "words"),
    [
        ("sets", "a", 'key "a" has no value'),
        ("sets", "a=1,b", 'key "b" has no value'),
        ("sets", "a,b=1", 'key "a" has no value'),
        ("sets", "a=1,a.b=2", '"a" is a single value'),
        ("sets", "a=null,a[0]=2", '"a" is null'),
        ("sets", "a[0]=1,a.b=2", '"a" is a list'),
        ("sets", "a.b=1,a[0]=2", '"a" is a map'),
        ("sets", "a[-1]=1", '"-1" is not an index'),
        ("sets", "a[65537]=1", "above the highest index"),
        ("sets", "a[0", "not closed"),
        ("sets", "a={b", "not closed"),
        ("sets", "a[0]b=1", "follows an index"),
        ("sets", "a.=1", 'nothing is set in "a"'),
        ("sets", f"{'a.' * 31}a=1", "more than 30 names"),
        ("sets", f"a{'[0]' * 5000}=1", "more than 100 lists"),
        ("json", "a=[1", "is not JSON"),
        ("json", "a=NaN", "is not JSON"),
        ("json", f"a={'[' * 5000}", "is not JSON"),
        ("json", f"a={'[' * 400}{']' * 400}", "more than 100 levels"),
        ("json", '{"a":1}x', "follows the object"),
        ("from_files", "a=missing", "was not read"),
        ("literals", "a[x]=1", "is not an index"),
    ],
)
def test_what_helm_refuses_is_refused_with_the_text_and_a_way_out(flag: str, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        values(**{flag: (text,)})
    assert words in caught.value.what
    assert text in caught.value.at
    assert caught.value.next
