"""What stands for `ditask --topology star --platform k8s`: it finds its address and its peers as that does.

Rank r of DI_RANK is node r of DI_NODES; it listens there on port 50515, and all others dial rank 0.
Source of the contract: opendilab/DI-engine, ding/entry/cli_parsers/k8s_parser.py.
"""

import os
import socket
import time

PORT = 50515


def again(work):
    """A pod's name is known to others a moment after it has started."""
    until = time.monotonic() + 60
    while True:
        try:
            return work()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


rank, nodes = int(os.environ["DI_RANK"]), os.environ["DI_NODES"].split(",")
server = again(lambda: socket.create_server((nodes[rank], PORT)))
if rank == 0:
    met = []
    for _ in nodes[1:]:
        peer, _address = server.accept()
        met.append(int(peer.recv(9)))
        peer.sendall(b"train")
    print("rank 0 met", sorted(met))
else:
    head = again(lambda: socket.create_connection((nodes[0], PORT), 2))
    head.sendall(str(rank).encode())
    print("rank", rank, "of", len(nodes), "may", head.recv(9).decode())
