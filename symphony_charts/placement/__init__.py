"""Decide where each process runs, and prove that all of it fits. Pure: values in, values out.

Data flow::

    text of a cluster file --pools.readers.read_pools--> Pools
    (Experiment, Pools) --assign.apply--> (Experiment, [Decision])      every `assign_to` resolved
    (objects, Pools) --fit.demand.demands_of--> [Demand]                pods of the rendered chart
    ([Demand], Pools) --plan.plan_demands--> Plan                       PROVEN, PACKABLE, UNKNOWN or NO per group

`assign.apply` runs before the chart is built: it fills requests, limits, GPUs, node selectors, tolerations, labels and
annotations. `package` and `publish` raise `Plan.refusal` unless `--force-unschedulable`; `Plan.summary` is the line
after "fit". `pools.readers.read_pools_file(path)` reads a file from disk and returns the same `Pools`.

The model of a GKE node is in `allocatable`, the machine catalogue in `catalog`, prices in `prices`.
"""
