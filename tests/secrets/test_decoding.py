"""Packed or encoded secrets are found through any two layers, and the work of the decoder is bounded."""

from __future__ import annotations

import base64
import gzip
import io
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.secrets import decoding
from symphony_charts.secrets.decoding import MOST_BYTES, MOST_LAYERS, View, views

Coding = Callable[[bytes], bytes]


def zipped(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", data)
    return stream.getvalue()


# Codes are text at any place; packed data is a file, or the content of a code.
CODES: dict[str, Coding] = {
    "base64": base64.b64encode,
    "base64 for URLs": lambda data: base64.urlsafe_b64encode(data).rstrip(b"="),
    "base64 in lines": lambda data: b"\n  ".join([b"", *base64.encodebytes(data).splitlines(), b""]),
    "hexadecimal": lambda data: data.hex().encode(),
    "percent-encoding": lambda data: b"".join(b"%%%02x" % byte for byte in data),
    "Unicode escapes": lambda data: b"".join(b"\\u%04x" % byte for byte in data),
}
PACKED: dict[str, Coding] = {
    "gzip": gzip.compress,
    "zip": zipped,
    "UTF-16": lambda data: data.decode("latin-1").encode("utf-16"),
}
BYTES_BECOME_BYTES = {"percent-encoding", "Unicode escapes", "UTF-16"}
words = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_-", min_size=20, max_size=60).map(str.encode)


def holds(data: bytes, word: bytes) -> bool:
    return any(word in view.data for view in views("f", data))


@pytest.mark.parametrize("name", [*CODES, *PACKED])
@given(words)
def test_one_layer_is_taken_off(name: str, word: bytes) -> None:
    data = (CODES | PACKED)[name](b"key: " + word + b"\n")
    assert holds(data if name in PACKED else b"a: 1\nvalue: '" + data + b"'\nz: 2\n", word)


@given(words, st.sampled_from([*CODES]), st.sampled_from([*CODES, *PACKED]))
def test_two_layers_are_taken_off(word: bytes, outer: str, inner: str) -> None:
    data = (CODES | PACKED)[inner](b"key: " + word + b"\n")
    if inner not in PACKED or outer not in BYTES_BECOME_BYTES:
        assert holds(b"a: 1\nvalue: '" + CODES[outer](data) + b"'\nz: 2\n", word)


@given(words, st.sampled_from([*PACKED]), st.sampled_from([*PACKED]))
def test_what_is_packed_twice_is_unpacked(word: bytes, outer: str, inner: str) -> None:
    if outer != "UTF-16":
        assert holds(PACKED[outer](PACKED[inner](b"key: " + word + b"\n")), word)


@pytest.mark.parametrize("width", [60, 64, 76])
@pytest.mark.parametrize("end", ["\n  ", "\r\n"])
def test_lines_of_base64_are_decoded_together(width: int, end: str) -> None:
    code = base64.b64encode(b"a: 1\n" * 40 + b"secret-word-in-the-middle" + b"\nz: 2" * 40).decode()
    lines = [code[at : at + width] for at in range(0, len(code), width)]
    assert holds(f"data: |{end}{end.join(lines)}{end}other: 1\n".encode(), b"secret-word-in-the-middle")


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    seen = list(views("f", data))
    assert not [view for view in seen if view.is_cut]


@pytest.mark.parametrize("begin", [b"\x1f\x8b\x08", b"PK\x03\x04", b"\xff\xfe"])
@given(rest=st.binary(max_size=100))
def test_what_only_begins_like_an_archive_is_looked_at_as_it_is(begin: bytes, rest: bytes) -> None:
    assert next(views("f", begin + rest)).data == begin + rest


def test_a_decoded_value_still_has_its_name_before_it() -> None:
    data = b"first: 1\npassword: " + base64.b64encode(b"correct horse battery") + b" # old\nlast: 2\n"
    assert View(path="f", data=b"password: correct horse battery # old", layers=("base64",)) in views("f", data)


def test_what_unpacks_to_more_than_the_bound_is_reported() -> None:
    assert [view.is_cut for view in views("bomb", gzip.compress(bytes(MOST_BYTES + 1)))] == [False, True]


def test_what_is_packed_too_often_is_reported() -> None:
    data = b"content"
    for _ in range(MOST_LAYERS + 1):
        data = gzip.compress(data)
    assert [view for view in views("f", data) if view.is_cut]


def test_what_only_looks_like_a_tar_is_looked_at_as_it_is() -> None:
    data = b"a-word-in-what-is-no-archive".ljust(257) + b"ustar" + b"x" * 300
    assert data in [view.data for view in views("f", data)]


def test_members_are_named() -> None:
    assert "a.zip:member" in [view.path for view in views("a.zip", zipped(b"x" * 40))]


def test_the_bound_holds_for_all_that_is_in_a_file_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MOST_BYTES", 10_000)
    data = b"\n".join(base64.b64encode(gzip.compress(bytes([number]) * 6000)) for number in range(4))
    seen = list(views("f", data))
    assert [view for view in seen if view.is_cut]
    assert sum(len(view.data) for view in seen) < 10_000 + 3 * len(data)
