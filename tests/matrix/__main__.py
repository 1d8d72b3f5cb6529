"""``python -m tests.matrix [--every-extra] [--no-cluster] [--leg TEXT]``: the wheel at both ends of what it meets."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.rig.cluster import Cluster
from tests.matrix.environments import Leg, build, find_pythons, install
from tests.matrix.journey import Journey
from tests.matrix.steps import cluster_steps, extra_steps, git_steps, local_steps
from tests.tools import HELM_VERSIONS, TOOLS

_ROOT = Path(__file__).resolve().parents[2]
_EXTRAS = ("seal", "argo", "top", "optuna", "torchx")


def legs(*, every_extra: bool) -> list[Leg]:
    """Return the four corners without extras, and ``[all]`` (with `every_extra` also each extra) at both ends."""
    pythons = find_pythons()
    oldest, newest = pythons[0], pythons[-1]
    corners = [
        Leg(python=python, end=end) for python in dict.fromkeys((oldest, newest)) for end in ("lowest", "newest")
    ]
    extras = ["all", *(_EXTRAS if every_extra else ())]
    ends = (("lowest", oldest), ("newest", newest))
    return [*corners, *(Leg(python=python, end=end, extras=extra) for extra in extras for end, python in ends)]


def travel(leg: Leg, number: int, wheel: Path, scratch: Path, kubeconfig: Path | None) -> Journey:
    helm = TOOLS / f"helm-{HELM_VERSIONS[0 if leg.end == 'lowest' else -1]}"
    # Short, since the path of a socket is limited.
    user = Journey(
        programs=install(leg, wheel, scratch / f"env{number}"),
        folder=scratch / f"u{number}",
        tools=(helm,),
        kubeconfig=kubeconfig,
    )
    user.begin()
    local_steps(user, wheel.name.split("-")[1])
    git_steps(user)
    extra_steps(user, frozenset(filter(None, [leg.extras])))
    if kubeconfig is not None:
        cluster_steps(user, f"leg-{number}")
    return user


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--every-extra", action="store_true", help="also each extra apart, at both ends")
    parser.add_argument("--no-cluster", action="store_true", help="leave out what needs a cluster")
    parser.add_argument("--leg", default="", help="only legs whose title contains this, such as '3.10, lowest'")
    parser.add_argument("--json", type=Path, help="write the table here, too")
    options = parser.parse_args(argv)
    # A shell that runs this in the background ignores Ctrl-C, and so would every command that is tried here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    scratch = Path(tempfile.mkdtemp(prefix="sm-", dir="/tmp"))
    cluster = Cluster(folder=scratch / "rig")
    try:
        if not options.no_cluster:
            cluster.up()
        wheel = build(_ROOT, scratch / "dist")
        chosen = [leg for leg in legs(every_extra=options.every_extra) if options.leg in leg.title]
        return _report(chosen, wheel, scratch, None if options.no_cluster else cluster.kubeconfig, options.json)
    finally:
        if not options.no_cluster:
            cluster.down()
        shutil.rmtree(scratch, ignore_errors=True)


def _report(chosen: list[Leg], wheel: Path, scratch: Path, kubeconfig: Path | None, table: Path | None) -> int:
    rows, failed = [], 0
    for number, leg in enumerate(chosen):
        started = time.monotonic()
        user = travel(leg, number, wheel, scratch, kubeconfig)
        seconds = time.monotonic() - started
        rows.append({"leg": leg.title, "passed": user.passed, "failed": len(user.failures), "seconds": round(seconds)})
        print(f"{leg.title:32} {user.passed:3} passed {len(user.failures):3} failed {seconds:4.0f} s", flush=True)
        for failure in user.failures:
            print(
                f"  {' '.join(failure.words)}\n    {failure.why}\n    " + failure.said[-1500:].replace("\n", "\n    ")
            )
        failed += len(user.failures)
        shutil.rmtree(scratch / f"env{number}")
    if table is not None:
        table.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"{sum(int(str(row['passed'])) for row in rows)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
