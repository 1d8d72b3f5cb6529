"""What is sealed here is opened by the real kubeseal, in every scope."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from symphony_charts.chart.assemble import Release, assemble
from symphony_charts.chart.merge import merge
from symphony_charts.secrets.sealing import SealStore, label_of, read_certificate, seal_all
from tests.e2e.tools.build import find_tool
from tests.secrets.test_sealing import KEY, certificate

pytestmark = pytest.mark.e2e
CONTENTS = {"text": b"value\n", "empty": b"", "binary": bytes(range(256))}


@pytest.mark.parametrize("scope", ["strict", "namespace-wide", "cluster-wide"])
def test_kubeseal_opens_what_we_sealed(scope: str, tmp_path: Path) -> None:
    label = label_of(scope, "rl", "rl-secrets")  # type: ignore[arg-type]  # one of the three
    sealed = seal_all(read_certificate(certificate()), CONTENTS, label, SealStore(secret=b"k" * 32), os.urandom)
    values = {"secrets": {"source": "sealed", "scope": scope, "encryptedData": sealed}}
    objects = assemble(merge({"specDigest": "x"}, values), Release(name="rl", namespace="rl", chart_name="rl"))
    item = next(each for each in objects if each["kind"] == "SealedSecret")
    metadata = item["metadata"]
    assert isinstance(metadata, dict)
    # Helm and Argo CD put the namespace in.
    (tmp_path / "sealed.json").write_text(json.dumps({**item, "metadata": {**metadata, "namespace": "rl"}}))
    pem = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (tmp_path / "key.pem").write_bytes(pem)
    argv = [str(find_tool("kubeseal")), "--recovery-unseal", "--recovery-private-key", str(tmp_path / "key.pem")]
    ended = subprocess.run(
        argv, input=(tmp_path / "sealed.json").read_bytes(), capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()

    # Go writes null for an empty value.
    opened = json.loads(ended.stdout)
    assert {key: base64.b64decode(text or "") for key, text in opened.get("data", {}).items()} == CONTENTS
    assert opened["metadata"]["name"] == "rl-secrets"
