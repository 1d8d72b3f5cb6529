"""Programs of the system that the rig calls: found on PATH, or installed by apt where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from symphony_charts.errors import ToolMissing

_PACKAGES = {"ip": "iproute2", "nft": "nftables", "nsenter": "util-linux", "setpriv": "util-linux"}


def missing_programs() -> dict[str, str]:
    """The programs that are not on PATH, each with the Debian package that brings it."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return {program: package for program, package in _PACKAGES.items() if not shutil.which(program, path=places)}


def ensure_programs() -> None:
    """Install what is missing, as root and with apt; ToolMissing says what to install by hand anywhere else."""
    missing = missing_programs()
    if not missing:
        return
    packages = sorted(set(missing.values()))
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ToolMissing(f"the process kubelet needs {', '.join(missing)}", next=f"install {' '.join(packages)}")
    print(f"apt-get install {' '.join(packages)}", file=sys.stderr, flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for argv in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        # An update that fails is no loss where the package lists are there already.
        subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, timeout=600, check=False)
    if missing_programs():
        raise ToolMissing(f"apt-get could not install {', '.join(packages)}", next="apt-get update, then try again")
