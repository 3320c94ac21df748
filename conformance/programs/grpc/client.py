"""grpcio on both sides of a gateway: calls of all four kinds, deadlines, refusals, large messages.

Takes UPSTREAM SECURE_UPSTREAM CERTIFICATE KEY PLAIN SECURE LIMITED: two addresses to listen on, the files of TLS, and
the addresses of three gateways. Prints a line for each check.
"""

import queue
import sys
import threading
import time
from concurrent import futures

import grpc

UPSTREAM, SECURE_UPSTREAM, CERTIFICATE, KEY, PLAIN, SECURE, LIMITED = sys.argv[1:8]
PATIENCE = 60
LARGE = 3_000_000
failed = []
# Calls whose end the upstream has seen although it did not end them.
cancelled = queue.Queue()


def check(what, holds, why=""):
    print(f"ok {what}" if holds else f"FAILED {what}: {why}")
    if not holds:
        failed.append(what)


def read(file):
    with open(file, "rb") as opened:
        return opened.read()


def echo(request, context):
    context.set_trailing_metadata((("seen", dict(context.invocation_metadata()).get("mine", "")),))
    return request


def count(request, context):
    for number in range(int(request)):
        yield str(number).encode()


def join(requests, context):
    return b",".join(requests)


def answer_each(requests, context):
    for request in requests:
        yield b"re: " + request


def sleep(request, context):
    over = threading.Event()
    context.add_callback(over.set)
    cancelled.put(over.wait(PATIENCE))
    return b"late"


def drip(request, context):
    over = threading.Event()
    context.add_callback(over.set)
    yield b"first"
    cancelled.put(over.wait(PATIENCE))


def refuse(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no: 100 % \u00fcbel")


def serve():
    handlers = grpc.method_handlers_generic_handler(
        "peer.Peer",
        {
            "Echo": grpc.unary_unary_rpc_method_handler(echo),
            "Count": grpc.unary_stream_rpc_method_handler(count),
            "Join": grpc.stream_unary_rpc_method_handler(join),
            "AnswerEach": grpc.stream_stream_rpc_method_handler(answer_each),
            "Sleep": grpc.unary_unary_rpc_method_handler(sleep),
            "Drip": grpc.unary_stream_rpc_method_handler(drip),
            "Refuse": grpc.unary_unary_rpc_method_handler(refuse),
        },
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
    server.add_generic_rpc_handlers((handlers,))
    server.add_insecure_port(UPSTREAM)
    server.add_secure_port(SECURE_UPSTREAM, grpc.ssl_server_credentials([(read(KEY), read(CERTIFICATE))]))
    server.start()
    return server


def status_of(call):
    """The status of a call that must fail, and its details."""
    try:
        call()
        return grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        return error.code(), error.details()


def check_kinds(name, channel):
    """The four kinds of calls."""
    unary = channel.unary_unary("/peer.Peer/Echo")
    reply, call = unary.with_call(b"hello", metadata=(("mine", "7"),), timeout=PATIENCE)
    trailers = dict(call.trailing_metadata())
    check(f"{name}: unary", reply == b"hello" and trailers.get("seen") == "7", (reply, trailers))
    replies = list(channel.unary_stream("/peer.Peer/Count")(b"500", timeout=PATIENCE))
    check(f"{name}: server streaming", replies == [str(number).encode() for number in range(500)], len(replies))
    parts = [str(number).encode() for number in range(500)]
    joined = channel.stream_unary("/peer.Peer/Join")(iter(parts), timeout=PATIENCE)
    check(f"{name}: client streaming", joined == b",".join(parts), joined[:80])
    sent = queue.Queue()
    replies = channel.stream_stream("/peer.Peer/AnswerEach")(iter(sent.get, None), timeout=PATIENCE)
    turns = []
    for turn in range(100):
        # The next message depends on the reply to this one.
        sent.put(str(turn).encode())
        turns.append(next(replies))
    sent.put(None)
    rest = list(replies)
    wanted = [f"re: {turn}".encode() for turn in range(100)]
    check(f"{name}: bidirectional streaming", turns == wanted and not rest, (turns[:3], rest))
    large = bytes(range(256)) * (LARGE // 256)
    check(f"{name}: large messages", unary(large, timeout=PATIENCE) == large)
    with futures.ThreadPoolExecutor(32) as pool:
        calls = [str(number).encode() for number in range(1000)]
        replies = list(pool.map(lambda message: unary(message, timeout=PATIENCE), calls))
    check(f"{name}: a thousand calls at once", replies == calls)


def check_ends(name, channel):
    """Deadlines, cancellations and statuses of the upstream."""
    code, details = status_of(lambda: channel.unary_unary("/peer.Peer/Sleep")(b"", timeout=0.3))
    check(f"{name}: deadline", code == grpc.StatusCode.DEADLINE_EXCEEDED, (code, details))
    check(f"{name}: the upstream sees the deadline", cancelled.get(timeout=PATIENCE))
    drip = channel.unary_stream("/peer.Peer/Drip")(b"", timeout=2)
    first = next(drip)
    code, details = status_of(lambda: next(drip))
    late = code == grpc.StatusCode.DEADLINE_EXCEEDED
    check(f"{name}: deadline within a stream", first == b"first" and late, (first, code, details))
    check(f"{name}: the upstream sees that, too", cancelled.get(timeout=PATIENCE))
    drip = channel.unary_stream("/peer.Peer/Drip")(b"", timeout=PATIENCE)
    next(drip)
    drip.cancel()
    check(f"{name}: the upstream sees a cancellation", cancelled.get(timeout=PATIENCE))
    code, details = status_of(lambda: channel.unary_unary("/peer.Peer/Refuse")(b"", timeout=PATIENCE))
    wanted = (grpc.StatusCode.FAILED_PRECONDITION, "no: 100 % \u00fcbel")
    check(f"{name}: the upstream's status", (code, details) == wanted, (code, details))
    code, details = status_of(lambda: channel.unary_unary("/peer.Peer/Nothing")(b"", timeout=PATIENCE))
    check(f"{name}: an unknown method", code == grpc.StatusCode.UNIMPLEMENTED, (code, details))


def check_refusals():
    """Statuses of the gateway."""
    with grpc.insecure_channel(LIMITED) as channel:
        unary = channel.unary_unary("/peer.Peer/Echo")
        first = unary(b"one", timeout=PATIENCE)
        code, details = status_of(lambda: unary(b"two", timeout=PATIENCE))
        exhausted = code == grpc.StatusCode.RESOURCE_EXHAUSTED and "rate" in details
        check("a refusal by rate", first == b"one" and exhausted, (first, code, details))


def check_loss(server):
    """A call and a stream whose upstream has gone."""
    with grpc.insecure_channel(PLAIN) as channel:
        drip = channel.unary_stream("/peer.Peer/Drip")(b"", timeout=PATIENCE)
        next(drip)
        server.stop(0).wait()
        code, details = status_of(lambda: next(drip))
        check("a stream whose upstream has gone", code not in (grpc.StatusCode.OK, None), (code, details))
        code, details = status_of(lambda: channel.unary_unary("/peer.Peer/Echo")(b"", timeout=PATIENCE))
        check("a call without an upstream", code == grpc.StatusCode.UNAVAILABLE, (code, details))


def main():
    server = serve()
    start = time.monotonic()
    with grpc.insecure_channel(PLAIN) as channel:
        check_kinds("plain", channel)
        check_ends("plain", channel)
    named = (("grpc.ssl_target_name_override", "localhost"),)
    trusted = grpc.ssl_channel_credentials(read(CERTIFICATE))
    with grpc.secure_channel(SECURE, trusted, named) as channel:
        check_kinds("tls", channel)
        check_ends("tls", channel)
    check_refusals()
    check_loss(server)
    print(f"ok all within {time.monotonic() - start:.0f} s")
    sys.exit(1 if failed else 0)


main()
