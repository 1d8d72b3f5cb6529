"""The guard finds every disguise of a secret wherever it stands, and nothing where there is none."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import tarfile
import textwrap
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import Conflict
from symphony_charts.secrets.leaks import Guard

secrets = st.binary(min_size=12, max_size=80).filter(lambda value: len(value.strip()) >= 12)
around = st.binary(max_size=40)

ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda value: value,
    "base64": base64.b64encode,
    "base64 for URLs": base64.urlsafe_b64encode,
    "base64 in lines": lambda value: "\n".join(textwrap.wrap(base64.b64encode(value).decode(), 20)).encode(),
    "hex": lambda value: value.hex().encode(),
    "HEX": lambda value: value.hex().upper().encode(),
    "URL": lambda value: quote(value, safe="").encode(),
    "gzip": gzip.compress,
}


def tar(value: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo("rl/values.yaml")
        info.size = len(value)
        archive.addfile(info, io.BytesIO(value))
    return stream.getvalue()


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(value=secrets, before=around, after=around)
def test_a_secret_is_found_in_every_encoding(encoding: str, value: bytes, before: bytes, after: bytes) -> None:
    hidden = ENCODINGS[encoding](value.strip())
    content = hidden if encoding == "gzip" else before + hidden + after
    (leak, *_) = Guard({"key.pem": value}, finds_tokens=False).find({"charts/a": b"harmless", "charts/b": content})
    assert (leak.path, leak.name) == ("charts/b", "key.pem")


@given(secrets, around, around)
def test_a_secret_inside_of_what_is_encoded_is_found(value: bytes, before: bytes, after: bytes) -> None:
    content = base64.b64encode(before + value.strip() + after)
    assert Guard({"k": value}, finds_tokens=False).find({"f": content})


@given(st.text(min_size=12, max_size=40).map(lambda text: text.encode().strip()).filter(lambda value: len(value) >= 12))
def test_a_secret_in_json_is_found(value: bytes) -> None:
    content = json.dumps({"env": value.decode()}).encode()
    assert Guard({"k": value}, finds_tokens=False).find({"f": content})


def test_one_line_of_a_key_is_enough() -> None:
    key = b"first-line-of-the-key\nsecond-line-of-the-key\n"
    assert Guard({"k": key}).find({"f": b"x: second-line-of-the-key"})


def test_what_is_packed_is_looked_into() -> None:
    (leak,) = Guard({"k": b"hunter2-hunter2"}).find({"rl-0.1.0.tgz": tar(b"PASSWORD: hunter2-hunter2")})
    assert leak.path == "rl-0.1.0.tgz:rl/values.yaml"


@pytest.mark.parametrize(
    "text",
    [
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
        b"token: ghp_" + b"a" * 36,
        b"AKIAABCDEFGHIJKLMNOP",
        b"glpat-" + b"x" * 20,
    ],
)
def test_what_looks_like_a_key_is_found_without_being_known(text: bytes) -> None:
    assert Guard({}).find({"f": text})


def test_the_refusal_names_file_and_secret_and_never_the_value() -> None:
    with pytest.raises(Conflict) as failure:
        Guard({"~/.mjkey.txt": b"very-secret-value"}).refuse({"charts/ml/rl/values.yaml": b"a: very-secret-value"})
    assert "charts/ml/rl/values.yaml holds ~/.mjkey.txt (in the clear)" in str(failure.value)
    assert "very-secret-value" not in str(failure.value)


@given(st.dictionaries(st.text("ab", min_size=1), st.binary(max_size=200)))
def test_files_without_the_secret_are_let_through(files: dict[str, bytes]) -> None:
    assert Guard({"k": b"a-value-that-random-bytes-never-hold"}, finds_tokens=False).find(files) == []


def test_a_thousand_random_secrets_are_in_no_chart_and_each_planted_one_is_refused_by_path() -> None:
    source = random.Random(7)
    known = {f"s{number}": source.randbytes(source.randrange(16, 200)) for number in range(1000)}
    guard = Guard(known)
    files = {f"charts/{number}/values.yaml": f"replicas: {number}\n".encode() * 30 for number in range(200)}
    assert guard.find(files) == []
    planted = {f"p/{name}": b"x: " + base64.b64encode(value.strip()) for name, value in list(known.items())[:50]}
    found = {leak.path for leak in guard.find(files | planted)}
    assert found == set(planted)
