"""How verbs reach a registry: what the flags say, with the password from stdin or a prompt, never from an argument."""

from __future__ import annotations

import argparse
import getpass
import sys

from symphony_charts.cli import output
from symphony_charts.errors import UsageError
from symphony_charts.oci.logins import Login
from symphony_charts.oci.transport import Access

__all__ = ["access_of"]


def access_of(args: argparse.Namespace, *, host: str) -> Access:
    """What the flags say of the registry at `host`. Raises UsageError for flags that contradict each other."""
    wants_tls = args.ca_file or args.cert_file or args.insecure_skip_tls_verify
    if args.plain_http and wants_tls:
        raise UsageError("--plain-http is without TLS, of which other flags speak", next="leave one of them out")
    if args.key_file and not args.cert_file:
        raise UsageError("--key-file is the key of --cert-file", next="give both")
    access = Access(
        plain_http=args.plain_http,
        ca_file=args.ca_file,
        cert_file=args.cert_file,
        key_file=args.key_file,
        insecure_skip_tls_verify=args.insecure_skip_tls_verify,
        login=_login(args, host),
    )
    if wants_tls:
        access.tls()
    return access


def _login(args: argparse.Namespace, host: str) -> Login | None:
    if not args.username:
        if args.password_stdin:
            raise UsageError("whose password is it?", next="--username USER")
        return None
    if args.password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif output.can_ask():
        password = getpass.getpass(f"password of {args.username} at {host}: ")
    else:
        raise UsageError(f"what is the password of {args.username}?", next="--password-stdin")
    return Login(user=args.username, password=password)
