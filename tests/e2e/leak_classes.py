"""A second set of samples: 127 kinds of secrets at three of 13 places, and harmless strings of 66 kinds.

It holds what users write into charts and command lines, also where a search for secrets usually errs: names and values
in two list items, passwords with special characters, hashes of packages, public addresses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

from tests.e2e.leak_samples import (
    ALNUM,
    BASE64,
    DIGITS,
    HEX,
    KINDS,
    LOWER,
    UPPER,
    URL_SAFE,
    Chance,
    pem,
    uuid,
)

_Make = Callable[[Chance], str]
_SPECIAL = "!@#%^&*()-_=+,.?~"


def _password(chance: Chance) -> str:
    """Return 14 to 20 characters, among them a digit, a letter and a special character."""
    text = chance.of(ALNUM, chance.randint(9, 14)) + chance.of(_SPECIAL, 3) + chance.of(DIGITS, 2)
    return "".join(chance.sample(text, len(text)))


def _basic(chance: Chance) -> str:
    return "Basic " + base64.b64encode(f"me:{_password(chance)}".encode()).decode()


def _jwk(chance: Chance) -> str:
    parts = {name: chance.of(URL_SAFE, 43) for name in ("x", "y", "d")}
    return json.dumps({"kty": "EC", "crv": "P-256", **parts})


_PASSWORDS = """
POSTGRES_PASSWORD MYSQL_ROOT_PASSWORD RABBITMQ_DEFAULT_PASS REDIS_PASSWORD MONGO_INITDB_ROOT_PASSWORD
MINIO_ROOT_PASSWORD GF_SECURITY_ADMIN_PASSWORD SMTP_PASSWORD LDAP_BIND_PASSWORD KEYSTORE_PASSWORD
SUDO_PASS VNC_PWD KEY_PASSPHRASE
"""
_TOKENS = """
API_KEY AUTH_TOKEN SECRET_KEY CLIENT_SECRET ACCESS_TOKEN SESSION_SECRET JWT_SECRET WEBHOOK_SECRET
ENCRYPTION_KEY MLFLOW_TRACKING_TOKEN CLEARML_API_SECRET_KEY LABELSTUDIO_API_KEY PINECONE_API_KEY
QDRANT_API_KEY MISTRAL_API_KEY ELEVENLABS_API_KEY SNYK_TOKEN SONAR_TOKEN CODECOV_TOKEN CIRCLECI_TOKEN
JENKINS_API_TOKEN CONSUL_HTTP_TOKEN WEAVIATE_API_KEY MILVUS_TOKEN HONEYCOMB_API_KEY
"""
_MORE: Mapping[str, tuple[str, _Make]] = {
    **{f"password, {name}": (name, _password) for name in _PASSWORDS.split()},
    **{f"token, {name}": (name, lambda c: c.of(ALNUM, c.randint(28, 44))) for name in _TOKENS.split()},
    "Discord webhook": ("HOOK", lambda c: f"https://discord.com/api/webhooks/{c.of(DIGITS, 18)}/{c.of(URL_SAFE, 68)}"),
    "Mattermost webhook": ("HOOK", lambda c: f"https://chat.example.org/hooks/{c.of(LOWER, 26)}"),
    "Teams webhook": (
        "HOOK",
        lambda c: (
            f"https://acme.webhook.office.com/webhookb2/{uuid(c)}@{uuid(c)}/IncomingWebhook/{c.of(HEX, 32)}/{uuid(c)}"
        ),
    ),
    "Azure DevOps token": ("AZURE_DEVOPS_PAT", lambda c: c.of("abcdefghijklmnopqrstuvwxyz234567", 52)),
    "Azure connection": (
        "SERVICEBUS",
        lambda c: (
            f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={c.of(BASE64, 43)}="
        ),
    ),
    "private JWK": ("JWK", _jwk),
    ".pgpass": ("PGPASS", lambda c: f"db.example.org:5432:runs:me:{c.of(ALNUM, 18)}"),
    "htpasswd": ("HTPASSWD", lambda c: f"me:$apr1${c.of(ALNUM, 8)}${c.of(ALNUM + './', 22)}"),
    "bcrypt": ("ADMIN", lambda c: f"me:$2y$10${c.of(ALNUM + './', 53)}"),
    "basic authorization": ("HEADER", lambda c: f"Authorization: {_basic(c)}"),
    "bearer authorization": ("HEADER", lambda c: f"Authorization: Bearer {c.of(URL_SAFE, 48)}"),
    "EC private key": ("KEY", lambda c: pem(c, "EC PRIVATE KEY")),
    "PKCS 8 key": ("KEY", lambda c: pem(c, "PRIVATE KEY")),
    "encrypted key": ("KEY", lambda c: pem(c, "ENCRYPTED PRIVATE KEY")),
    "redis address": ("REDIS_URL", lambda c: f"redis://:{c.of(ALNUM, 24)}@redis.example.org:6379/0"),
    "amqp address": ("BROKER_URL", lambda c: f"amqp://me:{c.of(ALNUM, 16)}@mq.example.org:5672/"),
    "mongo address": ("MONGO_URL", lambda c: f"mongodb+srv://me:{c.of(ALNUM, 18)}@db.example.org/x"),
    "package index": ("PIP_EXTRA_INDEX_URL", lambda c: f"https://me:{c.of(ALNUM, 20)}@pypi.example.org/simple"),
    "npmrc": ("NPMRC", lambda c: f"//registry.example.org/:_authToken={uuid(c)}"),
    "netrc": ("NETRC", lambda c: f"machine api.wandb.ai login user password {c.of(HEX, 40)}"),
    "Stripe restricted key": ("STRIPE", lambda c: "rk_live_" + c.of(ALNUM, 24)),
    "Bitbucket app password": ("BITBUCKET_APP_PASSWORD", lambda c: "ATBB" + c.of(ALNUM, 32)),
    "Atlassian token": ("JIRA_API_TOKEN", lambda c: "ATATT3xFfGF0" + c.of(URL_SAFE, 172) + "=" + c.of(UPPER, 8)),
    "GitHub refresh token": ("GH_REFRESH", lambda c: "ghr_" + c.of(ALNUM, 36)),
    "GitLab job token": ("CI_JOB_TOKEN", lambda c: "glcbt-" + c.of(ALNUM, 2) + "_" + c.of(URL_SAFE, 20)),
    "Google service key": ("GCP_API_KEY", lambda c: "AIza" + c.of(URL_SAFE, 35)),
    "W&B new key": ("WANDB_API_KEY", lambda c: f"wandb_v1_{c.of(ALNUM, 22)}_{c.of(ALNUM, 40)}"),
    "Kaggle access token": ("KAGGLE_API_TOKEN", lambda c: "KGAT_" + c.of(HEX, 32)),
    "OpenRouter key": ("OPENROUTER_API_KEY", lambda c: "sk-or-v1-" + c.of(HEX, 64)),
    "xAI key": ("XAI_API_KEY", lambda c: "xai-" + c.of(ALNUM, 80)),
    "NVIDIA key": ("NVIDIA_API_KEY", lambda c: "nvapi-" + c.of(URL_SAFE, 64)),
    "LangSmith key": ("LANGSMITH_API_KEY", lambda c: f"lsv2_pt_{c.of(HEX, 32)}_{c.of(HEX, 10)}"),
    "Shopify token": ("SHOPIFY", lambda c: "shpat_" + c.of(HEX, 32)),
    "Linear key": ("LINEAR_API_KEY", lambda c: "lin_api_" + c.of(ALNUM, 40)),
    "Notion token": ("NOTION_TOKEN", lambda c: "ntn_" + c.of(DIGITS, 11) + c.of(ALNUM, 35)),
    "Sentry token": ("SENTRY_AUTH_TOKEN", lambda c: "sntryu_" + c.of(HEX, 64)),
    "New Relic key": ("NEW_RELIC_API_KEY", lambda c: "NRAK-" + c.of(UPPER, 27)),
    "Fly token": ("FLY_API_TOKEN", lambda c: "fo1_" + c.of(URL_SAFE, 43)),
    "Twilio key": ("TWILIO_API_KEY", lambda c: "SK" + c.of(HEX, 32)),
}
SECRETS: Mapping[str, tuple[str, _Make]] = {**KINDS, **_MORE}


def _option(name: str) -> str:
    return f"--{name.lower().replace('_', '-')}"


PLACES: Mapping[str, tuple[str, Callable[[str, str], str]]] = {
    "values": ("values.yaml", lambda name, value: f"env:\n  LR: '0.1'\n  {name}: {json.dumps(value)}\n"),
    "env list": ("pod.yaml", lambda name, value: f"env:\n- name: {name}\n  value: {json.dumps(value)}\n"),
    "args of two items": (
        "values.yaml",
        lambda name, value: f"args:\n- train.py\n- {_option(name)}\n- {json.dumps(value)}\n- --lr\n",
    ),
    "args in brackets": (
        "values.yaml",
        lambda name, value: f"args: {json.dumps(['train.py', _option(name), value, '--lr', '0.1'])}\n",
    ),
    "args with =": (
        "values.yaml",
        lambda name, value: f"args: {json.dumps(['train.py', f'{_option(name)}={value}', '--lr=0.1'])}\n",
    ),
    "script": ("run.sh", lambda name, value: f"#!/bin/sh\nexport {name}='{value}'\npython train.py\n"),
    "command": ("run.sh", lambda name, value: f"python train.py {_option(name)} '{value}' --lr 0.1\n"),
    ".env": (".env", lambda name, value: f"LR=0.1\n{name}={json.dumps(value)}\n"),
    "ini": ("app.ini", lambda name, value: f"[main]\nlr = 0.1\n{name.lower()} = {json.dumps(value)}\n"),
    "toml": ("app.toml", lambda name, value: f"lr = 0.1\n{name.lower()} = {json.dumps(value)}\n"),
    "JSON": ("app.json", lambda name, value: json.dumps({"lr": 0.1, name.lower(): value}, indent=1)),
    "Python": ("app.py", lambda name, value: f"LR = 0.1\n{name} = {value!r}\n"),
    "Containerfile": ("Containerfile", lambda name, value: f"FROM x\nENV {name}={json.dumps(value)}\n"),
}


def planted(seed: int = 1) -> dict[str, bytes]:
    """Return a secret of each kind at three places, by path; the folder names both."""
    chance, samples = Chance(seed), {}
    for number, (kind, (name, make)) in enumerate(SECRETS.items()):
        for place in chance.sample(sorted(PLACES), 3):
            path, write = PLACES[place]
            folder = f"{number} {kind}, {place}".replace("/", " ")
            samples[f"{folder}/{path}"] = write(name, make(chance)).encode()
    return samples


def _words(chance: Chance, count: int = 3) -> str:
    words = ("alpha", "north", "replay", "learner", "cluster", "river", "stone", "metric", "policy", "actor", "tuned")
    return "-".join(chance.choices(words, k=count))


_HARMLESS: tuple[_Make, ...] = (
    lambda c: f"RUN pip install git+https://github.com/wandb/wandb@{c.of(HEX, 40)}",
    lambda c: f"# wandb run of commit {c.of(HEX, 40)}",
    lambda c: f"wandb: {{project: rl, commit: {c.of(HEX, 40)}}}",
    lambda c: f"kaggle datasets download x/y  # md5 {c.of(HEX, 32)}",
    lambda c: f"kaggle: {{dataset: a/b, md5: {c.of(HEX, 32)}}}",
    lambda c: f"SENTRY_DSN: https://{c.of(HEX, 32)}@o{c.of(DIGITS, 6)}.ingest.sentry.io/{c.of(DIGITS, 7)}",
    lambda c: f"SENTRY_DSN=https://{c.of(HEX, 32)}@sentry.example.org/{c.of('123456789', 2)}",
    lambda c: f"CACHE_KEY: {c.of(HEX, 32)}",
    lambda c: f"COMET_EXPERIMENT_KEY: {c.of(LOWER, 32)}",
    lambda c: f"GPG_KEY={c.of('0123456789ABCDEF', 40)}",
    lambda c: f"numpy==2.1.0 --hash=sha256:{c.of(HEX, 64)}",
    lambda c: f"image: ghcr.io/team/rl@sha256:{c.of(HEX, 64)}",
    lambda c: f"commit: {c.of(HEX, 40)}",
    lambda c: f"run_id: {uuid(c)}",
    lambda c: f"WANDB_RUN_ID: {c.of(LOWER, 8)}",
    lambda c: f"wandb_run_path: team/rl/{c.of(LOWER, 8)}",
    lambda c: f"NEPTUNE_CUSTOM_RUN_ID: {_words(c)}-{c.of(HEX, 8)}",
    lambda c: f"MLFLOW_RUN_ID: {c.of(HEX, 32)}",
    lambda c: f"password_file: /etc/secrets/{_words(c)}.txt",
    lambda c: f"args: [--token-file, /etc/secrets/{_words(c)}, --max-tokens, '{c.of('123456789', 4)}']",
    lambda c: f"args:\n- --tokenizer\n- meta-llama/{_words(c)}-{c.of(DIGITS, 2)}B",
    lambda c: f"args: [--key, {_words(c)}, --sort-key, {_words(c)}]",
    lambda c: f"args: [--auth, none, --secret-name, {_words(c)}-{c.of(LOWER, 5)}]",
    lambda c: f"args:\n- --password-secret\n- {_words(c)}",
    lambda c: f"args: [--api-key, $(WANDB_API_KEY), --seed, '{c.of(DIGITS, 6)}']",
    lambda c: f'python train.py --wandb-api-key "$KEY_{c.of(UPPER, 4)}" --lr 0.1',
    lambda c: f"env:\n- name: DB_PASSWORD\n  valueFrom: {{secretKeyRef: {{name: {_words(c)}, key: password}}}}",
    lambda c: f"env:\n- name: API_KEY_NAME\n  value: {_words(c)}",
    lambda c: f"secretName: {_words(c)}-{c.of(LOWER, 5)}",
    lambda c: f"existingSecretPasswordKey: {_words(c)}",
    lambda c: f"passwordSecret: {{name: {_words(c)}, key: password}}",
    lambda c: f"POSTGRES_PASSWORD: ${{POSTGRES_PASSWORD_{c.of(UPPER, 4)}}}",
    lambda c: f"MYSQL_ROOT_PASSWORD: {{{{ .Values.{_words(c).replace('-', '')} }}}}",
    lambda c: f"password: <{_words(c)}>",
    lambda c: f"password = os.environ['{c.of(UPPER, 8)}_PASSWORD']",
    lambda c: f"password = getpass.getpass('{_words(c)}: ')",
    lambda c: f"passwordPolicy: {_words(c)}",
    lambda c: f"ALLOW_EMPTY_PASSWORD: 'yes'  # {_words(c)}",
    lambda c: f"partition_key: {_words(c)}-{c.of(DIGITS, 4)}",
    lambda c: f"primaryKey: {c.of(LOWER, 6)}_id",
    lambda c: f"idempotency_key: {uuid(c)}",
    lambda c: f"publicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{c.of(BASE64, 43)} me@host",
    lambda c: f"known_hosts: git.example.org ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC{c.of(BASE64, 200)}",
    lambda c: f"fingerprint: SHA256:{c.of(BASE64, 43)}",
    lambda c: f"etag: '\"{c.of(HEX, 32)}\"'",
    lambda c: f"integrity: sha512-{c.of(BASE64, 86)}==",
    lambda c: f"h1:{c.of(BASE64, 43)}=",
    lambda c: f"conda: pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_{c.of(DIGITS, 1)}.tar.bz2#{c.of(HEX, 32)}",
    lambda c: f"trace: 00-{c.of(HEX, 32)}-{c.of(HEX, 16)}-01",
    lambda c: f"checkpoint: s3://bucket/{_words(c)}/{uuid(c)}/step-{c.of(DIGITS, 7)}.pt",
    lambda c: f"HF_HOME: /cache/{c.of(LOWER, 12)}",
    lambda c: f"model: hf://team/{_words(c)}@{c.of(HEX, 40)}",
    lambda c: f"redis: redis://{_words(c)}:6379/{c.of(DIGITS, 1)}",
    lambda c: f"url: https://example.org/{_words(c)}?id={uuid(c)}",
    lambda c: f"webhook: https://example.org/hooks/{_words(c)}",
    lambda c: f"docs: https://discord.com/channels/{c.of(DIGITS, 18)}/{c.of(DIGITS, 18)}",
    lambda c: f"nodeSelector: {{cloud.google.com/gke-nodepool: {_words(c)}-{c.of(HEX, 8)}}}",
    lambda c: f"args: [--learning-rate, '0.{c.of(DIGITS, 6)}', --seed, '{c.of(DIGITS, 9)}']",
    lambda c: f"layers: [{', '.join(c.of('123456789', 3) for _ in range(12))}]",
    lambda c: f"cmap: '#{c.of(HEX, 6)}'",
    lambda c: f"mac: {':'.join(c.of(HEX, 2) for _ in range(6))}",
    lambda c: f"pgbouncer: db.example.org:5432:{_words(c)}",
    lambda c: f"text: {base64.b64encode(f'the quick brown fox {_words(c)}'.encode()).decode()}",
    lambda c: f"JWT_ISSUER: https://auth.example.org/realms/{_words(c)}",
    lambda c: f"TOKEN_URL: https://auth.example.org/oauth/{_words(c)}/token",
    lambda c: json.dumps({"kty": "EC", "crv": "P-256", "x": c.of(URL_SAFE, 43), "y": c.of(URL_SAFE, 43)}),
)


def harmless(seed: int = 1) -> dict[str, bytes]:
    """Return harmless strings by path, seven or eight of each kind."""
    chance = Chance(seed)
    return {
        f"{number}-{turn}/values.yaml": f"{make(chance)}\n".encode()
        for turn in range(8)
        for number, make in enumerate(_HARMLESS)
        if turn < 7 or number < 494 - 7 * len(_HARMLESS)
    }
