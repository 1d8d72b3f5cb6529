"""Placement decides where each process runs, and proves that all of it fits. Pure: values in, values out.

The way of the data::

    text of a cluster file --inputs.read_pools--> Pools
    (Experiment, Pools) --assign.apply--> (Experiment, [Decision])      every `assign_to` resolved
    (Experiment, Pools) --plan.check--> Plan                            PROVEN, PACKABLE, UNKNOWN or NO per group

What other rooms call::

    placement.inputs.read_pools(text: str, name: str = "", *, variables: Mapping[str, object] = {}) -> Pools
    placement.assign.apply(experiment: Experiment, pools: Pools | None) -> tuple[Experiment, list[Decision]]
        before `chart.build`: fills requests, limits, GPUs, node selectors, tolerations, labels and annotations
    placement.plan.check(experiment: Experiment, pools: Pools) -> Plan
        `Plan.fits` is False when a group is a NO; `Plan.refusal() -> PlacementError | None`, to be raised by `package`
        and `publish` unless `--force-unschedulable`; `Plan.summary()` is the one line after "fit".

`symphony_charts.placement.pools.readers.read_pools_file(path)` reads a file from disk and gives the same `Pools`.
The model of a GKE node is in `allocatable`, the machine catalogue in `machines`, prices in `prices`.
"""
