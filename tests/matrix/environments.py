"""Environments with only the wheel: lowest or newest dependencies, on the oldest or the newest Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import parse_email
from packaging.requirements import Requirement

_OLDEST, _NEWEST = (3, 10), (3, 19)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One environment: the interpreter, an end of the dependencies (``lowest`` or ``newest``), and the extras."""

    python: str
    end: str
    extras: str = ""

    @property
    def title(self) -> str:
        """A title such as ``3.10, lowest, [all]``."""
        return f"{version_of(self.python)}, {self.end}, {f'[{self.extras}]' if self.extras else 'no extras'}"


def find_pythons() -> list[str]:
    """Return this machine's supported interpreters, one per minor version, oldest first."""
    found = {}
    for minor in range(_OLDEST[1], _NEWEST[1] + 1):
        path = _python(f"3.{minor}")
        if path is not None:
            found[minor] = path
    return [found[minor] for minor in sorted(found)] or [sys.executable]


def _python(version: str) -> str | None:
    """Return a runnable interpreter: of pyenv, else on PATH (pyenv's shims there may lead nowhere)."""
    root = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
    places = [str(path / "bin" / "python") for path in sorted(root.glob(f"{version}.*"))]
    places += [path for path in [shutil.which(f"python{version}")] if path]
    for place in places:
        if _works(place):
            return place
    return None


def _works(python: str) -> bool:
    argv = [python, "-c", "import ssl, venv"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def version_of(python: str) -> str:
    """Return the version of an interpreter, such as ``3.11``."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def build(root: Path, dest: Path) -> Path:
    """Build the sdist, and the wheel from it; return the wheel.

    Raises AssertionError if the sdist builds another wheel than the checkout, or either holds bytecode.
    """
    for kind, source, folder in (("--sdist", root, dest), ("--wheel", root, dest / "direct")):
        _run([sys.executable, "-m", "build", kind, "--outdir", str(folder), str(source)])
    sdist = next(dest.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        _refuse_bytecode(sdist, archive.getnames())
        archive.extractall(dest / "unpacked", filter="data")
    _run([sys.executable, "-m", "build", "--wheel", "--outdir", str(dest), str(next((dest / "unpacked").iterdir()))])
    wheel, direct = next(dest.glob("*.whl")), next((dest / "direct").glob("*.whl"))
    members = [_members(path) for path in (wheel, direct)]
    assert members[0] == members[1], f"the sdist builds another wheel: {members[0].keys() ^ members[1].keys()}"
    _refuse_bytecode(wheel, list(members[0]))
    return wheel


def _members(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {item.filename: item.CRC for item in archive.infolist()}


def _refuse_bytecode(path: Path, names: list[str]) -> None:
    found = [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert not found, f"{path.name} holds bytecode: {found[0]}"


def metadata_of(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        raw, _ = parse_email(archive.read(name))
    return [Requirement(text) for text in raw.get("requires_dist", [])]


def lowest_direct(requirements: list[Requirement]) -> list[str]:
    """Return ``name==bound`` for each dependency's lower bound. Raises AssertionError for one without a bound."""
    pins = []
    for wanted in requirements:
        if wanted.name == "symphony-charts":
            continue
        bounds = [spec.version for spec in wanted.specifier if spec.operator == ">="]
        assert bounds, f"{wanted} has no lower bound"
        pins.append(f"{wanted.name}=={bounds[0]}")
    return pins


def install(leg: Leg, wheel: Path, folder: Path) -> Path:
    """Make the environment of a leg at `folder`; return its bin folder. Raises RuntimeError with uv's output."""
    uv = str(Path(sys.executable).with_name("uv"))
    _run([uv, "venv", "--quiet", "--python", leg.python, str(folder)])
    wanted = f"symphony-charts{f'[{leg.extras}]' if leg.extras else ''} @ {wheel.as_uri()}"
    argv = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder / "bin" / "python"), wanted]
    if leg.end == "lowest":
        pins = folder / "pins.txt"
        pins.write_text("\n".join(lowest_direct(metadata_of(wheel))) + "\n")
        argv += ["--constraints", str(pins)]
    _run(argv)
    return folder / "bin"


def _run(argv: list[str]) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{ended.stdout[-2000:]}{ended.stderr[-3000:]}")
