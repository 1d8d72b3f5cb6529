"""The topology of Surreal, a distributed reinforcement learning framework: 11 services, 4 pods, one of 6 containers.

The programs are stand-ins. With the real ones, give each process its `container_image` and its one string of `args`
and leave `command` to the image.

    symph package examples/surreal/experiment.py
"""

from symphony_charts.engine import Cluster

AGENTS, EVALS = 2, 1

SERVICES = {
    "learner": {"binds": ["parameter-publish", "prefetch-queue"], "connects": ["sampler-frontend"]},
    "replay": {"binds": ["collector-frontend", "sampler-frontend", "collector-backend", "sampler-backend"]},
    "ps": {"binds": ["ps-frontend", "ps-backend"], "connects": ["parameter-publish"]},
    "tensorboard": {"exposes": {"tensorboard": 6006}},
    "tensorplex": {"binds": ["tensorplex"]},
    "loggerplex": {"binds": ["loggerplex"]},
}
LOGGERS = ["tensorplex", "loggerplex"]


def stand_in(binds=(), connects=(), steps=0):
    """Container arguments of one stand-in program."""
    return [
        "$(SYMPH_CONFIG_DIR)/stand_in.py",
        f"--binds={','.join(binds)}",
        f"--connects={','.join(connects)}",
        f"--steps={steps}",
    ]


def experiment():
    """What `symph` packages or runs."""
    cluster = Cluster.new("kube")
    exp = cluster.new_experiment("surreal", image="python:3.12-slim")
    exp.add_config("stand_in.py", file="stand_in.py")
    nonagent = exp.new_process_group("nonagent")
    for role, network in SERVICES.items():
        binds, exposes = network.get("binds", []), network.get("exposes", {})
        connects = network.get("connects", []) + ([] if role == "tensorboard" or role in LOGGERS else LOGGERS)
        process = nonagent.new_process(
            role,
            command="python",
            args=stand_in([*binds, *exposes], connects, steps=10 if role == "learner" else 0),
            lifecycle="finite" if role == "learner" else "service",
        )
        process.binds(binds)
        process.connects(connects)
        process.exposes(exposes)
    for name in [f"agent-{i}" for i in range(AGENTS)] + [f"eval-{i}" for i in range(EVALS)]:
        connects = ["ps-frontend", "collector-frontend", *LOGGERS]
        process = exp.new_process(name, command="python", args=stand_in(connects=connects), lifecycle="service")
        process.connects(connects)
    return exp
