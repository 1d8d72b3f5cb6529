"""The options of verbs that talk to a registry, called as helm calls them."""

from __future__ import annotations

import argparse

__all__ = ["add_registry"]


def add_registry(parser: argparse.ArgumentParser) -> None:
    """Add `--plain-http`, `--ca-file` and their like, and who asks."""
    group = parser.add_argument_group("registry")
    group.add_argument(
        "--plain-http", action="store_true", help="speak HTTP without TLS (default: to this machine alone)"
    )
    group.add_argument("--ca-file", metavar="FILE", default="", help="trust the authorities in this file alone")
    group.add_argument("--cert-file", metavar="FILE", default="", help="show this certificate to the registry")
    group.add_argument("--key-file", metavar="FILE", default="", help="the key of --cert-file")
    group.add_argument("--insecure-skip-tls-verify", action="store_true", help="take any certificate of the registry")
    group.add_argument(
        "--username", metavar="USER", default="", help="who asks (default: what helm or docker are logged in as)"
    )
    group.add_argument("--password-stdin", action="store_true", help="read the password of --username from stdin")
