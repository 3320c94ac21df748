"""The client by `Forwarded`, as aiohttp reads the field.

Takes PEER FILE: the address of the peer, and a JSON list of cases, each a list of field lines. Prints a JSON list with
the client of each case, or null if the request is invalid. The peer and 10.0.0.0/8 are trusted.
"""

import ipaddress
import json
import re
import sys

from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

PEER, FILE = sys.argv[1:3]
PORT = r"(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?"
NODE = re.compile(rf"(?:\[(?P<six>[^\]]+)\]|(?P<four>[0-9.]+)){PORT}")


def address(node):
    """The address of a node (RFC 7239, section 6), or None if it has none."""
    match = NODE.fullmatch(node)
    if match is None:
        return None
    try:
        if match["six"] is None:
            return ipaddress.IPv4Address(match["four"])
        six = ipaddress.IPv6Address(match["six"])
        return six.ipv4_mapped or six
    except ValueError:
        return None


def client(lines):
    headers = CIMultiDict(("Forwarded", line) for line in lines)
    found = ipaddress.ip_address(PEER)
    for element in reversed(make_mocked_request("GET", "/", headers=headers).forwarded):
        sender = address(element.get("for", ""))
        if sender is None:
            break
        found = sender
        if sender not in ipaddress.ip_network("10.0.0.0/8"):
            break
    return str(found)


with open(FILE, encoding="utf-8") as cases:
    print(json.dumps([client(lines) for lines in json.load(cases)]))
