"""Command lines that people might type, on inputs and machines that are damaged: exit 70 is a fault of ours, always.

`python -m tests.e2e.fuzz SEED` shows one case again. Cases run in private mount and process namespaces, in which
nothing but a temporary file system can be written: see `worker`.
"""
