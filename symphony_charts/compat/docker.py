"""Symphony's `symphony.docker` runs an experiment as a compose project, whose processes find each other."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symphony_charts.clusters.base import Cluster
from symphony_charts.compat.errors import symphonys
from symphony_charts.compat.keywords import CLUSTER, speaks
from symphony_charts.compat.spec import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.environment.variables import Address, Fact, interpret, variables_of
from symphony_charts.errors import Conflict, NotFound, Problem, SpecError
from symphony_charts.formats.yaml_text import dump
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import ProcessRef, processes_of
from symphony_charts.spec.services import allocate
from symphony_charts.spec.shells import shell_argv
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR
from symphony_charts.system.subprocess_runner import run

__all__ = ["DockerCluster", "DockerExperimentSpec", "DockerProcessGroupSpec", "DockerProcessSpec"]


class DockerProcessSpec(ProcessSpec):
    """A service of the project."""

    backend = "docker"

    def __init__(self, name: str, container_image: str | None = None, **fields: Any) -> None:
        super().__init__(name, container_image=container_image, **fields)


@speaks({"__init__": {"group_name": "name"}})
class DockerProcessGroupSpec(ProcessGroupSpec):
    """A group; it says only which services belong together."""

    backend = "docker"
    process_class = DockerProcessSpec

    def __init__(self, name: str, **fields: Any) -> None:
        super().__init__(name, **fields)


class DockerExperimentSpec(ExperimentSpec):
    """An experiment that becomes a compose project."""

    backend = "docker"
    process_class = DockerProcessSpec
    group_class = DockerProcessGroupSpec

    def yml(self) -> str:
        """The text of the compose file."""
        return dump(compose_of(self.finish()))


# Between a group's name and a process's, in the names of compose services.
_BETWEEN = "--"
# What a container of a project answers; a project has no runs.
_FACTS: dict[Fact, str | None] = {
    Fact.ADDRESS: "0.0.0.0",  # noqa: S104 - inside its own container
    Fact.INDEX: "0",
    Fact.REPLICAS: "1",
    Fact.RUN: None,
    Fact.ATTEMPT: None,
    Fact.CONFIG_DIR: CONFIG_DIR,
    Fact.SECRETS_DIR: SECRETS_DIR,
}
_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]*")
_UP_S = 900.0
# The verbs whose experiment Symphony called `exp_name` on this backend alone.
_BY_EXPERIMENT = ("delete", "describe_experiment", "describe_process", "describe_process_group")


@speaks(CLUSTER, {name: {"exp_name": "experiment_name"} for name in _BY_EXPERIMENT})
class DockerBackend(Cluster):
    """This machine's docker: a compose project for each experiment, by ``docker compose``."""

    def new_experiment(self, name: str, **fields: Any) -> ExperimentSpec:
        """A new experiment."""
        return DockerExperimentSpec(name, **fields)

    def launch(  # type: ignore[override]  # in Symphony's order
        self, exp: Any, dry_run: bool = False, force: bool = False
    ) -> object:
        """Start an experiment; with `dry_run` print its compose file."""
        return super().launch(exp, force=force, dry_run=dry_run)

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Bring the project up; with `dry_run` print the compose file. Raises ResourceExistsError where it is there."""
        text = dump(compose_of(experiment, pins))
        if dry_run:
            sys.stdout.write(text)
            return None
        with symphonys():
            if experiment.name in self.list_experiments():
                if not force:
                    raise Conflict(f'the project "{experiment.name}" is there already', next="launch with force=True")
                self.delete(experiment.name)
        run([*_compose(experiment.name), "-f", "-", "up", "-d"], input=text, timeout_s=_UP_S, cwd=folder)
        return experiment.name

    def list_experiments(self) -> list[str]:
        """The compose projects."""
        projects = json.loads(run(["docker", "compose", "ls", "--all", "--format", "json"]).text or "[]")
        return sorted(str(project["Name"]) for project in projects)

    def delete(self, experiment_name: str, timeout: float = 10) -> None:
        """Remove a project's containers and networks; raises ValueError where there is none."""
        with symphonys():
            if experiment_name not in self.list_experiments():
                raise NotFound(f'there is no project "{experiment_name}"')
        run([*_compose(experiment_name), "down", "--timeout", f"{timeout:.0f}"], timeout_s=120 + timeout)


DockerCluster = DockerBackend


def compose_of(experiment: Experiment, pins: Mapping[str, int] | None = None) -> dict[str, object]:
    """The compose file of an experiment. Raises SpecError with everything that a compose project cannot have."""
    finished = finish(experiment, for_cluster=True)
    problems = [problem for ref, process in processes_of(finished) for problem in _unknown(ref, process)]
    if not _PROJECT.fullmatch(finished.name):
        problems.append(Problem(what=f'"{finished.name}" cannot be a project', path="name"))
    if problems:
        raise SpecError(problems)
    services = allocate(finished, pins)
    addresses = {
        service.name: Address(host=_name(service.listener), hosts=(_name(service.listener),), port=service.port)
        for service in services
    }
    compose: dict[str, object] = {}
    for ref, process in processes_of(finished):
        ports = [
            f"{service.port}:{service.port}" for service in services if service.is_exposed and service.listener == ref
        ]
        environment = {
            **interpret(variables_of(finished.name, ref, services, connects=process.connects), _FACTS, addresses),
            **{name: str(value) for name, value in process.env.items()},
        }
        # In a compose file `$` begins a variable of compose's own.
        compose[_name(ref)] = {
            "image": process.image or finished.image,
            **_words(process),
            "environment": {name: str(value).replace("$", "$$") for name, value in environment.items()},
            **({"ports": ports} if ports else {}),
        }
    return {"name": finished.name, "services": compose}


def _words(process: Process) -> dict[str, object]:
    if process.cmds:
        return {"entrypoint": shell_argv(process.shell), "command": ["\n".join(process.cmds).replace("$", "$$")]}
    words: dict[str, object] = {}
    if process.command:
        words["entrypoint"] = [word.replace("$", "$$") for word in process.command]
    if process.args:
        words["command"] = [arg.replace("$", "$$") for arg in process.args]
    return words


def _unknown(ref: ProcessRef, process: Process) -> list[Problem]:
    """What this backend does not carry over: better refused than silently left out."""
    held = {"mounts": process.mounts, "gpus": process.gpus, "replicas": (process.replicas or 1) > 1}
    next_step = "use `symph up`, or Kubernetes"
    return [
        Problem(what=f"the docker backend knows no {field}", path=f"{ref}.{field}", next=next_step)
        for field, value in held.items()
        if value
    ]


def _name(ref: ProcessRef) -> str:
    return ref.process if ref.pod == ref.process else f"{ref.pod}{_BETWEEN}{ref.process}"


def _compose(project: str) -> list[str]:
    return ["docker", "compose", "-p", project]
