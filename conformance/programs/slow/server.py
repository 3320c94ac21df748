"""A server of about 900 requests a second: one at a time, a millisecond each, backlog 128.

It accepts only when it is done with the one before, so that its accept queue fills and the
kernel drops what does not fit: what a connection per request past the limit has to be counted
against. Usage: server.py PORT
"""

import socket
import sys
import time

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nslow\n"


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
    while True:
        client, _ = listener.accept()
        with client:
            try:
                # A client that has gone away in the queue costs no service.
                if client.recv(65536):
                    time.sleep(0.001)
                    client.sendall(REPLY)
            except OSError:
                pass


main()
