"""System programs that the rig calls: found on PATH, or installed by apt if possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from symphony_charts.errors import ToolMissing

_PACKAGES = {"ip": "iproute2", "nft": "nftables", "nsenter": "util-linux", "setpriv": "util-linux"}


def missing_programs() -> dict[str, str]:
    """Return the programs that are not on PATH, each with its Debian package."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return {program: package for program, package in _PACKAGES.items() if not shutil.which(program, path=places)}


def ensure_programs() -> None:
    """Install missing programs with apt as root; elsewhere raise ToolMissing with the packages to install."""
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
        # A failed update does not matter if the package lists exist already.
        subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, timeout=600, check=False)
    if missing_programs():
        raise ToolMissing(f"apt-get could not install {', '.join(packages)}", next="apt-get update, then try again")
