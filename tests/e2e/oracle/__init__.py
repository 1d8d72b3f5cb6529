"""The planner against the real kube-scheduler: random clusters and experiments, the same for both."""
