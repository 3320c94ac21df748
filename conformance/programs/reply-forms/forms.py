"""All forms by protocol."""

import grpc_calls
import http1
import streams

PROTOCOLS = {
    "http1": http1.FORMS,
    "http2": streams.HTTP2,
    "http3": streams.HTTP3,
    "grpc": grpc_calls.FORMS,
}


def find(protocol, name):
    return next(form for form in PROTOCOLS[protocol] if form.name == name)
