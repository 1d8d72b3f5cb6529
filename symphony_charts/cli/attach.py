"""`symph attach`: the terminal of a running experiment."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from symphony_charts.cli import experiments, options, output, tiles
from symphony_charts.errors import UsageError
from symphony_charts.local import runs, tmux_client
from symphony_charts.local.supervisor import shutdown

LATE = (tiles,)  # 90 ms, which a terminal does not need


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    parser.add_argument("-p", "--process", metavar="PROCESS", help="begin with the pane of this process, or replica")
    options.add_flag(parser, "--nested", help="attach even from inside tmux; C-b C-b d leaves")
    parser.add_argument(
        "--tile",
        metavar="PROCESS",
        nargs="*",
        default=None,
        help="what these processes write, side by side, with their states (default: all); also after their end",
    )
    options.add_flag(parser, "--into-current", help="with --tile: in a window of the tmux session you are in")
    options.add_backend(parser)
    options.add_examples(
        parser,
        "symph attach rl -p agent/1",
        "symph attach rl --tile learner agent-0 agent-1 --into-current",
        "symph attach rl --tile --on kube -n ml",
    )


def run(args: argparse.Namespace) -> int:
    """Become a tmux client of the experiment's private server; detach with C-b d.

    Inside a pane of the experiment, select another pane. Inside any other tmux, whose server would get the keys, refuse
    unless nested, and print a command that works there; the outer server is not asked.
    """
    if args.into_current and args.tile is None:
        raise UsageError("--into-current is about tiles", next="add --tile, or leave it out")
    if args.tile is not None:
        if args.process:
            raise UsageError("--tile and -p exclude each other", next="name the processes after --tile")
        return tiles.run_tiles(args)
    if options.place_of(args) == "kube":
        step = "--tile shows lines; or symph ssh PROCESS"
        raise UsageError("only processes of this machine have a terminal to attach to", next=step)
    live_run = experiments.run_to_use(args.experiment_name)
    shutdown.require_here(live_run)
    slots = runs.find_slots(live_run.plan(), args.process) if args.process else []
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal", next=f"symph logs -f {live_run.experiment}")
    terminal = os.ttyname(sys.stdin.fileno())
    if tmux_client.is_terminal_of(live_run.socket, terminal):
        if not slots:
            step = "-p PROCESS goes to another pane"
            raise UsageError(f"this terminal is a pane of {live_run.experiment}", next=step)
        tmux_client.select(live_run.socket, slots[0])
        return 0
    if not args.nested:
        _refuse_nesting(live_run, args, terminal)
    if slots:
        tmux_client.select(live_run.socket, slots[0])
    if len(slots) > 1:
        output.note(f"{args.process} has {len(slots)} replicas; {args.process}/K begins with another")
    tmux_client.attach(live_run.socket)
    return 0


def _refuse_nesting(live_run: runs.Run, args: argparse.Namespace, terminal: str) -> None:
    """Raise UsageError inside another tmux: the user's, or that of another experiment."""
    others = (other.socket for other in runs.live_runs() if other != live_run)
    outer = tmux_client.surrounding_server() or next(
        (socket for socket in others if tmux_client.is_terminal_of(socket, terminal)), None
    )
    if outer is None:
        return
    words = ["symph", "attach", live_run.experiment, *(["-p", args.process] if args.process else [])]
    base = ["tmux", "-S", str(outer)]
    back = shlex.join([*base, "detach-client", "-E", f"{shlex.join(words)}; {shlex.join([*base, 'attach'])}"])
    what = f"this terminal is inside of tmux, and {live_run.experiment} has its own tmux server"
    raise UsageError(what, next=f"{back}\n        (C-b d comes back here), or --nested")
