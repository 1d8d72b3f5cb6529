"""Git volumes of a run: every pod has a checkout of its own, as it has in a cluster, all of the same commit."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from symphony_charts.local.plan.records import Checkout
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import GitVolume
from symphony_charts.system.git.checkout import check_out_volume

__all__ = ["check_out_all", "with_commits"]


def check_out_all(checkouts: Sequence[Checkout]) -> dict[str, str]:
    """Fill the folders of `checkouts`, which are there and empty; the commit of each volume.

    Each repository is asked once: a branch that moves meanwhile is the same for all. Raises ToolFailed.
    """
    done: dict[tuple[str, str], tuple[Path, str]] = {}
    for wanted in checkouts:
        key, folder = (wanted.repository, wanted.revision), Path(wanted.folder)
        if key in done:
            shutil.copytree(done[key][0], folder, symlinks=True, dirs_exist_ok=True)
        else:
            done[key] = folder, check_out_volume(wanted.repository, wanted.revision, folder)
    return {checkout.volume: done[checkout.repository, checkout.revision][1] for checkout in checkouts}


def with_commits(experiment: Experiment, commits: Mapping[str, str]) -> Experiment:
    """Return `experiment` with its Git volumes at the commits that a run had."""
    volumes = {
        name: msgspec.structs.replace(volume, revision=commits[name])
        if isinstance(volume, GitVolume) and name in commits
        else volume
        for name, volume in experiment.volumes.items()
    }
    return msgspec.structs.replace(experiment, volumes=volumes)
