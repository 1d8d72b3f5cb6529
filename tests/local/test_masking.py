"""Secret texts are hidden from readers and from files on disk, and can be restored."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.environment import secret_names, with_secrets, without_secrets
from symphony_charts.local.plan.scripts import read_environment, start_script
from symphony_charts.local.show_environment import shell_text
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import ProcessRef

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
SECRETS = {"token": b"t0psecret\n", "other": b"t0psecret-longer", "key": b"\xff\xfe\x00\x01"}


@given(st.recursive(TEXTS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8))
def test_data_comes_back_whole(data: object) -> None:
    mixed = [data, "a t0psecret b", {"k": ["t0psecret-longer", "t0psecrett0psecret"]}]
    hidden = without_secrets(mixed, SECRETS)
    assert "t0psecret" not in repr(hidden).replace(repr(data), "")
    assert with_secrets(hidden, SECRETS) == mixed


def test_a_changed_secret_comes_back_as_it_is_now() -> None:
    hidden = without_secrets({"env": "url?t0psecret"}, {"token": b"t0psecret"})
    assert with_secrets(hidden, {"token": b"fresh-one"}) == {"env": "url?fresh-one"}


def test_variables_are_secret_by_content_by_source_and_by_name() -> None:
    env = {"URL": {"secret": "s", "key": "k"}, "A": "x-t0psecret-y", "API_KEY": "k", "PLAIN": "p", "KEYBOARD": "de"}
    experiment = from_data({"name": "x", "image": "i", "processes": {"a": {"command": ["c"], "env": env}}})
    seen = {**dict.fromkeys(env, "v"), "A": "x-t0psecret-y", "SYMPH_TOKEN_PORT": "7000"}
    assert secret_names(experiment, ProcessRef("a", "a"), seen, SECRETS) == {"URL", "A", "API_KEY"}


@given(st.dictionaries(st.from_regex(r"[-._A-Za-z][-._A-Za-z0-9]{0,8}", fullmatch=True), TEXTS, max_size=6))
def test_the_environment_is_read_back_from_a_start_script(env: dict[str, str]) -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"command": ["export"], "cwd": "/export A="}}})
    (process,) = plan_here(experiment, [], Path("/"), "r1").processes
    assert read_environment(start_script(replace(process, env=env))) == env


def test_masked_variables_set_nothing_when_sourced() -> None:
    text = shell_text({"A": "1", "TOKEN": "x", "my.var": "a\nb"}, {"TOKEN"})
    assert text.splitlines()[0] == "export A='1'"
    assert text.splitlines()[1].startswith("# ")
    assert "x" not in text.splitlines()[1].partition("=")[2].split()[0]
    assert text.splitlines()[2:] == ['# no shell can set it: "my.var=a\\nb"']
