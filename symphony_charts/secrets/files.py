"""Read secret files; make the Secret of them, also encrypted with sops."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from symphony_charts.chart.build.chart import Release, build
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.yaml_write import dump
from symphony_charts.secrets.leaks import Guard
from symphony_charts.settings.project import AllowedLeak
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from symphony_charts.spec.sources import key_of
from symphony_charts.system.files import write_file
from symphony_charts.system.subprocess_runner import run
from symphony_charts.system.user_folders import state_dir


@dataclass(slots=True)
class SealStore:
    """Values sealed before on this machine, so that an unchanged value keeps its ciphertext.

    `sealed` maps a keyed hash of certificate, label, key and content to the ciphertext; without `secret`, guesses of a
    value cannot be tested against it.
    """

    secret: bytes
    sealed: dict[str, str] = field(default_factory=dict)

    def name_of(self, fingerprint: str, label: bytes, key: str, value: bytes) -> str:
        parts = (fingerprint.encode(), label, key.encode(), value)
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self.secret, framed, hashlib.sha256).hexdigest()


# Kubernetes refuses a larger Secret (k8s.io/api/core/v1, MaxSecretSize).
_MAX_SECRET_BYTES = 1024 * 1024


def read_secrets(spec: SpecFile, *, may_lack: bool = False) -> dict[str, bytes]:
    """Return the files' bytes by key. Raises SpecError for all unreadable ones, unless `may_lack`."""
    return read_secret_files(spec.experiment, spec.path.parent, at=str(spec.path), may_lack=may_lack)


def read_secret_files(
    experiment: Experiment, folder: Path, *, at: str = "", may_lack: bool = False
) -> dict[str, bytes]:
    """Return the secret files of an experiment by key, with paths relative to `folder`; see `read_secrets`."""
    contents: dict[str, bytes] = {}
    problems = []
    for index, file in enumerate(experiment.secrets):
        path = folder / Path(file.file).expanduser()
        try:
            contents[key_of(file)] = path.read_bytes()
        except OSError as error:
            what = f"cannot read the secret file {path}: {error.strerror}"
            problems.append(Problem(what=what, path=f"secrets[{index}].file"))
    if problems and not may_lack:
        raise SpecError(problems, at=at)
    return contents


def secret_object(
    experiment: Experiment,
    contents: Mapping[str, bytes],
    name: str,
    namespace: str | None = None,
    *,
    release: str | None = None,
) -> dict[str, object]:
    """Return the Secret `name` with the `contents` (by key) of the experiment's files.

    `release` is the only release that mounts it; it deletes the Secret with its own objects.

    Raises SpecError if a content is missing or the Secret is too large.
    """
    keys = [key_of(file) for file in experiment.secrets]
    missing = [key for key in keys if key not in contents]
    if missing:
        raise SpecError.one(f'secret "{missing[0]}" has no content', "secrets")
    size = sum(len(contents[key]) for key in keys)
    if size > _MAX_SECRET_BYTES:
        raise SpecError.one(f"the secrets have {size} bytes; Kubernetes allows 1 MiB", "secrets")
    labels = {"app.kubernetes.io/managed-by": "symph", "symph.dev/experiment": experiment.name}
    if release:
        labels["app.kubernetes.io/instance"] = release
    metadata: dict[str, object] = {"name": name, "labels": labels}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": {key: base64.b64encode(contents[key]).decode() for key in sorted(keys)},
    }


def guard_of(specs: list[SpecFile], allowed: Iterable[AllowedLeak] = ()) -> Guard:
    """Return a guard that refuses to send the secret files of `specs` on this machine, and tokens.

    `allowed` are findings that are not secret.
    """
    secrets: dict[str, bytes] = {}
    for spec in specs:
        contents = read_secrets(spec, may_lack=True)
        secrets |= {f"the secret {key} of {spec.path}": content for key, content in contents.items()}
    return Guard(secrets, allowed=allowed)


def secret_name(spec: SpecFile, release: str | None = None) -> str:
    """Return the name of the Secret that a release's pods mount (default: a release with the experiment's name)."""
    chart = build(spec.experiment, allocate(spec.experiment, spec.pins))
    return chart.secret_name(chart.values, Release(name=release or spec.experiment.name))


def encrypted_secret(spec: SpecFile, path: str, namespace: str, name: str) -> bytes:
    """Return the Secret of `spec`, encrypted by sops for the place `path`; an unchanged one keeps its ciphertext.

    Raises SpecError for files that cannot be read, ToolMissing and ToolFailed of sops.
    """
    secret = secret_object(spec.experiment, read_secrets(spec), name, namespace)
    manifest = dump(secret).encode()
    store, file = open_store("sops")
    key = store.name_of("sops", path.encode(), name, manifest)
    if key not in store.sealed:
        store.sealed[key] = _encrypt_manifest(manifest, path, spec.path.absolute().parent).decode()
        write_file(file, json.dumps(store.sealed, indent=1, sort_keys=True).encode(), mode=0o600)
    return store.sealed[key].encode()


def open_store(fingerprint: str) -> tuple[SealStore, Path]:
    """Return the values sealed for a certificate, and their file."""
    folder = state_dir() / "seals"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key, path = folder / "key", folder / f"{fingerprint}.json"
    if not key.exists():
        write_file(key, os.urandom(32), mode=0o600)
    try:
        sealed = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        # Without this file, values are only sealed again.
        sealed = {}
    is_good = isinstance(sealed, Mapping) and all(isinstance(text, str) for text in sealed.values())
    return SealStore(secret=key.read_bytes(), sealed=dict(sealed) if is_good else {}), path


def _encrypt_manifest(manifest: bytes, path: str, folder: Path) -> bytes:
    """Return `manifest` with the values of `data` and `stringData` encrypted, by the sops rules for `path`.

    Rules are searched from `folder` upwards. Raises ToolMissing without sops, ToolFailed if no rule matches.
    """
    argv = ["sops", "--encrypt", "--input-type", "yaml", "--output-type", "yaml", "--filename-override", path]
    argv += ["--encrypted-regex", "^(data|stringData)$", "/dev/stdin"]
    ended = run(argv, input=manifest, timeout_s=60, cwd=folder, check=False)
    if ended.status:
        reasons = ended.error_text.strip().splitlines()
        raise ended.failure(
            f"sops failed: {reasons[-1] if reasons else 'no reason given'}",
            path,
            "write a .sops.yaml with a rule for this file beside the spec",
        )
    return ended.stdout
