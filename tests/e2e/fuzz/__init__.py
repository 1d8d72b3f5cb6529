"""Command lines that people might type, on damaged inputs and machines: exit status 70 is always our bug.

`python -m tests.e2e.fuzz SEED` shows one case again. Cases run in private mount and process namespaces, in which
only a temporary file system is writable: see `worker`.
"""
