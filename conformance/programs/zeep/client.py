"""Calls the bookshop with zeep, all it knows taken from the WSDL.

Usage: client.py WSDL ISBN TITLE
Prints `ok WHAT` or `FAILED WHAT: WHY` for every check; exits 1 when one failed.
"""

import sys

import zeep
from zeep.helpers import serialize_object
from zeep.wsdl.bindings.soap import Soap12Binding

failed = False


def check(what, holds, why):
    global failed
    failed |= not holds
    print(f"ok {what}" if holds else f"FAILED {what}: {why!r}")


def titles(value):
    """Every title in a reply, in order."""
    if isinstance(value, dict):
        return [
            title
            for key, inner in value.items()
            for title in ([inner] if key == "title" else titles(inner))
        ]
    if isinstance(value, list):
        return [title for inner in value for title in titles(inner)]
    return []


def check_fault(what, operation, isbn, code, reason):
    try:
        check(what, False, serialize_object(operation(isbn=isbn), dict))
    except zeep.exceptions.Fault as fault:
        check(f"{what}: code {code}", str(fault.code).split(":")[-1] == code, fault.code)
        check(f"{what}: reason names {reason}", reason in fault.message, fault.message)
        check(f"{what}: detail", fault.detail is not None and len(fault.detail) == 1, fault.detail)


def main():
    wsdl, isbn, title = sys.argv[1:]
    client = zeep.Client(wsdl)
    ports = [port for service in client.wsdl.services.values() for port in service.ports.values()]
    kinds = sorted(isinstance(port.binding, Soap12Binding) for port in ports)
    check("a port for each version of SOAP", kinds == [False, True], kinds)
    for name, service in client.wsdl.services.items():
        for port_name, port in service.ports.items():
            is_12 = isinstance(port.binding, Soap12Binding)
            version = "SOAP 1.2" if is_12 else "SOAP 1.1"
            sender = "Sender" if is_12 else "Client"
            proxy = client.bind(name, port_name)

            found = titles(serialize_object(proxy.BookLite(isbn=isbn), dict))
            check(f"{version} BookLite", found == [title], found)
            for operation, count in [("BookHeavy1", 1), ("BookHeavy5", 5)]:
                found = titles(serialize_object(proxy[operation](isbn=isbn), dict))
                check(f"{version} {operation}", len(found) == count and found[0] == title, found)
            hello = serialize_object(proxy.Hello(isbn=isbn))
            check(f"{version} Hello", bool(hello), hello)

            unknown, broken = "0000000000", isbn[:-1] + ("1" if isbn[-1] == "0" else "0")
            check_fault(f"{version} unknown ISBN", proxy.BookLite, unknown, sender, unknown)
            check_fault(f"{version} bad checksum", proxy.BookLite, broken, sender, broken)
    sys.exit(failed)


main()
