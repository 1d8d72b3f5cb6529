"""The real kubeseal opens our sealed values, in every scope."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.release import merge
from symphony_charts.errors import ToolFailed
from symphony_charts.secrets.files import SealStore, encrypted_secret
from symphony_charts.secrets.sealing import label_of, read_certificate, seal_all
from symphony_charts.spec import files
from tests.chart.harness import built_of, experiment_of
from tests.e2e.tools.build import find_tool
from tests.secrets.test_sealing import KEY, certificate

pytestmark = pytest.mark.e2e
CONTENTS = {"text": b"value\n", "empty": b"", "binary": bytes(range(256))}


@pytest.mark.parametrize("scope", ["strict", "namespace-wide", "cluster-wide"])
def test_kubeseal_opens_what_we_sealed(scope: str, tmp_path: Path) -> None:
    label = label_of(scope, "rl", "rl-secrets")  # type: ignore[arg-type]  # one of the three
    sealed = seal_all(read_certificate(certificate()), CONTENTS, label, SealStore(secret=b"k" * 32), os.urandom)
    source = {"source": "sealed", "scope": scope}
    chart = built_of(experiment_of(name="rl", processes={"p": {}}, secrets=list(CONTENTS), secret_source=source))
    values = merge(chart.values, {"secrets": {"encryptedData": sealed}})
    objects = chart.objects(values, Release(name="rl", namespace="rl"))
    item = next(each for each in objects if each["kind"] == "SealedSecret")
    # Helm and Argo CD set the namespace.
    (tmp_path / "sealed.json").write_text(json.dumps({**item, "metadata": {**item["metadata"], "namespace": "rl"}}))
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


def test_sops_opens_what_a_publish_encrypted(
    tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sops = find_tool("sops")
    home = private_places / "gpg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    monkeypatch.setenv("PATH", f"{sops.resolve().parent}{os.pathsep}{os.environ['PATH']}")
    make = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Ann <ann@example.org>", "rsa2048", "encrypt"]
    subprocess.run(make, check=True, capture_output=True, timeout=60)
    listed = subprocess.run(
        ["gpg", "--list-keys", "--with-colons"], check=True, capture_output=True, text=True, timeout=30
    )
    print_ = next(line.split(":")[9] for line in listed.stdout.splitlines() if line.startswith("fpr"))
    (tmp_path / ".sops.yaml").write_text(f"creation_rules: [{{path_regex: ^flux/dev/, pgp: {print_}}}]\n")
    (tmp_path / "token.txt").write_text("hunter2-hunter2\n")
    (tmp_path / "rl.yaml").write_text(
        "name: rl\nimage: a:1\nsecrets: [token.txt]\nsecret_source: {source: sops}\nprocesses: {p: {command: [x]}}\n"
    )
    try:
        spec = files.read(tmp_path / "rl.yaml")
        made = encrypted_secret(spec, "flux/dev/ml/rl.secret.yaml", "rl", "rl-secrets")
        assert b"hunter2" not in made
        assert b"name: rl-secrets" in made
        assert encrypted_secret(spec, "flux/dev/ml/rl.secret.yaml", "rl", "rl-secrets") == made
        argv = [str(sops), "--decrypt", "--input-type", "yaml", "--output-type", "json", "/dev/stdin"]
        opened = subprocess.run(argv, input=made, capture_output=True, timeout=60, check=True)
        assert base64.b64decode(json.loads(opened.stdout)["data"]["token.txt"]) == b"hunter2-hunter2\n"
        with pytest.raises(ToolFailed, match="sops failed"):
            encrypted_secret(spec, "elsewhere/rl.secret.yaml", "rl", "rl-secrets")
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=True, timeout=30)
