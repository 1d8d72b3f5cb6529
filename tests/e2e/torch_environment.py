"""A real torch in its own folder: Debian's packages, unpacked and never installed, so that nothing else changes.

Once unpacked it stays in the user's cache, beside the tests' other builds; that takes 630 MB, a download
of 100 MB, and half a minute.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.e2e.symphony_original import kept

_PYTHON = "/usr/bin/python3"
# torch 1.13 looks for combined flags by iterating over an enumeration, which Python 3.11 no longer lists.
_FLAGS = Path("usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py")
_TORCHRUN = """#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
lib=$root/usr/lib/$(basename "$(dirname "$(echo "$root"/usr/lib/*/libtorch.so*)")")
LD_LIBRARY_PATH=$root/lib/$(basename "$lib"):$root/usr/lib:$lib:$lib/blas:$lib/lapack
PYTHONPATH=$root/usr/lib/python3/dist-packages
export LD_LIBRARY_PATH PYTHONPATH OMP_NUM_THREADS=1
exec /usr/bin/python3 -m torch.distributed.run "$@"
"""


def torch_folder() -> Path | None:
    """Return the folder whose ``bin`` holds `torchrun`; None if Debian's packages are out of reach."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None or not Path(_PYTHON).exists():
        return None
    packages = _packages()
    if not packages:
        return None
    version = next(line.split("_")[1] for line in packages if line.startswith("python3-torch_"))

    def unpack(place: Path) -> bool:
        _unpack(place, [line.split("_")[0] for line in packages])
        return True

    return kept(f"torch-{version.replace('%3a', ':')}", unpack)


def _packages() -> list[str]:
    """Return the package files that an installation of torch would add to this machine."""
    argv = ["apt-get", "install", "--no-install-recommends", "--print-uris", "-qq", "python3-torch"]
    for attempt in range(2):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        files = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("'")]
        if files or attempt:
            return files
        subprocess.run(["apt-get", "update", "-qq"], capture_output=True, timeout=300, check=False)
    return []


def _unpack(place: Path, names: list[str]) -> None:
    """Unpack these packages under `place`, with a `torchrun` that finds them."""
    root = place / "root"
    root.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        subprocess.run(["apt-get", "download", "-qq", *names], cwd=folder, capture_output=True, timeout=600, check=True)
        for package in sorted(Path(folder).glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package.name, str(root)], cwd=folder, timeout=300, check=True)
    flags = root / _FLAGS
    text = flags.read_text()
    assert text.count("for s in Std:") == 1
    flags.write_text(text.replace("for s in Std:", "for s in (Std.NONE, Std.OUT, Std.ERR, Std.ALL):"))
    torchrun = place / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text(_TORCHRUN)
    torchrun.chmod(0o755)
