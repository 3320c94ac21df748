"""A server that answers each request at once and logs when it came.

    requests.py PORT LOG

LOG has a line for each request: when it came, in ns of CLOCK_REALTIME, and its target. The time is the kernel's stamp,
so it does not count how late this program wakes up.
"""

import select
import socket
import struct
import sys

# asm-generic/socket.h; Python does not name it.
SO_TIMESTAMPNS = 35
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def receive(client):
    """Bytes of a client and the kernel's stamp of them."""
    piece, ancillary, _, _ = client.recvmsg(65536, 256)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            return piece, seconds * 1_000_000_000 + nanoseconds
    return piece, None


def answer(client, received, log):
    """Reads what a client has sent and answers the whole requests in it. Returns false at its end."""
    try:
        piece, stamp = receive(client)
    except OSError:
        return False
    received[client] += piece
    while b"\r\n\r\n" in received[client]:
        head, received[client] = received[client].split(b"\r\n\r\n", 1)
        target = head.split(b" ", 2)[1].decode("ascii")
        print(stamp, target, file=log, flush=True)
        try:
            client.sendall(REPLY)
        except OSError:
            return False
    return bool(piece)


def serve(port, log):
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients, received = {}, {}
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                clients[client.fileno()], received[client] = client, b""
                poll.register(client, select.EPOLLIN)
            elif not answer(clients[number], received, log):
                client = clients.pop(number)
                poll.unregister(client)
                del received[client]
                client.close()


if __name__ == "__main__":
    with open(sys.argv[2], "a", encoding="ascii") as log:
        serve(int(sys.argv[1]), log)
