"""Marked datagrams from one end of a link, and how many of them reach the other.

  traffic.py count SECONDS PORT...            bytes a second at each port, as JSON, by the kernel's stamps
  traffic.py send HOST SECONDS PORT:TOS:RATE...   RATE bytes of IP packets a second to each port
"""

import json
import select
import socket
import struct
import sys
import time

SO_TIMESTAMPNS = 35
# An IP packet of 1,500 bytes.
PAYLOAD, HEADERS = 1472, 28
# What comes in the first second fills queues.
WARM = 1.0


def stamp(ancillary):
    seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
    return seconds + nanoseconds / 1e9


def count(seconds, ports):
    sockets = {}
    for port in ports:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        one.bind(("0.0.0.0", int(port)))
        sockets[one] = int(port)
    bytes_at = dict.fromkeys(sockets.values(), 0)
    start = None
    while True:
        readable, _, _ = select.select(list(sockets), [], [], 10)
        for one in readable:
            data, ancillary, _, _ = one.recvmsg(2048, 64)
            at = stamp(ancillary)
            start = start or at
            since = at - start - WARM
            if since >= seconds:
                rates = {port: total / seconds for port, total in bytes_at.items()}
                print(json.dumps(rates), flush=True)
                return
            if since >= 0:
                bytes_at[sockets[one]] += len(data) + HEADERS


def send(host, seconds, streams):
    started = time.monotonic()
    flows = []
    for stream in streams:
        port, tos, rate = stream.split(":")
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(tos, 0))
        flows.append([one, (host, int(port)), float(rate), 0])
    while (since := time.monotonic() - started) < seconds:
        for flow in flows:
            one, to, rate, sent = flow
            while sent < since * rate:
                try:
                    one.sendto(bytes(PAYLOAD), to)
                except BlockingIOError:
                    # Its queue is full: a router drops it.
                    pass
                sent += PAYLOAD + HEADERS
            flow[3] = sent
        time.sleep(0.001)


if sys.argv[1] == "count":
    count(float(sys.argv[2]), sys.argv[3:])
else:
    send(sys.argv[2], float(sys.argv[3]), sys.argv[4:])
