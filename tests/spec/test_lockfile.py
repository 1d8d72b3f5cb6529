from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.spec.data import Lock, parse, render
from symphony_charts.spec.files import read_lock

locks = st.builds(
    Lock,
    ports=st.dictionaries(st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True), st.integers(1, 65535)),
    version=st.none() | st.sampled_from(["0.1.0", "1.10.0-rc.1"]),
    digest=st.none() | st.just("sha256:" + "0" * 64),
)


@given(locks)
def test_a_lock_is_read_back_as_it_was_written(lock: Lock) -> None:
    assert parse(render(lock)) == lock


def test_a_lock_says_who_wrote_it_and_names_services_in_order() -> None:
    assert parse("") == Lock()
    text = render(Lock(ports={"b": 7001, "a": 7000}, version="0.1.0"))
    assert text.startswith("# Written by symph")
    assert text.endswith('ports:\n  a: 7000\n  b: 7001\nversion: "0.1.0"\n')


@pytest.mark.parametrize("text", ["ports: {a: x}", "prts: {}", "[1]", "ports: {a: 0}", "ports: {a: 65536}", "a: b: c"])
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse(text)


def test_a_fault_of_a_lock_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.lock.yaml"
    path.write_text("ports: {a: 1}\nports: {b: 2}\n")
    with pytest.raises(SpecError) as failure:
        read_lock(path)
    assert failure.value.at == f"{path}:2, ports"
