"""The images of a spec, and those that replace them. Without a registry client, which takes 20 ms to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import processes_of


@dataclass(frozen=True, slots=True)
class Images:
    """The new images: pinned ones `by_base`, and a record of each for `-o json`."""

    by_base: dict[str, str] = field(default_factory=dict)
    records: list[dict[str, object]] = field(default_factory=list)


def images_of(experiment: Experiment) -> list[str]:
    """Return the images of processes and steps, without duplicates, in order."""
    members: list[Process | Step] = [process for _, process in processes_of(experiment)]
    members += experiment.prepare.values()
    return list(dict.fromkeys(image for member in members if (image := member.image or experiment.image)))


def with_images(spec: SpecFile, images: Mapping[str, str]) -> SpecFile:
    """Return `spec` with other images; `images` maps old names to new ones."""
    old = spec.experiment

    def processes(members: Mapping[str, Process]) -> dict[str, Process]:
        return {name: msgspec.structs.replace(member, image=_of(member, images)) for name, member in members.items()}

    groups = {
        name: msgspec.structs.replace(group, processes=processes(group.processes)) for name, group in old.groups.items()
    }
    steps = {name: msgspec.structs.replace(step, image=_of(step, images)) for name, step in old.prepare.items()}
    image = images.get(old.image, old.image) if old.image else old.image
    experiment = msgspec.structs.replace(
        old, image=image, groups=groups, processes=processes(old.processes), prepare=steps
    )
    return replace(spec, experiment=experiment)


def _of(member: Process | Step, images: Mapping[str, str]) -> str | None:
    return images.get(member.image, member.image) if member.image else None
