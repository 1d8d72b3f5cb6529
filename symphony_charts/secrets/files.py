"""The secret files of an experiment are read for the cluster, sealed or encrypted for Git, and kept out of all else."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from symphony_charts.chart.render.names import Release, fullname, join
from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.yaml_text import dump
from symphony_charts.secrets.existing import secret_object
from symphony_charts.secrets.leaks import Guard
from symphony_charts.secrets.sealing import Certificate, SealStore, label_of, seal_all
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import key_of
from symphony_charts.system.files import write_file
from symphony_charts.system.subprocess_runner import run
from symphony_charts.system.user_folders import state_dir

__all__ = [
    "cluster_options",
    "encrypted_secret",
    "guard_of",
    "read_secret_files",
    "read_secrets",
    "sealed_values",
    "secret_keys",
    "secret_name",
]


def read_secrets(spec: SpecFile, *, may_lack: bool = False) -> dict[str, bytes]:
    """The files' bytes by key. Raises SpecError, all at once, for those that cannot be read, unless `may_lack`."""
    return read_secret_files(spec.experiment, spec.path.parent, at=str(spec.path), may_lack=may_lack)


def read_secret_files(
    experiment: Experiment, folder: Path, *, at: str = "", may_lack: bool = False
) -> dict[str, bytes]:
    """`read_secrets` of an experiment whose files count from `folder`."""
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


def guard_of(specs: list[SpecFile], allowed: Collection[str] = ()) -> Guard:
    """What refuses to send the secret files of `specs`, as far as they are on this machine, and tokens.

    `allowed` are fingerprints of what is no secret.
    """
    secrets: dict[str, bytes] = {}
    for spec in specs:
        contents = read_secrets(spec, may_lack=True)
        secrets |= {f"the secret {key} of {spec.path}": content for key, content in contents.items()}
    return Guard(secrets, allowed=allowed)


def secret_name(spec: SpecFile, release: str | None = None, named: str | None = None) -> str:
    """What the Secret of a release is called: the name given, or as the chart computes it."""
    at = Release(name=release or spec.experiment.name, chart_name=spec.experiment.name)
    return named or join(fullname({}, at), "secrets", 63)


def sealed_values(spec: SpecFile, certificate: Certificate, namespace: str, name: str) -> Values:
    """The values that carry the sealed files of `spec` into one namespace; unchanged files keep their ciphertext.

    Raises SpecError for files that cannot be read.
    """
    contents = read_secrets(spec)
    label = label_of(spec.experiment.secret_source.scope, namespace, name)
    store, path = _open_store(certificate.fingerprint)
    before = dict(store.sealed)
    sealed = seal_all(certificate, contents, label, store, os.urandom)
    if store.sealed != before:
        write_file(path, json.dumps(store.sealed, indent=1, sort_keys=True).encode(), mode=0o600)
    bound = {"sealedFor": label.decode()} if label else {}
    return {"secrets": {"encryptedData": sealed, **bound}}


def encrypted_secret(spec: SpecFile, path: str, namespace: str, name: str) -> bytes:
    """The Secret of `spec`, encrypted by sops for the place `path`; an unchanged one keeps its ciphertext.

    Raises SpecError for files that cannot be read, ToolMissing and ToolFailed of sops.
    """
    secret = secret_object(spec.experiment, read_secrets(spec), name, namespace)
    manifest = dump(secret).encode()
    store, file = _open_store("sops")
    key = store.name_of("sops", path.encode(), name, manifest)
    if key not in store.sealed:
        store.sealed[key] = _encrypt_manifest(manifest, path, spec.path.absolute().parent).decode()
        write_file(file, json.dumps(store.sealed, indent=1, sort_keys=True).encode(), mode=0o600)
    return store.sealed[key].encode()


def _open_store(fingerprint: str) -> tuple[SealStore, Path]:
    """What was sealed for a certificate on this machine, and the file that remembers it."""
    folder = state_dir() / "seals"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key, path = folder / "key", folder / f"{fingerprint}.json"
    if not key.exists():
        write_file(key, os.urandom(32), mode=0o600)
    try:
        sealed = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        # Without it values are only sealed anew.
        sealed = {}
    is_good = isinstance(sealed, Mapping) and all(isinstance(text, str) for text in sealed.values())
    return SealStore(secret=key.read_bytes(), sealed=dict(sealed) if is_good else {}), path


def _encrypt_manifest(manifest: bytes, path: str, folder: Path) -> bytes:
    """`manifest` with the values of ``data`` and ``stringData`` encrypted, by the rules that hold for `path`.

    Rules are looked for from `folder` upwards. Raises ToolMissing without sops, ToolFailed where no rule fits.
    """
    argv = ["sops", "--encrypt", "--input-type", "yaml", "--output-type", "yaml", "--filename-override", path]
    argv += ["--encrypted-regex", "^(data|stringData)$", "/dev/stdin"]
    ended = run(argv, input=manifest, timeout_s=60, cwd=folder, check=False)
    if ended.status:
        reasons = ended.error_text.strip().splitlines()
        raise ended.failure(
            f"sops did not encrypt: {reasons[-1] if reasons else 'no reason given'}",
            path,
            "write a .sops.yaml beside the spec",
        )
    return ended.stdout


_KEYS = '{{range $key, $_ := .data}}{{$key}}{{"\\n"}}{{end}}'


def cluster_options(context: str | None, kubeconfig: str | None) -> list[str]:
    """The flags by which kubectl finds the cluster."""
    options = [f"--context={context}"] if context else []
    return [*options, f"--kubeconfig={Path(kubeconfig).expanduser()}"] if kubeconfig else options


def secret_keys(
    name: str, namespace: str | None, context: str | None = None, kubeconfig: str | None = None
) -> set[str] | None:
    """The keys of a Secret, None where there is none. Raises ToolMissing, and ToolFailed without a cluster."""
    options = [f"--namespace={namespace}"] if namespace else []
    options += cluster_options(context, kubeconfig)
    argv = ["kubectl", "get", "secret", *options, "--request-timeout=10s", "-o", f"go-template={_KEYS}", "--", name]
    ended = run(argv, timeout_s=30, check=False)
    if ended.status == 0:
        return set(ended.text.split())
    if "NotFound" in ended.error_text:
        return None
    raise ended.failure(f"cannot ask the cluster: {ended.error_text.strip()}", next="kubectl config current-context")
