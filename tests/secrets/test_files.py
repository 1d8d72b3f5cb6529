"""The Secret holds the files byte for byte, and nothing is pushed that the cluster would refuse."""

from __future__ import annotations

import base64

import pytest

from symphony_charts.chart.lint.kubernetes import check_schemas
from symphony_charts.errors import SpecError
from symphony_charts.secrets.files import secret_object
from symphony_charts.spec.data import from_data

EXPERIMENT = from_data(
    {"name": "exp", "image": "x:1", "processes": {"p": {}}, "secrets": ["~/token", {"file": "a/b.pem", "key": "key"}]}
)


def test_the_secret_holds_the_files_by_key() -> None:
    made = secret_object(EXPERIMENT, {"token": b"\x00\xff", "key": b"pem"}, "exp-secrets", "ns")
    data = made["data"]
    assert isinstance(data, dict)
    assert {key: base64.b64decode(value) for key, value in data.items()} == {"token": b"\x00\xff", "key": b"pem"}
    assert not list(check_schemas([made]))


def test_only_the_secret_of_one_release_has_its_label() -> None:
    contents = {"token": b"", "key": b""}
    ours = {"app.kubernetes.io/managed-by": "symph", "symph.dev/experiment": "exp"}
    of_release = secret_object(EXPERIMENT, contents, "blue-secrets", release="blue")["metadata"]
    assert of_release == {"name": "blue-secrets", "labels": {**ours, "app.kubernetes.io/instance": "blue"}}
    assert secret_object(EXPERIMENT, contents, "shared")["metadata"] == {"name": "shared", "labels": ours}


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(SpecError, match="key"):
        secret_object(EXPERIMENT, {"token": b""}, "exp-secrets")


def test_more_than_kubernetes_takes_is_refused() -> None:
    with pytest.raises(SpecError, match="1 MiB"):
        secret_object(EXPERIMENT, {"token": b"x" * 2**20, "key": b"y"}, "exp-secrets")
