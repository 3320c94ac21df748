"""A server of grpcio that replies to each call with the seconds until its deadline, or with `none`.

Takes ADDRESS to listen on.
"""

import sys
from concurrent import futures

import grpc

# Beyond any deadline of a test: grpcio states the absence of a deadline as a time in the far future.
FAR = 1e9


def remaining(request, context):
    seconds = context.time_remaining()
    return b"none" if seconds is None or seconds > FAR else f"{seconds:.3f}".encode()


handlers = {"Remaining": grpc.unary_unary_rpc_method_handler(remaining)}
server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("peer.Peer", handlers),))
server.add_insecure_port(sys.argv[1])
server.start()
server.wait_for_termination()
