"""The process kubelet of one test cluster; started by `tests.e2e.rig.cluster`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from symphony_charts.errors import SymphError
from tests.e2e.rig.kubelet.agent import Agent, Settings
from tests.e2e.rig.kubelet.network import check_tools
from tests.e2e.rig.kubelet.server import serve
from tests.e2e.rig.nodes import DEFAULT_POOLS, read_pools


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--pools", type=Path, default=DEFAULT_POOLS)
    parser.add_argument("--images", type=Path, default=Path(__file__).with_name("images.yaml"))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--no-load-balancers", action="store_true")
    options = parser.parse_args()
    settings = Settings(
        state=options.state,
        kubeconfig=options.state / "kubelet.kubeconfig",
        pools=read_pools(options.pools),
        port=options.port,
        images=options.images,
        has_load_balancers=not options.no_load_balancers,
    )
    try:
        check_tools()
        asyncio.run(_run(settings))
    except SymphError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    agent = Agent(settings)
    server = await serve(agent, settings.state / "pki", settings.port)
    await agent.run(stop)
    server.close()


if __name__ == "__main__":
    sys.exit(main())
