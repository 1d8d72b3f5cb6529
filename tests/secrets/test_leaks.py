"""The guard finds every disguise of a secret at any place, without false positives."""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
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
from symphony_charts.settings.project import AllowedLeak

secrets = st.binary(min_size=12, max_size=80).filter(lambda value: len(value.strip()) >= 12)
around = st.binary(max_size=40)

ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda value: value,
    "base64": base64.b64encode,
    "base64 for URLs": base64.urlsafe_b64encode,
    "base64 in lines": lambda value: "\n".join(textwrap.wrap(base64.b64encode(value).decode(), 20)).encode(),
    "gzip": gzip.compress,
}
TEXT_CODES: dict[str, Callable[[bytes], bytes]] = {
    "hexadecimal": lambda value: value.hex().encode(),
    "HEXADECIMAL": lambda value: value.hex().upper().encode(),
    "percent-encoding": lambda value: quote(value, safe="").encode(),
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
    (leak, *_) = Guard({"key.pem": value}).find({"charts/a": b"harmless", "charts/b": content})
    assert (leak.path, leak.name) == ("charts/b", "key.pem")


@given(secrets, around, around)
def test_a_secret_inside_of_what_is_encoded_is_found(value: bytes, before: bytes, after: bytes) -> None:
    content = base64.b64encode(before + value.strip() + after)
    assert Guard({"k": value}).find({"f": content})


@given(st.text(min_size=12, max_size=40).map(lambda text: text.encode().strip()).filter(lambda value: len(value) >= 12))
def test_a_secret_in_json_is_found(value: bytes) -> None:
    content = json.dumps({"env": value.decode()}).encode()
    assert Guard({"k": value}).find({"f": content})


@pytest.mark.parametrize("code", TEXT_CODES)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=12, max_size=40).map(str.encode))
def test_a_secret_that_is_text_is_found_in_every_code(code: str, value: bytes) -> None:
    assert Guard({"k": value}).find({"f": b"env: " + TEXT_CODES[code](value) + b"\n"})


def test_one_line_of_a_key_is_enough() -> None:
    key = b"first-line-of-the-key\nsecond-line-of-the-key\n"
    assert Guard({"k": key}).find({"f": b"x: second-line-of-the-key"})


def test_what_is_packed_is_looked_into() -> None:
    (leak,) = Guard({"k": b"hunter2-hunter2"}).find({"rl-0.1.0.tgz": tar(b"say: hunter2-hunter2")})
    assert leak.path == "rl-0.1.0.tgz:rl/values.yaml"


# Invented, and written in halves so that scanners do not report this file.
GITHUB = b"ghp_" + b"k3Jd8sLq0ZmPw7RtYvXc2BnA9fGhUe5TiOsD"
HUGGING_FACE = b"hf_" + b"qWmZkRtYpLsNvBxCdFgHjKaEuIoTwQnMzX"


@pytest.mark.parametrize(
    "text",
    [
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n",
        b"token: " + GITHUB,
        b"token: " + HUGGING_FACE,
        b"id: ASIA" + b"Z4KLM7QWERT2XYUV",
        b"WANDB_API_KEY: " + b"4f2a9c8e1b7d6053a4e9f1c2b8d7e6a5f4c3b2a1",
        b"url: redis://:kd83jfo29fkw@redis:6379/0",
        b"url: https://x7Gk29vbQ0pLmZ4tR8sW@git.example.org/team/code.git",
        b"machine api.wandb.ai login user password 4f2a9c8e1b7d6053a4e9f1c2b8d7",
    ],
)
def test_what_looks_like_a_key_is_found_without_being_known(text: bytes) -> None:
    assert Guard({}).find({"f": text})


def test_escapes_are_undone_before_the_words_between_them_are_decoded() -> None:
    parts = (
        b'{"alg": "HS256", "typ": "JWT"}',
        b'{"sub": "676", "name": "me"}',
        b"\xc8)B\xd9\xc9\xbf\x0b" * 4 + b"\xa5\x13\x95\x96",
    )
    token = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    text = b"url: https://example.org/?config=%7B%22t%22%3A%22" + token + b"%22%7D"
    assert Guard({}).find({"f": text})


@pytest.mark.parametrize(
    "text",
    [
        b"AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
        b"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        b"token: ghp_" + b"x" * 36,
        b"export HF_TOKEN=hf_" + b"X" * 34,
        b"redis://user:password@redis:6379/0",
        b"https://${TOKEN}@git.example.org/x.git",
        b"api_key: <your-api-key>",
        b"grep -- '-----BEGIN PRIVATE KEY-----' file",
    ],
)
def test_a_placeholder_is_no_secret(text: bytes) -> None:
    assert Guard({}).find({"f": text}) == []


def test_a_secret_in_the_name_of_a_file_is_found_and_not_shown() -> None:
    (leak,) = Guard({}).find({f"charts/{GITHUB.decode()}/a.yaml": b"x: 1"})
    assert leak.path == "the name charts/***"
    assert GITHUB.decode() not in str(leak)


def test_what_stands_below_a_name_that_holds_a_secret_does_not_show_it() -> None:
    files = {f"charts/{GITHUB.decode()}/a.yaml": b"token: " + HUGGING_FACE}
    assert not [leak for leak in Guard({}).find(files) if GITHUB.decode() in str(leak)]


def test_the_name_of_a_branch_is_refused_when_it_is_a_secret() -> None:
    guard = Guard({"key": b"a-secret-of-this-experiment"})
    with pytest.raises(Conflict):
        guard.refuse_names(["topic/a-secret-of-this-experiment"])


def test_a_finding_is_allowed_by_its_fingerprint_wherever_it_stands() -> None:
    (leak,) = Guard({}).find({"f": b"x\ntoken: " + GITHUB})
    assert (leak.line, leak.fingerprint.partition(":")[0]) == (2, "github-pat")
    assert (
        Guard({}, allowed=[AllowedLeak(fingerprint=leak.fingerprint, reason="x")]).find(
            {"another/place": base64.b64encode(GITHUB)}
        )
        == []
    )
    assert (
        Guard({}, allowed=[AllowedLeak(fingerprint=leak.fingerprint, reason="x")])
        .find({"f": GITHUB, "g": HUGGING_FACE})[0]
        .path
        == "g"
    )


@pytest.mark.parametrize(
    ("rule", "path", "pattern", "is_allowed"),
    [
        ("github-pat", "*/values.yaml", "", True),
        ("github-pat", "*/other.yaml", "", False),
        ("github-pat", "", "ghp_.*", True),
        ("github-pat", "", "ghp_", False),
        ("gitlab-pat", "*/values.yaml", "", False),
        ("", "*/values.yaml", "ghp_[A-Za-z0-9]+", True),
    ],
)
def test_findings_are_allowed_by_rule_and_place_or_by_a_pattern(
    rule: str, path: str, pattern: str, is_allowed: bool
) -> None:
    allowed = AllowedLeak(rule=rule, path=path, pattern=pattern, reason="x")
    found = Guard({}, allowed=[allowed]).find({"charts/rl/values.yaml": b"token: " + GITHUB})
    assert (found == []) == is_allowed


@pytest.mark.parametrize("secret", ["rk_live_" + "aB3" * 8, "ATBB" + "k3Jd8sLq" * 4, GITHUB.decode()])
def test_a_token_in_the_name_of_a_file_is_found_before_its_suffix(secret: str) -> None:
    (leak,) = Guard({}).find({f"configs/{secret}.yaml": b"x: 1\n"})
    assert secret not in str(leak)


def test_a_declared_value_is_allowed_by_a_fingerprint_of_names_alone() -> None:
    secrets = {"the secret my.env of /a/folder of mine/spec.yaml": b"REGISTRY_TOKEN=kubernetes-admin-9\n"}
    files = {"values.yaml": b"image: kubernetes-admin-9"}
    (leak,) = Guard(secrets).find(files)
    assert leak.fingerprint == "declared:my.env:REGISTRY_TOKEN"
    assert Guard(secrets, allowed=[AllowedLeak(fingerprint=leak.fingerprint, reason="x")]).find(files) == []


def test_the_refusal_says_how_to_allow_what_is_none() -> None:
    with pytest.raises(Conflict) as failure:
        Guard({}).refuse({"f": GITHUB})
    assert "symph gitops allow 'github-pat:" in failure.value.next
    assert Guard({}).find({"f": GITHUB})[0].fingerprint in failure.value.next


def test_the_refusal_names_file_and_secret_and_never_the_value() -> None:
    with pytest.raises(Conflict) as failure:
        Guard({"~/.mjkey.txt": b"very-secret-value"}).refuse({"charts/ml/rl/values.yaml": b"a: very-secret-value"})
    assert "charts/ml/rl/values.yaml contains ~/.mjkey.txt (in plain text)" in str(failure.value)
    assert "very-secret-value" not in str(failure.value)


@given(st.dictionaries(st.text("ab", min_size=1), st.binary(max_size=200)))
def test_files_without_the_secret_are_let_through(files: dict[str, bytes]) -> None:
    assert Guard({"k": b"a-value-that-random-bytes-never-hold"}).find(files) == []


def test_a_thousand_random_secrets_are_in_no_chart_and_each_planted_one_is_refused_by_path() -> None:
    source = random.Random(7)
    known = {f"s{number}": source.randbytes(source.randrange(16, 200)) for number in range(1000)}
    guard = Guard(known)
    files = {f"charts/{number}/values.yaml": f"replicas: {number}\n".encode() * 30 for number in range(200)}
    assert guard.find(files) == []
    planted = {f"p/{name}": b"x: " + base64.b64encode(value.strip()) for name, value in list(known.items())[:50]}
    found = {leak.path for leak in guard.find(files | planted)}
    assert found == set(planted)


def test_what_is_sealed_is_no_secret() -> None:
    random_bytes = random.Random(3).randbytes(560)
    sealed = base64.b64encode(b"\x02\x00" + random_bytes).decode()
    assert Guard({}).find({"pointer.yaml": f"encryptedData:\n  token.txt: {sealed}\n".encode()}) == []


TOKEN = b"hf_" + b"pLIixMEOLeMaEqJomTEIJEzOjoOjHyVaQX"
BINARIES = {
    "a null byte": b"url: https://example.org\ntoken: " + TOKEN + b"\0",
    "a pickle": pickle.dumps({"steps": 10, "token": TOKEN.decode()}),
    "random bytes around": random.Random(1).randbytes(200) + b"\0" + TOKEN + b"\0" + random.Random(2).randbytes(200),
}


@pytest.mark.parametrize("data", BINARIES.values(), ids=BINARIES)
@pytest.mark.parametrize("in_values", [True, False])
def test_a_token_in_a_binary_file_is_found(data: bytes, in_values: bool) -> None:
    content = b"files:\n  settings.bin: " + base64.b64encode(data) + b"\n" if in_values else data
    assert {leak.found.secret for leak in Guard({}).find({"values.yaml": content})} == {TOKEN}


def test_random_binaries_raise_no_alarm() -> None:
    source = random.Random(7)
    files = {f"{number}.bin": source.randbytes(4096) for number in range(200)}
    encoded = {f"{path}.yaml": base64.b64encode(data) for path, data in files.items()}
    assert Guard({}).find({**files, **encoded}) == []
