"""A launcher in the manner of Surreal's, with Symphony's API: verbs, settings, scheduling, topology, images.

python -m symphony_charts.compat examples/symphony/surreal_kube.py SETTINGS.json create first --dry-run
"""

import json
import sys
from pathlib import Path

from symphony.addons import DockerBuilder, clean_images
from symphony.commandline import SymphonyParser
from symphony.engine import Cluster, SymphonyConfig
from symphony.kube import GKEDispatcher

LOGGERS = ["tensorplex", "loggerplex"]


class SurrealParser(SymphonyParser):
    def create_cluster(self):
        return Cluster.new("kube")

    def setup(self):
        super().setup()
        self.settings = json.loads(Path(sys.argv[1]).read_text())
        del sys.argv[1]
        SymphonyConfig().set_username(self.settings["username"])
        SymphonyConfig().set_experiment_folder(self.settings["kube_metadata_folder"])
        parser = self.add_subparser("create", aliases=["c"])
        self._add_experiment_name(parser)
        parser.add_argument("--num-agents", type=int, default=2)
        parser.add_argument("--force", action="store_true")
        self._add_dry_run(parser)
        parser = self.add_subparser("tensorboard", aliases=["tb"])
        self._add_experiment_name(parser, required=False, positional=True)
        parser.set_defaults(service_name="tensorboard", url_only=True)
        self.add_subparser("list", aliases=["lst"])
        self.add_subparser("build").add_argument("tag")
        self.add_subparser("clean").add_argument("image")

    def _add_dry_run(self, parser):
        parser.add_argument("-dr", "--dry-run", action="store_true")

    def action_list(self, args):  # noqa: ARG002 - every action takes them
        """List experiments through the cluster."""
        print(self.cluster.list_experiments())

    def action_tensorboard(self, args):
        """Open tensorboard."""
        return self.action_visit(args)

    def action_build(self, args):
        """Build, tag and push the image."""
        builder = DockerBuilder.from_dict(self.settings["docker_build_settings"])
        builder.build()
        builder.tag(self.settings["image"], args.tag)
        builder.push(self.settings["image"], args.tag)

    def action_clean(self, args):
        """Remove images."""
        clean_images([f"{args.image}:*"], force=True, force_prune_containers=True, force_prune_images=True)

    def action_create(self, args):
        """Create an experiment."""
        print("remainder", args.remainder, args.has_remainder)
        exp = self.build(args.experiment_name, args.num_agents)
        self.cluster.launch(exp, force=args.force, dry_run=args.dry_run)
        if args.dry_run:
            exp.dump_file(self.settings["dump"])

    def build(self, name, num_agents):
        settings = self.settings
        exp = self.cluster.new_experiment(name, secrets=settings["mount_secrets"])
        image = f"surreal:{exp.name}"
        nonagent = exp.new_process_group("nonagent")
        roles = ["learner", "replay", "ps", "tensorboard", "tensorplex", "loggerplex"]
        made = {
            role: nonagent.new_process(role, container_image=image, args=[f"surreal {role} --results /r && true"])
            for role in roles
        }
        made["learner"].set_env("DISABLE_MUJOCO_RENDERING", "1")
        nonagent.image_pull_policy("Always")
        agents = []
        for agent in [f"agent-{i}" for i in range(num_agents)] + ["eval-0"]:
            process = exp.new_process(agent, container_image=image, args=[f"surreal {agent}"])
            process.image_pull_policy("Always")
            agents.append(process)
        if settings["nfs"]:
            for process in exp.list_all_processes():
                process.mount_nfs(server=settings["nfs"], path="/exports", mount_path="/mnt")
        dispatcher = GKEDispatcher(settings["cluster_definition"])
        dispatcher.assign_to(made["learner"], process_group=nonagent, **settings["scheduling"]["nonagent"])
        for process in agents:
            dispatcher.assign_to(process, **settings["scheduling"]["agent"])
        self.network(made, agents)
        return exp

    def network(self, made, agents):
        for process in agents:
            process.connects("ps-frontend")
            process.connects("collector-frontend")
        made["ps"].binds("ps-frontend")
        made["ps"].binds("ps-backend")
        made["ps"].connects("parameter-publish")
        for name in ("collector-frontend", "sampler-frontend", "collector-backend", "sampler-backend"):
            made["replay"].binds(name)
        made["learner"].connects("sampler-frontend")
        made["learner"].binds("parameter-publish")
        made["learner"].binds("prefetch-queue")
        for name in LOGGERS:
            made[name].binds(name)
        for process in [*agents, *(made[role] for role in ("learner", "ps", "replay"))]:
            process.connects(LOGGERS)
        made["tensorboard"].exposes({"tensorboard": 6006})


if __name__ == "__main__":
    SurrealParser().main()
