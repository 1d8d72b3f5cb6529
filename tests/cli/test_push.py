"""`symph push` into a real registry and into a folder; real helm fetches and verifies the charts."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from tests.registry import running_registry
from tests.tools import HELM_VERSIONS, helm

SPEC = "name: rl\nimage: busybox:1.37.0\nprocesses: {agent: {command: [work], replicas: 2}}\n"


class Place:
    """A folder with a packaged chart."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.package(SPEC)

    @property
    def archive(self) -> Path:
        return max((self.folder / "dist").glob("rl-*.tgz"))

    def package(self, spec: str, *words: str) -> None:
        (self.folder / "rl.yaml").write_text(spec)
        assert self.symph("package", "rl.yaml", *words)[0] == 0

    def symph(self, *words: str) -> tuple[int, str, str]:
        status = main(list(words))
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def push(self, target: str, *words: str) -> dict[str, Any]:
        status, out, err = self.symph("push", str(self.archive), target, *words, "-o", "json")
        assert status == 0, err
        (item,) = json.loads(out)["items"]
        return dict(item)


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path, capsys)


@pytest.fixture
def registry(tmp_path: Path, need_tool: Callable[[str], str]) -> Iterator[str]:
    with running_registry(need_tool("docker-registry"), tmp_path) as host:
        yield host


def run_helm(version: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = helm(version)
    if program is None:
        pytest.skip(f"helm {version} is not unpacked: python -m tests.tools")
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run([str(program), *words], capture_output=True, text=True, timeout=60, env=env, check=False)


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_pulls_the_very_archive_that_was_pushed(version: str, place: Place, registry: str, tmp_path: Path) -> None:
    pushed = place.push(f"oci://{registry}/charts")
    got = tmp_path / "got"
    got.mkdir()
    words = ("pull", f"oci://{registry}/charts/rl", "--version", "0.1.0", "--plain-http", "-d", str(got))
    ended = run_helm(version, tmp_path, *words)
    assert ended.returncode == 0, ended.stderr
    assert pushed["digest"] in ended.stdout + ended.stderr
    assert (got / "rl-0.1.0.tgz").read_bytes() == place.archive.read_bytes()


def test_another_content_under_a_pushed_version_exits_7(place: Place, registry: str) -> None:
    place.push(f"oci://{registry}/charts")
    place.package(SPEC.replace("replicas: 2", "replicas: 3"), "--version", "0.1.0")
    status, _, err = place.symph("push", str(place.archive), f"oci://{registry}/charts")
    assert status == 7
    assert "other content" in err


def test_a_chart_is_sent_once_as_a_folder_or_as_its_archive(place: Place, registry: str) -> None:
    target = f"oci://{registry}/charts"
    pushed = [place.push(target, *words) for words in (["--dry-run"], [], [])]
    assert [each["state"] for each in pushed] == ["would be pushed", "pushed", "there already"]
    assert len({each["digest"] for each in pushed}) == 1
    assert "there already" in place.symph("push", "dist/rl", target)[1]


def test_a_registry_that_wants_a_password_gets_helms_own(
    place: Place, tmp_path: Path, need_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # bcrypt of "secret", made once with htpasswd -nbB.
    line = "ann:$2y$05$0VhCZ/9RRCGeFkDZpjQAs.n1LtfJsKEBQkC9Gj3mfhhrTcGfM4DZK\n"
    with running_registry(need_tool("docker-registry"), tmp_path, line) as host:
        status, _, err = place.symph("push", str(place.archive), f"oci://{host}/charts")
        assert status == 6
        assert "helm registry login" in err
        config = tmp_path / "config.json"
        auth = base64.b64encode(b"ann:wrong").decode()
        config.write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(config))
        status, _, err = place.symph("push", str(place.archive), f"oci://{host}/charts")
        assert status == 6
        assert "wrong" not in err


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a folder and the address at which a real HTTP server serves it."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_installs_from_the_index(version: str, place: Place, site: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = site
    place.push(str(folder))
    assert run_helm(version, tmp_path, "repo", "add", "here", url).returncode == 0
    ended = run_helm(version, tmp_path, "template", "r1", "here/rl", "--version", "0.1.0")
    assert "kind: Job" in ended.stdout, ended.stderr


def test_versions_in_the_index_remain_unchanged(place: Place, site: tuple[Path, str]) -> None:
    folder, _ = site
    place.push(str(folder))
    index = folder / "index.yaml"
    before = index.read_text()
    assert place.push(str(folder))["state"] == "there already"
    assert index.read_text() == before
    place.package(SPEC.replace("replicas: 2", "replicas: 3"))
    place.push(str(folder))
    after = index.read_text()
    kept = before[before.index("rl:") : before.index("generated:")].splitlines()[1:]
    assert "\n".join(kept) in after
    assert hashlib.sha256((folder / "rl-0.1.1.tgz").read_bytes()).hexdigest() in after


def test_a_listed_version_with_other_content_is_refused(place: Place, site: tuple[Path, str]) -> None:
    folder, _ = site
    place.push(str(folder))
    before = (folder / "index.yaml").read_text()
    place.package(SPEC.replace("replicas: 2", "replicas: 3"), "--version", "0.1.0")
    assert place.symph("push", str(place.archive), str(folder))[0] == 7
    assert (folder / "index.yaml").read_text() == before


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_verifies_a_signed_chart(
    version: str,
    place: Place,
    site: tuple[Path, str],
    private_places: Path,
    need_tool: Callable[[str], str],
    tmp_path: Path,
) -> None:
    gpg = need_tool("gpg")
    home = private_places / "gpg"
    home.mkdir(mode=0o700)
    env = {**os.environ, "GNUPGHOME": str(home)}
    make = [gpg, "--batch", "--passphrase", "", "--quick-generate-key", "Ann <ann@example.org>", "rsa2048", "sign"]
    subprocess.run(make, check=True, capture_output=True, timeout=60, env=env)
    ring = subprocess.run([gpg, "--export"], check=True, capture_output=True, timeout=60, env=env).stdout
    (tmp_path / "ring.gpg").write_bytes(ring)
    os.environ["GNUPGHOME"] = str(home)
    try:
        place.push(str(site[0]), "--prov", "ann@example.org")
    finally:
        del os.environ["GNUPGHOME"]
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=True, timeout=30, env=env)
    archive = site[0] / "rl-0.1.0.tgz"
    ended = run_helm(version, tmp_path, "verify", str(archive), "--keyring", str(tmp_path / "ring.gpg"))
    assert ended.returncode == 0, ended.stderr
    archive.write_bytes(archive.read_bytes() + b"\0")
    assert run_helm(version, tmp_path, "verify", str(archive), "--keyring", str(tmp_path / "ring.gpg")).returncode


def test_a_chart_with_a_private_key_in_it_is_not_pushed(place: Place, registry: str) -> None:
    (place.folder / "dist/rl/templates/extra-key.yaml").write_text(
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAxT\n"
    )
    status, _, err = place.symph("push", "dist/rl", f"oci://{registry}/charts")
    assert status == 7
    assert "extra-key.yaml" in err


def test_a_file_that_is_not_a_chart_is_refused(place: Place) -> None:
    (place.folder / "x.tgz").write_bytes(b"\x1f\x8b nothing")
    assert place.symph("push", "x.tgz", "oci://localhost:1/a")[0] == 3
    assert place.symph("push", "none.tgz", "oci://localhost:1/a")[0] == 3
    assert place.symph("push", str(place.archive), "oci://Bad_Host")[0] == 3


def test_a_chart_with_unreadable_metadata_is_refused_with_its_place(place: Place) -> None:
    (place.folder / "broken").mkdir()
    (place.folder / "broken/Chart.yaml").write_text("name: [")
    status, _, err = place.symph("push", "broken", "oci://localhost:1/a")
    assert (status, "broken, Chart.yaml, line" in err) == (3, True), err


def test_a_file_that_is_not_an_index_is_refused(place: Place) -> None:
    for content in (b"\xff\xfe", b"[]", b"entries: {rl: 1}"):
        (place.folder / "site").mkdir(exist_ok=True)
        (place.folder / "site/index.yaml").write_bytes(content)
        assert place.symph("push", str(place.archive), "site")[0] == 3
