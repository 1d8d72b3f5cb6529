"""Hierarchical numerical integration of x^2 over 0..10 with ZeroMQ.

    python integrate.py master --serve integral --teams 2 --chunks 60
    python integrate.py lead   --from integral --serve team-a --workers 2
    python integrate.py worker --from team-a

The master hands out chunks of the interval to team leads, a lead passes them on to its workers and adds up their
results; when no chunk is left, workers end, leads report their subtotal and end, and the master prints the sum.
Addresses come from SYMPH_* alone.
"""

import argparse
import os

import zmq

LOW, HIGH, SLICES_PER_CHUNK = 0.0, 10.0, 300_000


def endpoint(service):
    prefix = "SYMPH_" + service.upper().replace("-", "_")
    return f"tcp://{os.environ[prefix + '_HOST']}:{os.environ[prefix + '_PORT']}"


def serve(context, service):
    replier = context.socket(zmq.REP)
    replier.bind(endpoint(service))
    return replier


def dial(context, service):
    requester = context.socket(zmq.REQ)
    requester.connect(endpoint(service))
    return requester


def area(low, high):
    """The midpoint rule over one chunk."""
    width = (high - low) / SLICES_PER_CHUNK
    return sum((low + (i + 0.5) * width) ** 2 for i in range(SLICES_PER_CHUNK)) * width


def run_master(context, options):
    width = (HIGH - LOW) / options.chunks
    chunks = [(LOW + i * width, LOW + (i + 1) * width) for i in range(options.chunks)]
    total, reports = 0.0, 0
    replier = serve(context, options.serve)
    while reports < options.teams:
        message = replier.recv_json()
        if "subtotal" in message:
            total += message["subtotal"]
            reports += 1
            print(f"team {message['team']}: {message['subtotal']:.4f}", flush=True)
            replier.send_json({})
        else:
            replier.send_json({"chunk": chunks.pop() if chunks else None})
    print(f"integral of x^2 over {LOW:g}..{HIGH:g} = {total:.4f}", flush=True)


def run_lead(context, options):
    subtotal, busy = 0.0, options.workers
    master, replier = dial(context, options.source), serve(context, options.serve)
    while busy:
        subtotal += replier.recv_json()["result"]
        master.send_json({"team": options.serve})
        answer = master.recv_json()
        busy -= answer["chunk"] is None
        replier.send_json(answer)
    master.send_json({"team": options.serve, "subtotal": subtotal})
    master.recv_json()
    print(f"subtotal {subtotal:.4f}", flush=True)


def run_worker(context, options):
    lead, result, chunks = dial(context, options.source), 0.0, 0
    while True:
        lead.send_json({"result": result})
        chunk = lead.recv_json()["chunk"]
        if chunk is None:
            break
        result, chunks = area(*chunk), chunks + 1
    print(f"integrated {chunks} chunks", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["master", "lead", "worker"])
    parser.add_argument("--serve", help="the service this process binds")
    parser.add_argument("--from", dest="source", help="the service this process asks for work")
    parser.add_argument("--teams", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--chunks", type=int, default=60)
    options = parser.parse_args()
    with zmq.Context() as context:
        context.linger = 5000
        {"master": run_master, "lead": run_lead, "worker": run_worker}[options.role](context, options)
        context.destroy(linger=5000)


if __name__ == "__main__":
    main()
