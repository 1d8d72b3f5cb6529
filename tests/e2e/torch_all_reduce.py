"""A program for `torchrun`: every rank prints the sum over all ranks."""

from __future__ import annotations

from importlib import import_module

torch = import_module("torch")
distributed = import_module("torch.distributed")

distributed.init_process_group("gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
number = torch.ones(1) * (rank + 1)
distributed.all_reduce(number)
print(f"rank {rank} of {world}: {int(number.item())}", flush=True)  # noqa: T201 - what it is for
distributed.destroy_process_group()
