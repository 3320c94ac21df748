"""A server that knows when each request reached it, by the kernel's clock and not by its own.

Every request is answered at once. The kernel stamps a segment when it arrives, which on the
loopback is when it was sent: how late this program wakes up does not count. GET /stamps gives
those times in ns, in order, one a line; asking for them is not itself a request.
Usage: server.py PORT
"""

import selectors
import socket
import struct
import sys

# asm-generic/socket.h; Python does not name it.
SO_TIMESTAMPNS = 35
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"

stamps = []


def answer(client, selector):
    try:
        request, ancillary, _, _ = client.recvmsg(65536, 256)
    except OSError:
        request = b""
    if not request:
        selector.unregister(client)
        client.close()
    elif request.startswith(b"GET /stamps "):
        body = "".join(f"{stamp}\n" for stamp in sorted(stamps)).encode()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    else:
        client.sendall(REPLY)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                stamps.append(seconds * 1_000_000_000 + nanoseconds)


def main():
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                selector.register(client, selectors.EVENT_READ)
            else:
                answer(key.fileobj, selector)


main()
