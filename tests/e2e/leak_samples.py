"""Fake secrets of fifty kinds, harmless files that look like them, and the findings of the guard and of gitleaks.

`benchmarks/leaks.py` measures recall and false alarms on them.
"""

from __future__ import annotations

import base64
import gzip
import io
import itertools
import json
import pickle
import random
import string
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from symphony_charts.secrets.leaks import Guard
from tests.e2e.tools.build import find_tool

LETTERS, DIGITS = string.ascii_letters, string.digits
ALNUM, UPPER, LOWER = LETTERS + DIGITS, string.ascii_uppercase + DIGITS, string.ascii_lowercase + DIGITS
HEX, BASE64, URL_SAFE = "0123456789abcdef", ALNUM + "+/", ALNUM + "_-"


class Chance(random.Random):
    def of(self, alphabet: str, length: int) -> str:
        """Return `length` characters of an alphabet, including digits if the alphabet has any."""
        while True:
            text = "".join(self.choices(alphabet, k=length))
            if length < 12 or any(char in DIGITS for char in text) == any(char in DIGITS for char in alphabet):
                return text


def pem(chance: Chance, label: str) -> str:
    body = "\n".join(chance.of(BASE64, 64) for _ in range(6))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


def _jwt(chance: Chance) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": chance.of(DIGITS, 10), "name": "me", "iat": 1516239022}]
    head = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*head, chance.of(URL_SAFE, 43)])


def _neptune(chance: Chance) -> str:
    data = {"api_address": "https://app.neptune.ai", "api_url": "https://app.neptune.ai", "api_key": uuid(chance)}
    return base64.b64encode(json.dumps(data).encode()).decode()


def uuid(chance: Chance) -> str:
    return "-".join(chance.of(HEX, length) for length in (8, 4, 4, 4, 12))


# Each kind: its usual name, and a generator of values of its form.
KINDS: Mapping[str, tuple[str, Callable[[Chance], str]]] = {
    "AWS access key": ("AWS_ACCESS_KEY_ID", lambda c: "AKIA" + c.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "AWS session key": ("AWS_ACCESS_KEY_ID", lambda c: "ASIA" + c.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "AWS secret key": ("AWS_SECRET_ACCESS_KEY", lambda c: c.of(BASE64, 40)),
    "GitHub token": ("GITHUB_TOKEN", lambda c: "ghp_" + c.of(ALNUM, 36)),
    "GitHub app token": ("GH_TOKEN", lambda c: "ghs_" + c.of(ALNUM, 36)),
    "GitHub fine-grained": ("GH_TOKEN", lambda c: "github_pat_" + c.of(ALNUM + "_", 82)),
    "GitLab token": ("GITLAB_TOKEN", lambda c: "glpat-" + c.of(URL_SAFE, 20)),
    "GitLab deploy token": ("DEPLOY_TOKEN", lambda c: "gldt-" + c.of(URL_SAFE, 20)),
    "GitLab runner token": ("RUNNER_TOKEN", lambda c: "glrt-" + c.of(URL_SAFE, 20)),
    "Google API key": ("GOOGLE_API_KEY", lambda c: "AIza" + c.of(URL_SAFE, 35)),
    "Google OAuth secret": ("CLIENT_SECRET", lambda c: "GOCSPX-" + c.of(URL_SAFE, 28)),
    "Google access token": ("ACCESS_TOKEN", lambda c: "ya29." + c.of(URL_SAFE, 120)),
    "Azure storage key": (
        "CONNECTION",
        lambda c: f"DefaultEndpointsProtocol=https;AccountName=rl;AccountKey={c.of(BASE64, 86)}==",
    ),
    "Azure AD secret": ("AZURE_CLIENT_SECRET", lambda c: f"{c.of(ALNUM, 3)}8Q~{c.of(URL_SAFE, 34)}"),
    "Slack bot token": (
        "SLACK_TOKEN",
        lambda c: f"xoxb-{c.of('123456789', 12)}-{c.of('123456789', 12)}-{c.of(ALNUM, 24)}",
    ),
    "Slack app token": ("SLACK_APP", lambda c: f"xapp-1-A{c.of(UPPER, 10)}-{c.of('123456789', 13)}-{c.of(HEX, 64)}"),
    "Slack webhook": (
        "WEBHOOK",
        lambda c: f"https://hooks.slack.com/services/T{c.of(UPPER, 10)}/B{c.of(UPPER, 10)}/{c.of(ALNUM, 24)}",
    ),
    "RSA private key": ("KEY", lambda c: pem(c, "RSA PRIVATE KEY")),
    "OpenSSH private key": ("KEY", lambda c: pem(c, "OPENSSH PRIVATE KEY")),
    "PGP private key": ("KEY", lambda c: pem(c, "PGP PRIVATE KEY BLOCK")),
    "age key": ("AGE_KEY", lambda c: "AGE-SECRET-KEY-1" + c.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "JSON web token": ("JWT", _jwt),
    "npm token": ("NPM_TOKEN", lambda c: "npm_" + c.of(ALNUM, 36)),
    "PyPI token": ("PYPI_TOKEN", lambda c: "pypi-AgEIcHlwaS5vcmc" + c.of(URL_SAFE, 120)),
    "Docker token": ("DOCKER_TOKEN", lambda c: "dckr_pat_" + c.of(URL_SAFE, 27)),
    "Docker login": (
        "DOCKER_AUTH_CONFIG",
        lambda c: json.dumps(
            {"auths": {"r.io": {"auth": base64.b64encode(f"me:{c.of(ALNUM, 20)}".encode()).decode()}}}
        ),
    ),
    "Vault token": ("VAULT_TOKEN", lambda c: "hvs." + c.of(URL_SAFE, 96)),
    "Stripe key": ("STRIPE", lambda c: "sk_live_" + c.of(ALNUM, 24)),
    "SendGrid key": ("SENDGRID", lambda c: f"SG.{c.of(LOWER, 22)}.{c.of(LOWER, 43)}"),
    "Databricks token": ("DATABRICKS_TOKEN", lambda c: "dapi" + c.of(HEX, 32)),
    "Hugging Face token": ("HF_TOKEN", lambda c: "hf_" + c.of(LETTERS, 34)),
    "Weights & Biases key": ("WANDB_API_KEY", lambda c: c.of(HEX, 40)),
    "OpenAI key": ("OPENAI_API_KEY", lambda c: f"sk-{c.of(ALNUM, 20)}T3BlbkFJ{c.of(ALNUM, 20)}"),
    "OpenAI project key": ("OPENAI_API_KEY", lambda c: f"sk-proj-{c.of(URL_SAFE, 74)}T3BlbkFJ{c.of(URL_SAFE, 74)}"),
    "Anthropic key": ("ANTHROPIC_API_KEY", lambda c: f"sk-ant-api03-{c.of(URL_SAFE, 93)}AA"),
    "Comet key": ("COMET_API_KEY", lambda c: c.of(ALNUM, 25)),
    "Neptune token": ("NEPTUNE_API_TOKEN", _neptune),
    "Kaggle key": ("KAGGLE_KEY", lambda c: c.of(HEX, 32)),
    "Replicate token": ("REPLICATE_API_TOKEN", lambda c: "r8_" + c.of(ALNUM, 37)),
    "Groq key": ("GROQ_API_KEY", lambda c: "gsk_" + c.of(ALNUM, 52)),
    "Cohere key": ("COHERE_API_KEY", lambda c: c.of(ALNUM, 40)),
    "Datadog key": ("DATADOG_API_KEY", lambda c: c.of(LOWER, 40)),
    "DigitalOcean token": ("DO_TOKEN", lambda c: "dop_v1_" + c.of(HEX, 64)),
    "Heroku key": ("HEROKU_API_KEY", uuid),
    "Grafana token": ("GRAFANA_TOKEN", lambda c: f"glsa_{c.of(ALNUM, 32)}_{c.of(HEX, 8)}"),
    "Terraform token": ("TF_TOKEN", lambda c: f"{c.of(ALNUM, 14)}.atlasv1.{c.of(URL_SAFE, 64)}"),
    "Telegram token": ("TELEGRAM_BOT_TOKEN", lambda c: f"{c.of('123456789', 9)}:A{c.of(URL_SAFE, 34)}"),
    "database address": ("DATABASE_URL", lambda c: f"postgresql://me:{c.of(ALNUM, 16)}@db.example.org:5432/runs"),
    "repository address": ("REPOSITORY", lambda c: f"https://oauth2:{c.of(ALNUM, 20)}@git.example.org/x.git"),
    "password": ("DB_PASSWORD", lambda c: c.of(ALNUM + "!#%&*", 20)),
}


def _indented(text: str) -> str:
    return text.replace("\n", "\n      ")


PLACES: Mapping[str, Callable[[str, str], str]] = {
    "values.yaml": lambda name, value: (
        f"groups:\n  agent:\n    env:\n      {name}: {json.dumps(value)}\n      LR: '0.001'\n"
    ),
    "run.sh": lambda name, value: f"#!/bin/sh\nset -e\nexport {name}='{value}'\npython train.py --lr 0.001\n",
    "config.json": lambda name, value: json.dumps({"lr": 0.001, name.lower(): value, "steps": 10}, indent=2),
    "train.py": lambda name, value: f'import os\n\n{name} = """{value}"""\nos.environ["{name}"] = {name}\n',
}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


FORMS: Mapping[str, Callable[[str], str]] = {
    "in the clear": lambda value: value,
    "base64": lambda value: _base64(value.encode()),
    "base64 twice": lambda value: _base64(_base64(value.encode()).encode()),
    "hexadecimal": lambda value: value.encode().hex(),
    "\\u escapes": lambda value: "".join(f"\\u{ord(char):04x}" for char in value),
    "percent-encoding of each byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "gzip, base64": lambda value: _base64(gzip.compress(value.encode(), mtime=0)),
    "UTF-16, base64": lambda value: _base64(value.encode("utf-16")),
}
"""Encodings of a value at one of `PLACES`."""


def _env_file(name: str, value: str) -> bytes:
    return f"LR=0.001\n{name}={json.dumps(value)}\nSTEPS=100000\nDEVICE=cuda\n".encode()


def _json_file(name: str, value: str) -> bytes:
    return json.dumps({"lr": 0.001, name.lower(): value, "steps": 100000}, indent=2).encode()


def _wrapped(data: bytes, indent: str = "    ") -> str:
    """Return base64 as the program `base64` prints it, in a block of YAML."""
    return "".join(f"{indent}{line}\n" for line in base64.encodebytes(data).decode().splitlines())


def _secret(key: str, data: str, kind: str = "Opaque") -> bytes:
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: rl}}\ntype: {kind}\ndata:\n  {key}: {data}\n".encode()


def _docker_config(value: str) -> bytes:
    login = {"username": "me", "password": value, "auth": _base64(f"me:{value}".encode())}
    return json.dumps({"auths": {"registry.example.org": login}}).encode()


def _helm_release(name: str, value: str) -> bytes:
    """Return helm's release object with the secret in its values."""
    release = {"name": "rl", "config": {"env": {name: value}}, "manifest": "apiVersion: v1\nkind: Service\n" * 9}
    data = _base64(gzip.compress(json.dumps(release).encode(), mtime=0))
    return _secret("release", _base64(data.encode()), "helm.sh/release.v1")


def _kubeconfig(value: str) -> bytes:
    data = _base64(value.encode())
    return f"apiVersion: v1\nkind: Config\nusers:\n- name: me\n  user:\n    client-key-data: {data}\n".encode()


def _in_address(name: str, value: str) -> bytes:
    return f"url: https://example.org/start?config={quote(json.dumps({name.lower(): value}))}\n".encode()


def _tgz(name: str, value: str) -> bytes:
    stream, content = io.BytesIO(), PLACES["values.yaml"](name, value).encode()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("rl/values.yaml")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _zip(method: int, member: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo(member), content, method)
    return stream.getvalue()


# Files in which users commit a secret: the name of the file, and its content.
FILES: Mapping[str, tuple[str, Callable[[str, str], bytes]]] = {
    "Secret, data in base64": ("secret.yaml", lambda _, value: _secret("key", _base64(value.encode()))),
    "Secret, a .env file": ("secret.yaml", lambda *pair: _secret("env", _base64(_env_file(*pair)))),
    "Secret, a .env file in lines": ("secret.yaml", lambda *pair: _secret("env", f"|\n{_wrapped(_env_file(*pair))}")),
    "Secret, encoded twice by mistake": (
        "secret.yaml",
        lambda _, value: _secret("key", _base64(_base64(value.encode()).encode())),
    ),
    "Secret of a docker login": (
        "secret.yaml",
        lambda _, value: _secret(".dockerconfigjson", _base64(_docker_config(value)), "kubernetes.io/dockerconfigjson"),
    ),
    "Secret of a helm release": ("release.yaml", _helm_release),
    "kubeconfig": ("kubeconfig", lambda _, value: _kubeconfig(value)),
    "values, JSON file in base64": (
        "values.yaml",
        lambda *pair: f"files:\n  config.json: {_base64(_json_file(*pair))}\n".encode(),
    ),
    "values, JSON file in base64, in lines": (
        "values.yaml",
        lambda *pair: f"files:\n  config.json: |\n{_wrapped(_json_file(*pair))}".encode(),
    ),
    "values, gzip file in base64": (
        "values.yaml",
        lambda *pair: f"files:\n  config.gz: {_base64(gzip.compress(_json_file(*pair), mtime=0))}\n".encode(),
    ),
    "values, chart archive in base64": (
        "values.yaml",
        lambda *pair: f"files:\n  rl-1.0.0.tgz: {_base64(_tgz(*pair))}\n".encode(),
    ),
    "values, pickle in base64": (
        "values.yaml",
        lambda name, value: f"files:\n  state.pkl: {_base64(pickle.dumps({name: value}))}\n".encode(),
    ),
    "JSON in an address": ("values.yaml", _in_address),
    "pickle": ("state.pkl", lambda name, value: pickle.dumps({"steps": 10, name: value})),
    "tar.gz": ("rl-1.0.0.tgz", _tgz),
    "gzip": ("train.log.gz", lambda *pair: gzip.compress(_env_file(*pair), mtime=0)),
    "zip": ("code.zip", lambda *pair: _zip(zipfile.ZIP_DEFLATED, "rl/.env", _env_file(*pair))),
    "checkpoint of torch": (
        "model.pt",
        lambda name, value: _zip(zipfile.ZIP_STORED, "model/data.pkl", pickle.dumps({"steps": 10, name: value})),
    ),
    "UTF-16 of PowerShell": (".env", lambda *pair: _env_file(*pair).decode().encode("utf-16")),
}


def planted(form: str = "in the clear", seed: int = 1) -> dict[tuple[str, str], bytes]:
    """Return a secret of each kind at each place, by kind and place."""
    chance = Chance(seed)
    samples = {}
    for kind, (name, make) in KINDS.items():
        for place, write in PLACES.items():
            samples[kind, place] = write(name, FORMS[form](make(chance))).encode()
    return samples


def in_files(title: str, seed: int = 1) -> dict[str, bytes]:
    """Return a secret of each kind in one of `FILES`, by path."""
    chance = Chance(seed)
    path, write = FILES[title]
    return {f"{number}/{path}": write(name, make(chance)) for number, (name, make) in enumerate(KINDS.values())}


def harmless(seed: int = 1) -> list[tuple[str, bytes]]:
    """Return five hundred harmless pieces of experiments, each with the name of its file."""
    chance = Chance(seed)
    lines: list[tuple[str, Callable[[Chance], str]]] = [
        ("values.yaml", lambda c: f"image: gcr.io/my-project/rl@sha256:{c.of(HEX, 64)}"),
        ("values.yaml", lambda c: f"specDigest: {c.of(HEX, 64)}"),
        ("values.yaml", lambda c: f"source: https://git.example.org/team/code.git@{c.of(HEX, 40)}"),
        ("values.yaml", lambda c: f"run: rl-agent-{c.of(HEX, 8)}"),
        ("values.yaml", lambda c: f"id: {uuid(c)}"),
        (
            "values.yaml",
            lambda c: (
                f"env:\n- name: WANDB_API_KEY\n  valueFrom:\n    secretKeyRef: {{name: w-{c.of(LOWER, 5)}, key: k}}"
            ),
        ),
        ("values.yaml", lambda c: f"WANDB_RUN_ID: {c.of(LOWER, 8)}"),
        ("values.yaml", lambda c: f"secrets:\n  files: [.mjkey-{c.of(LOWER, 6)}.txt]\n  source: existing"),
        ("values.yaml", lambda c: f"HF_HOME: /cache/huggingface/{c.of(LOWER, 12)}"),
        ("values.yaml", lambda c: f"TOKENIZERS_PARALLELISM: 'false'\nTOKEN_BUDGET: '{c.of(DIGITS, 7)}'"),
        ("values.yaml", lambda c: f"redis: redis://rl-replay-{c.of(LOWER, 4)}:6379/0"),
        ("values.yaml", lambda _: "AWS_ACCESS_KEY_ID: AKIAIOSFODNN7EXAMPLE"),
        ("values.yaml", lambda _: "AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("values.yaml", lambda c: f"GITHUB_TOKEN: ghp_{'x' * c.randint(30, 36)}"),
        ("values.yaml", lambda c: f"DATABASE_URL: postgresql://user:password@db-{c.of(LOWER, 5)}/runs"),
        ("values.yaml", lambda c: f"OPENAI_API_KEY: <your-key-{c.of(DIGITS, 2)}>"),
        ("values.yaml", lambda c: f"publicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{c.of(BASE64, 43)} me@host"),
        ("values.yaml", lambda c: f"tensorboard: http://rl-{c.of(LOWER, 6)}.example.org:6006/"),
        ("values.yaml", lambda c: f"checkpoint: gs://my-bucket/runs/{c.of(LOWER, 10)}/step-{c.of(DIGITS, 6)}"),
        (
            "values.yaml",
            lambda c: f"text: {base64.b64encode(f'the quick brown fox {c.of(LOWER, 9)}'.encode()).decode()}",
        ),
        ("train.py", lambda c: f"key, subkey = jax.random.split(jax.random.PRNGKey({c.of('123456789', 6)}))"),
        ("train.py", lambda c: f"tokens = tokenizer.encode(text, max_length={c.of('123456789', 4)})"),
        ("train.py", lambda c: f'api_key = os.environ["KEY_OF_{c.of(string.ascii_uppercase, 6)}"]'),
        ("train.py", lambda c: f'password = getpass.getpass("password for {c.of(LOWER, 6)}: ")'),
        ("train.py", lambda c: f'token_file = Path("/etc/secrets/{c.of(LOWER, 8)}.txt")'),
        ("train.py", lambda c: f'assert digest == "{c.of(HEX, 64)}"'),
        ("train.py", lambda c: f"state = state_{c.of(LOWER, 8)}.replace(step=step + 1)  # the key of the map"),
        ("train.py", lambda c: f"SEED = 0x{c.of(HEX, 16)}"),
        ("config.json", lambda c: json.dumps({"type": "service_account", "project_id": f"rl-{c.of(DIGITS, 6)}"})),
        ("config.json", lambda c: json.dumps({"commit": c.of(HEX, 40), "author": "me"})),
        ("config.json", lambda c: json.dumps({"layers": [int(c.of("123456789", 3)) for _ in range(8)]})),
        ("config.json", lambda c: json.dumps({"etag": f'W/"{c.of(HEX, 32)}"', "size": 1234})),
        ("requirements.txt", lambda c: f"numpy==2.1.0 --hash=sha256:{c.of(HEX, 64)}"),
        (
            "uv.lock",
            lambda c: f'sdist = {{ url = "https://files.example.org/p.tar.gz", hash = "sha256:{c.of(HEX, 64)}" }}',
        ),
        (
            "run.sh",
            lambda c: f'curl -H "Authorization: Bearer $TOKEN_{c.of(string.ascii_uppercase, 4)}" https://example.org',
        ),
        ("run.sh", lambda c: f"ssh-keygen -t ed25519 -f key-{c.of(LOWER, 6)}"),
        ("run.sh", lambda c: f"git clone https://${{GIT_TOKEN}}@git.example.org/{c.of(LOWER, 7)}.git"),
        ("notes.md", lambda c: f"The token is found in `~/.netrc`; ask {c.of(LOWER, 6)} for a password."),
        ("notes.md", lambda c: f"Keys begin with `-----BEGIN PRIVATE KEY-----`, see {c.of(LOWER, 6)}."),
        ("cert.pem", lambda c: pem(c, "CERTIFICATE")),
        ("values.yaml", lambda c: f"files:\n  noise.bin: {_base64(c.randbytes(3000))}"),
        ("values.yaml", lambda c: f"files:\n  noise.bin: |\n{_wrapped(c.randbytes(3000))}"),
        ("values.yaml", lambda c: f"files:\n  noise.gz: {_base64(gzip.compress(c.randbytes(3000), mtime=0))}"),
        ("values.yaml", lambda c: f"files:\n  app.min.js: {_base64(_minified(c).encode())}"),
        ("app.min.js", _minified),
        ("app.js.map", lambda c: json.dumps({"version": 3, "mappings": ";".join(c.of(BASE64, 8) for _ in range(400))})),
        ("package.json", lambda c: json.dumps({"integrity": f"sha512-{_base64(c.randbytes(64))}"})),
        ("go.sum", lambda c: f"github.com/a/b v1.{c.of(DIGITS, 2)}.0 h1:{_base64(c.randbytes(32))}"),
        ("SHA256SUMS", lambda c: "\n".join(f"{c.of(HEX, 64)}  rl-{c.of(DIGITS, 3)}.tgz" for _ in range(30))),
        ("page.html", lambda c: f'<img src="data:image/png;base64,{_base64(c.randbytes(900))}">'),
    ]
    return [(name, f"{write(chance)}\n".encode()) for name, write in lines for _ in range(10)]


def _minified(chance: Chance) -> str:
    names = [chance.of(LETTERS, 2) for _ in range(300)]
    return "".join(
        f'function {a}({b}){{return {b}.key||{{token:"{a}{b}",h:0x{chance.of(HEX, 8)}}}}}'
        for a, b in itertools.pairwise(names)
    )


def found_by_us(samples: Mapping[str, bytes]) -> set[str]:
    """Return the paths with findings of the guard, each searched by itself."""
    guard = Guard({})
    return {path for path, content in samples.items() if guard.find({path: content})}


def found_by_gitleaks(samples: Mapping[str, bytes], *options: str) -> set[str]:
    """Return the paths with findings of gitleaks; by default it decodes five times and opens no archive."""
    with tempfile.TemporaryDirectory() as scratch:
        root, report = Path(scratch) / "samples", Path(scratch) / "report.json"
        for path, content in samples.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        argv = [str(find_tool("gitleaks")), "dir", ".", "--no-banner", "--exit-code=0", "--report-format=json"]
        argv += [f"--report-path={report}", "--log-level=error", *options]
        subprocess.run(argv, cwd=root, check=True, timeout=600, capture_output=True)
        return {finding["File"].partition("!")[0] for finding in json.loads(report.read_bytes())}
