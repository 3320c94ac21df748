"""OpenTelemetry for Python on all sides of a gateway: who asks, the upstream, and the collector.

Takes GATEWAY UPSTREAM COLLECTOR, a URL and two addresses to listen on. Prints a line for each check.
"""

import base64
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import Parse
from opentelemetry import propagate, trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

GATEWAY, UPSTREAM, COLLECTOR = sys.argv[1:4]
PATIENCE = 20
failed = []
# What the upstream was told of each trace, and the spans that the collector was given.
told, spans = [], []


def check(what, holds, why=""):
    print(f"ok {what}" if holds else f"FAILED {what}: {why}")
    if not holds:
        failed.append(what)


class Quiet(BaseHTTPRequestHandler):
    def answer(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


class Upstream(Quiet):
    def do_GET(self):
        context = propagate.extract(dict((name.lower(), value) for name, value in self.headers.items()))
        told.append(trace.get_current_span(context).get_span_context())
        self.answer()


class Collector(Quiet):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Unknown names and wrong types are errors. What OTLP writes in hexadecimal, this reader takes for base64.
        request = Parse(body, ExportTraceServiceRequest())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                spans.extend(scope.spans)
        self.answer()


def listen(address, handler):
    host, port = address.rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def hexadecimal(identity):
    """The digits that were taken for base64."""
    return base64.b64encode(identity).decode().rstrip("=")


def ask(sampler):
    """One request inside a span; its context."""
    tracer = TracerProvider(sampler=sampler).get_tracer("client")
    with tracer.start_as_current_span("ask") as span:
        fields = {}
        propagate.inject(fields)
        request = urllib.request.Request(f"{GATEWAY}/books", headers=fields)
        urllib.request.urlopen(request, timeout=PATIENCE).read()
        return span.get_span_context()


listen(UPSTREAM, Upstream)
listen(COLLECTOR, Collector)

unsampled = ask(ALWAYS_OFF)
check("an unsampled trace reaches the upstream", told[-1].trace_id == unsampled.trace_id, told[-1])
check("as unsampled", not told[-1].trace_flags.sampled, told[-1])

sampled = ask(ALWAYS_ON)
check("a sampled trace reaches the upstream", told[-1].trace_id == sampled.trace_id, told[-1])
check("as sampled", told[-1].trace_flags.sampled, told[-1])
check("from a span of the gateway's own", told[-1].span_id != sampled.span_id, told[-1])

until = time.monotonic() + PATIENCE
while len(spans) < 2 and time.monotonic() < until:
    time.sleep(0.05)
check("two spans are collected", len(spans) == 2, spans)
server, client = sorted(spans, key=lambda span: span.kind)
check("one as a server's, one as a client's", (server.kind, client.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT), spans)
check("both of the trace", {hexadecimal(span.trace_id) for span in spans} == {f"{sampled.trace_id:032x}"}, spans)
check("below who asked", hexadecimal(server.parent_span_id) == f"{sampled.span_id:016x}", server)
check("and above the upstream", hexadecimal(client.span_id) == f"{told[-1].span_id:016x}", client)
check("one inside the other", hexadecimal(client.parent_span_id) == hexadecimal(server.span_id), client)
now = time.time_ns()
check("in this minute", now - 60e9 < server.start_time_unix_nano < server.end_time_unix_nano <= now, server)
attributes = {attribute.key: attribute.value for attribute in server.attributes}
check("with a status", attributes["http.response.status_code"].int_value == 200, server)
check("and a path", attributes["url.path"].string_value == "/books", server)
sys.exit(1 if failed else 0)
