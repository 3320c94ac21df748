"""A server that answers nonsense: the path says which kind.

For `posthaste load`: each kind must become an outcome of its own, never a hang or a panic.
Usage: server.py PORT
"""

import socket
import struct
import sys
import threading
import time

NOISE = bytes((i * 37 + 11) % 256 for i in range(4096))

ANSWERS = {
    "noise": NOISE,
    "short": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this much",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "negative-length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense\r\n",
    "huge-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"ffffffffffffffffff\r\nx\r\n",
    "status": b"HTTP/1.1 99999 Very OK\r\nContent-Length: 0\r\n\r\n",
    "nothing": b"",
}


def endless_header(client):
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000_000):
        client.sendall(b"X-Filler-%d: %s\r\n" % (number, b"y" * 1000))


def reset(client):
    # Lingering for zero seconds makes close() send a reset.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(_client):
    time.sleep(60)


DEEDS = {"endless-header": endless_header, "reset": reset, "silent": silent}


def answer(client):
    with client:
        try:
            request = client.recv(65536)
            kind = request.split(b" ")[1].decode().strip("/")
            if kind in DEEDS:
                DEEDS[kind](client)
            else:
                client.sendall(ANSWERS[kind])
        except (OSError, IndexError, KeyError):
            pass


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=answer, args=(client,), daemon=True).start()


main()
