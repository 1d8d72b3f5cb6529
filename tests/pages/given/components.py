"""A TorchX component, as torchx.md names it."""

import torchx.specs as specs


def trainer(nodes: int = 1) -> specs.AppDef:
    """Train on some nodes.

    Args:
        nodes: how many
    """
    role = specs.Role(name="trainer", image="python:3.12-slim", entrypoint="python", args=["-V"], num_replicas=nodes)
    return specs.AppDef(name="trainer", roles=[role])
