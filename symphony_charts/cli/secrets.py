"""`symph secrets`: the Secret that an experiment's files become."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from symphony_charts.cli import common, output

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.adapters.specfile import SpecFile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph secrets`."""
    parser.add_argument("action", choices=("push",), help="push: put the files of `secrets` into the cluster's Secret")
    common.add_specs(parser, many=False)
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    parser.add_argument("-n", "--namespace", default=None, help="the namespace (default: the experiment's)")
    parser.add_argument("--name", default=None, help="the Secret's name (default: <release>-secrets)")
    common.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    parser.add_argument(
        "--hide-values", action="store_true", help="with --dry-run: print sizes instead of the contents"
    )
    common.add_dry_run(parser, "print the Secret and push nothing")
    common.add_examples(
        parser, "symph secrets push experiment.yaml --dry-run", "symph secrets push experiment.yaml -n rl"
    )


def run(args: argparse.Namespace) -> int:
    """Print the Secret, or push it by server-side apply."""
    from symphony_charts.adapters import specfile
    from symphony_charts.chart.assemble import Release
    from symphony_charts.chart.names import fullname, join
    from symphony_charts.errors import SpecError
    from symphony_charts.secrets.existing import secret_object

    spec = specfile.read(args.spec)
    if not spec.experiment.secrets:
        raise SpecError.one("the experiment has no `secrets`", "secrets", "there is nothing to push", str(spec.path))
    release = Release(name=args.release or spec.experiment.name, chart_name=spec.experiment.name)
    name = args.name or join(fullname({}, release), "secrets", 63)
    namespace = args.namespace or spec.experiment.namespace
    made = secret_object(spec.experiment, _contents(spec), name, namespace)
    if args.dry_run:
        _print(args, made)
        return 0
    _push(made)
    output.line(f"secret/{name} pushed{f' to {namespace}' if namespace else ''}")
    return 0


def _contents(spec: SpecFile) -> dict[str, bytes]:
    """The files' bytes by key; all that cannot be read are reported at once."""
    from symphony_charts.errors import Problem, SpecError
    from symphony_charts.secrets.existing import key_of

    contents: dict[str, bytes] = {}
    problems = []
    for index, file in enumerate(spec.experiment.secrets):
        path = spec.path.parent / Path(file.file).expanduser()
        try:
            contents[key_of(file)] = path.read_bytes()
        except OSError as error:
            what = f"cannot read the secret file {path}: {error.strerror}"
            problems.append(Problem(what=what, path=f"secrets[{index}].file"))
    if problems:
        raise SpecError(problems, at=str(spec.path))
    return contents


def _print(args: argparse.Namespace, made: dict[str, object]) -> None:
    import base64
    import json

    from symphony_charts.spec.yaml_text import dump

    data = made["data"]
    if args.hide_values and isinstance(data, dict):
        made = {**made, "data": {key: f"<{len(base64.b64decode(value))} bytes>" for key, value in data.items()}}
    if args.output == "name":
        metadata = made["metadata"]
        output.line(f"secret/{metadata['name'] if isinstance(metadata, dict) else ''}")
    else:
        sys.stdout.write(json.dumps(made, indent=2) + "\n" if args.output == "json" else dump(made))


def _push(made: dict[str, object]) -> None:
    """By kubectl, through stdin: a secret in an argv can be read by every user of the machine."""
    import json

    from symphony_charts.adapters.runner import run as start
    from symphony_charts.errors import ToolFailed

    argv = ["kubectl", "apply", "--server-side", "--field-manager=symph", "-f", "-"]
    ended = start(argv, input=json.dumps(made), timeout_s=30, check=False)
    if ended.status:
        said = ended.error_text.strip().splitlines()
        raise ToolFailed(
            f"the Secret was not pushed: {said[-1] if said else 'kubectl failed'}",
            next="check `kubectl config current-context`, or print it with --dry-run",
            argv=ended.argv,
            status=ended.status,
            stderr=ended.error_text,
            seconds=ended.seconds,
        )
