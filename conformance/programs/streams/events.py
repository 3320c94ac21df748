"""A server of server-sent events with a known law, which logs when it sent each.

    events.py PORT LOG

Each request gets EVENTS events. The first is due 30 ms after the request arrived, each other 5 to 15 ms (uniform) after
the one before. LOG has a line for each reply: when the request arrived and when each event was sent, in ns of
CLOCK_MONOTONIC. The arrival is the kernel's stamp, so it does not count how late this program wakes up. An event is one
write, and its time is taken just before it.
"""

import heapq
import random
import select
import socket
import struct
import sys
import time

EVENTS = 50
# asm-generic/socket.h; Python does not name it.
SO_TIMESTAMPNS = 35
FIRST = 30_000_000
GAP = (5_000_000, 15_000_000)
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Reply:
    """The events of one request, and the times of the log."""

    def __init__(self, client, arrived, law):
        self.client = client
        self.law = law
        self.times = [arrived]
        self.due = self.times[0] + FIRST

    def send(self):
        """Sends the next event. Returns true after the last."""
        number = len(self.times)
        event = chunk(b"data: %d\n\n" % number)
        is_last = number == EVENTS
        if is_last:
            event += b"0\r\n\r\n"
        self.times.append(time.monotonic_ns())
        self.client.sendall(event)
        self.due += self.law.randint(*GAP)
        return is_last


def receive(client):
    """Bytes of a client and when they arrived, in ns of CLOCK_MONOTONIC."""
    piece, ancillary, _, _ = client.recvmsg(65536, 256)
    arrived = time.monotonic_ns()
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            # The kernel stamps by CLOCK_REALTIME.
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            arrived -= time.time_ns() - (seconds * 1_000_000_000 + nanoseconds)
    return piece, arrived


def serve(port, log):
    law = random.Random(1)
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    received = {listener: b""}
    # The number orders replies that are due at the same time.
    due, number = [], 0
    while True:
        left = (due[0][0] - time.monotonic_ns()) / 1e9 if due else None
        readable, _, _ = select.select(received, [], [], None if left is None else max(left, 0))
        while due and due[0][0] <= time.monotonic_ns():
            _, _, reply = heapq.heappop(due)
            try:
                is_last = reply.send()
            except OSError:
                continue
            if is_last:
                print(*reply.times, file=log, flush=True)
            else:
                number += 1
                heapq.heappush(due, (reply.due, number, reply))
        for client in readable:
            if client is listener:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                received[client] = b""
                continue
            try:
                piece, arrived = receive(client)
            except OSError:
                piece, arrived = b"", 0
            if not piece:
                del received[client]
                continue
            received[client] += piece
            while b"\r\n\r\n" in received[client]:
                _, received[client] = received[client].split(b"\r\n\r\n", 1)
                reply = Reply(client, arrived, law)
                client.sendall(HEAD)
                number += 1
                heapq.heappush(due, (reply.due, number, reply))


if __name__ == "__main__":
    with open(sys.argv[2], "a", encoding="ascii") as log:
        serve(int(sys.argv[1]), log)
