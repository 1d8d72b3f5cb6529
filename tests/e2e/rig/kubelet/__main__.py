"""The process kubelet of one test cluster; started by `tests.e2e.rig.cluster`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from symphony_charts.errors import SymphError
from tests.e2e.rig.kubelet.agent import Agent
from tests.e2e.rig.kubelet.network import check_tools
from tests.e2e.rig.kubelet.server import serve
from tests.e2e.rig.nodes import DEFAULT_POOLS, read_pools


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--pools", type=Path, default=DEFAULT_POOLS)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    try:
        check_tools()
        asyncio.run(_run(options))
    except SymphError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    agent = Agent(options.state, read_pools(options.pools), options.port)
    server = await serve(agent, options.state / "pki", options.port)
    await agent.run(stop)
    server.close()


if __name__ == "__main__":
    sys.exit(main())
