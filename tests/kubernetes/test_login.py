"""Every way to log in to a cluster works with each supported official client, for requests and streams alike."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.kube_logins import KUBECONFIGS, Cases, bad_logins, good_logins
from tests.kubernetes.kube_peer import peer, proxy
from tests.tools import KUBERNETES_CLIENTS, kubernetes_client

Outcomes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def tunnels() -> Iterator[tuple[str, list[str]]]:
    with proxy() as found:
        yield found


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory, tunnels: tuple[str, list[str]]) -> Iterator[Callable[[str], Cases]]:
    folder = tmp_path_factory.mktemp("login")
    with peer(folder) as there:

        def make(version: str) -> Cases:
            place = folder / version
            place.mkdir()
            (place / "pki").symlink_to(folder / "pki")
            (place / "other").symlink_to(folder / "other")
            made = Cases(place, there, tunnels[0])
            good_logins(made)
            bad_logins(made)
            for name, text in KUBECONFIGS.items():
                made.add(name, text=text)
            made.add("a context that is not there", context="mian")
            return made

        yield make


@pytest.fixture(scope="module", params=KUBERNETES_CLIENTS)
def outcomes(request: pytest.FixtureRequest, cases: Callable[[str], Cases]) -> Outcomes:
    folder = kubernetes_client(request.param)
    if folder is None:
        if os.environ.get("CI") or os.environ.get("SYMPH_REQUIRE_TOOLS"):
            pytest.fail(f"the client {request.param} is not there, and this run may not skip")
        pytest.skip(f"the client {request.param} is not there: make setup")
    made = cases(request.param)
    made.add("a folder", text="")
    made.found[-1]["file"] = str(made.folder)
    env = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    env["PYTHONPATH"] = os.pathsep.join([str(folder), str(Path(__file__).resolve().parents[2])])
    argv = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-m", "tests.kubernetes.kube_calls"]
    done = subprocess.run(
        argv, input=json.dumps(made.found), capture_output=True, text=True, env=env, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: Outcomes = json.loads(done.stdout)
    return {str(case["name"]): {**found[str(case["name"])], "file": case["file"]} for case in made.found}


def _seen(outcomes: Outcomes, name: str, key: str = "authorization") -> list[str | None]:
    assert "error" not in outcomes[name], outcomes[name]
    return [answer[key] for answer in outcomes[name]["answers"]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token", "Bearer word"),
        ("token file", "Bearer from-file"),
        ("token file that was renewed", "Bearer new"),
        ("name and password", "Basic YW5uOnNlY3JldA=="),
        ("nobody", None),
        ("program v1beta1", "Bearer made-1"),
        ("program v1", "Bearer made-1"),
        ("program whose token is revoked", "Bearer second"),
        ("insecure", "Bearer word"),
        ("proxy", "Bearer word"),
        ("another server name", "Bearer word"),
    ],
)
def test_requests_and_streams_bear_the_same_credentials(name: str, expected: str | None, outcomes: Outcomes) -> None:
    assert _seen(outcomes, name) == [expected, expected]


@pytest.mark.parametrize(
    "name", ["client certificate", "client certificate in files beside", "program that gives a certificate"]
)
def test_requests_and_streams_bear_the_same_certificate(name: str, outcomes: Outcomes) -> None:
    assert _seen(outcomes, name, "subject") == ["carol", "carol"]


def test_a_program_is_asked_again_when_its_token_expires(outcomes: Outcomes) -> None:
    first, second = _seen(outcomes, "program whose token expires")
    assert first != second


def test_requests_and_streams_go_through_the_proxy_with_its_password(
    outcomes: Outcomes, tunnels: tuple[str, list[str]]
) -> None:
    asked = [head for head in tunnels[1] if head.startswith("CONNECT 127.0.0.1:") and "Basic " in head]
    assert _seen(outcomes, "proxy") == ["Bearer word", "Bearer word"]
    assert len(asked) >= len(outcomes["proxy"]["answers"])


def test_the_server_is_asked_for_by_the_name_that_the_kubeconfig_gives(outcomes: Outcomes) -> None:
    assert _seen(outcomes, "another server name", "sni") == ["api.internal", "api.internal"]


def test_an_oidc_token_is_used_while_it_holds_and_renewed_when_it_expired(outcomes: Outcomes) -> None:
    (held,), (fresh,) = _seen(outcomes, "OIDC"), _seen(outcomes, "OIDC that expired")
    assert [_subject_of(str(one)) for one in (held, fresh)] == ["held", "fresh"]


def _subject_of(authorization: str) -> str:
    part = authorization.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"])


def test_the_next_refresh_token_of_an_issuer_is_not_lost(outcomes: Outcomes) -> None:
    kept = yaml.safe_load(Path(outcomes["OIDC that expired"]["file"]).read_text())
    assert kept["users"][0]["user"]["auth-provider"]["config"]["refresh-token"] == "next"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("a strange authority", "ToolFailed", ["cannot verify the certificate", 'cluster "c"', "yaml, clusters, c"]),
        ("a stream to a strange authority", "ToolFailed", ["refused a stream", "certificate verify failed"]),
        ("no authority", "SpecError", ["certificate authority is unusable", ".yaml, clusters, c"]),
        ("an authority that is no base64", "SpecError", ["invalid base64", ".yaml"]),
        ("an authority that is not there", "SpecError", ["file does not exist", "no.crt", ".yaml"]),
        ("the wrong server name", "ToolFailed", ["cannot verify the certificate", "tls-server-name"]),
        ("a proxy that is not there", "ToolFailed", ["the proxy 127.0.0.1:9", "proxy-url"]),
        ("a proxy that wants a password", "ToolFailed", ["the proxy 127.0.0.1:", "407"]),
        ("a SOCKS proxy", "SpecError", ["its proxy is not an http:// or https:// address", ".yaml, clusters, c"]),
        ("a proxy that is no address", "SpecError", ["its proxy is not an http:// or https:// address"]),
        ("no server", "ToolFailed", ["does not answer", "https://127.0.0.1:9", "refused"]),
        ("half a certificate", "SpecError", ["client certificate is unusable", ".yaml, users, u"]),
        ("a key of another", "SpecError", ["client certificate is unusable", ".yaml, users, u"]),
        ("no token file", "ToolFailed", ["/no/such", 'user "u"', ".yaml"]),
        ("a program that is not there", "ToolFailed", ["no-such-login", "install no-such-login first", ".yaml"]),
        ("a program that fails", "ToolFailed", ["your session has ended", "/failing", ".yaml"]),
        ("a program that fails later", "ToolFailed", ["gone", "/once", ".yaml"]),
        ("a program that says nothing", "ToolFailed", ["decode", "/mute"]),
        ("an unknown provider", "ToolFailed", ["auth-provider", ".yaml"]),
        ("a token that nobody takes", "ToolFailed", ["denied the request: Unauthorized", "log in again"]),
        ("a login page", "ToolFailed", ["is not a Kubernetes API"]),
        ("a redirection", "ToolFailed", ["302", "log in there"]),
        ("a redirected stream", "ToolFailed", ["refused a stream"]),
        ("a folder", "SpecError", ["cannot read", "Is a directory"]),
        (
            "a context that is not there",
            "SpecError",
            ['unknown context "mian"', 'did you mean "main"', "--context: main"],
        ),
    ],
)
def test_a_login_that_fails_says_why_and_where(name: str, error: str, words: list[str], outcomes: Outcomes) -> None:
    found = outcomes[name]
    assert found["error"] == error, found
    assert [word for word in words if word not in found["text"]] == [], found["text"]


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_a_broken_kubeconfig_is_an_input_error_that_names_the_file(name: str, outcomes: Outcomes) -> None:
    found = outcomes[name]
    assert (found["error"], found["exit"]) == ("SpecError", 3), found
    assert ("at: " in found["text"], ".yaml" in found["text"], "next: " in found["text"]) == (True, True, True)


def test_no_failure_shows_a_credential(outcomes: Outcomes) -> None:
    told = json.dumps([found.get("text") for found in outcomes.values()])
    assert [word for word in ("user:word", "PRIVATE KEY", "Bearer ") if word in told] == []
