"""`symph push`: put charts and images into registries."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from symphony_charts.chart import folder as chart_folder
from symphony_charts.cli import options, output
from symphony_charts.errors import SpecError, ToolFailed, UsageError
from symphony_charts.formats import names
from symphony_charts.oci import client, push, transport, workspace
from symphony_charts.oci import images as oci_images
from symphony_charts.secrets import files as secrets_files
from symphony_charts.secrets import leaks
from symphony_charts.settings import project
from symphony_charts.spec import files as spec_files
from symphony_charts.system import subprocess_runner


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "charts", metavar="CHART", nargs="+", help="a chart's archive or folder; `symph package` makes both"
    )
    parser.add_argument(
        "target", metavar="TARGET", help="oci://HOST/PATH, or a folder that holds (or gets) an index.yaml"
    )
    parser.add_argument(
        "--url", default="", help="where the folder is served (default: addresses relative to the index)"
    )
    parser.add_argument("--prov", metavar="KEY", help="make a .prov with this key of gpg; helm verifies it")
    options.add_registry(parser)
    options.add_output(parser, ("table", "json", "yaml", "name"))
    options.add_dry_run(parser)
    options.add_examples(
        parser,
        "symph push dist/rl-0.2.0.tgz oci://registry.example.org/charts",
        "symph push dist/rl-0.2.0.tgz oci://registry.lab:5000/charts --plain-http",
        "symph push dist/rl-0.2.0.tgz oci://registry.lab/charts --ca-file lab.pem --username ci --password-stdin <key",
        "symph push dist/*.tgz ./site --url https://charts.example.org",
        "symph push dist/rl-0.2.0.tgz oci://localhost:5000/charts --prov ann@example.org",
    )


def access_of(args: argparse.Namespace, *, host: str) -> transport.Access:
    """Return the access to the registry at `host` from the flags. Raises UsageError for contradicting flags."""
    wants_tls = args.ca_file or args.cert_file or args.insecure_skip_tls_verify
    if args.plain_http and wants_tls:
        raise UsageError("--plain-http is without TLS, of which other flags speak", next="leave one of them out")
    if args.key_file and not args.cert_file:
        raise UsageError("--key-file is the key of --cert-file", next="give both")
    access = transport.Access(
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


def _login(args: argparse.Namespace, host: str) -> transport.Login | None:
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
    return transport.Login(user=args.username, password=password)


def run(args: argparse.Namespace) -> int:
    if fault := names.address_fault(args.url, "--url"):
        raise SpecError([fault])
    charts = [chart_folder.read_chart(Path(path).expanduser()) for path in args.charts]
    guard = leaks.Guard({}, allowed=project.find_settings(Path.cwd()).allow_leaks)
    for chart in charts:
        guard.refuse({f"{chart.file_name}:{path}": content for path, content in chart.files.items()})
    if args.prov and not args.dry_run:
        texts = [client.provenance_text(chart.metadata, chart.file_name, chart.archive) for chart in charts]
        signed = [_clear_sign(text, args.prov) for text in texts]
        charts = [replace(chart, provenance=text) for chart, text in zip(charts, signed, strict=True)]
    items = [
        {
            "name": chart.name,
            "version": chart.version,
            "place": pushed.place,
            "digest": pushed.digest,
            "state": "would be pushed" if args.dry_run else "pushed" if pushed.is_new else "there already",
            "bytes": len(chart.archive),
        }
        for chart, pushed in zip(charts, _pushed(args, charts), strict=True)
    ]
    columns = output.columns("name", "version", "place", "state", "digest")
    output.print_items(args, "Pushed", items, columns, name="place")
    return 0


def _pushed(args: argparse.Namespace, charts: list[chart_folder.PackedChart]) -> list[push.Pushed]:
    with output.progress("pushing", len(charts)) as advance:
        if args.target.startswith("oci://"):
            target = client.parse_reference(args.target)
            access = access_of(args, host=target.host)
            return push.push_charts(charts, target, access=access, dry_run=args.dry_run, advance=advance)
        folder, pushed = Path(args.target).expanduser(), []
        for chart in charts:
            pushed.append(push.add_to_folder(chart, folder, args.url, dry_run=args.dry_run))
            advance(1)
        return pushed


def push_workspace(args: argparse.Namespace, specs: Sequence[str]) -> oci_images.Images:
    """Add the workspace to the images of all `specs`, push them, and return them.

    With `--dry-run` print the images to stderr instead of pushing. Raises Conflict for a secret in a file.
    """
    if args.workspace is None or args.image_repo is None:
        raise UsageError("--workspace and --image-repo go together", "", "give both: what to add, and where to push it")

    access = access_of(args, host=client.parse_reference(args.image_repo).host)
    folder = Path(args.workspace).expanduser()
    read = [spec_files.read(path, args.spec_set) for path in specs]
    bases = list(dict.fromkeys(image for spec in read for image in oci_images.images_of(spec.experiment)))
    entries = workspace.read_workspace(folder)
    secrets_files.guard_of(read, project.find_settings(folder).allow_leaks).refuse(
        {str(folder / entry.path): entry.content for entry in entries}
    )
    images = oci_images.Images()
    files = [{"path": entry.path, "bytes": len(entry.content)} for entry in entries if not entry.is_folder]
    for entry in entries if args.dry_run else ():
        if not entry.is_folder:
            output.note(f"  {len(entry.content):>10}  {entry.path}{f' -> {entry.target}' if entry.target else ''}")
    total = sum(len(entry.content) for entry in entries)
    output.note(f"workspace {folder}   {len(files)} files, {total} bytes")
    with output.progress("images", len(bases)) as advance:
        for base in bases:
            patched = workspace.patch_image(
                base, entries, args.image_repo, platforms=args.platform, access=access, dry_run=args.dry_run
            )
            state = "there already" if not patched.is_new else "would be pushed" if args.dry_run else "pushed"
            platforms = ", ".join(patched.platforms)
            layer = f"layer {patched.layer_digest[:19]}… of {patched.layer_bytes} bytes"
            output.note(f"image {patched.image}   {state}   tag {patched.tag}   {base} for {platforms}   {layer}")
            images.by_base[base] = patched.image
            images.records.append(
                {
                    "base": base,
                    "image": patched.image,
                    "tag": patched.tag,
                    "state": state,
                    "platforms": list(patched.platforms),
                    "layer": patched.layer_digest,
                    "bytes": patched.layer_bytes,
                    "files": files,
                }
            )
            advance(1)
    return images


def _clear_sign(text: str, key: str) -> bytes:
    """Return `text` with an OpenPGP signature by `key` (an id, fingerprint or mail address).

    Raises SpecError for a key that looks like an option, ToolMissing without gpg, ToolFailed if signing fails.
    """
    if not key or key.startswith("-"):
        raise SpecError.one(f'"{key}" names no key', "sign", "gpg --list-secret-keys shows yours")
    argv = ["gpg", "--batch", "--yes", "--local-user", key, "--digest-algo", "SHA512", "--armor", "--clearsign"]
    try:
        return subprocess_runner.run(argv, input=text.encode(), timeout_s=120).stdout
    except ToolFailed as error:
        reasons = error.stderr.strip().splitlines()
        error.what = f"gpg did not sign: {reasons[-1] if reasons else 'no reason given'}"
        error.next = "gpg --list-secret-keys shows your keys; one with a passphrase needs its agent"
        raise
