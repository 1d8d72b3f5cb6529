"""A Kubernetes cluster of plain processes: a real control plane, nodes that are objects, and a process kubelet."""
