"""A server that answers with the form of a reply that a request names, over HTTP/1.1, HTTP/2, HTTP/3 and gRPC.

    server.py HTTP1 HTTP2 HTTP3 GRPC CERTIFICATE KEY

The first four are addresses. The last part of a path names the form; for gRPC the metadata `form` does.
"""

import asyncio
import logging
import socket
import sys

import hpack
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

import forms
import stream

PREFACE = 24
# Seconds before a reset or the end of a connection over QUIC: a client may discard what it has not read by then.
PAUSE = 0.2
CLIENT_FIELDS = {stream.HEADERS, stream.CONTINUATION}


def no_delay(writer):
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def http1(reader, writer):
    no_delay(writer)
    while True:
        request = await reader.readuntil(b"\r\n\r\n")
        path = request.split(b" ", 2)[1].decode()
        form = forms.find("http1", path.rsplit("/", 1)[1])
        writer.write(form.reply)
        if form.close:
            return


def unpadded(payload, flags):
    """The field block of HEADERS without padding and priority."""
    if flags & stream.PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    return payload[5:] if flags & 0x20 else payload


async def http2(reader, writer, protocol):
    no_delay(writer)
    decoder, block, names = hpack.Decoder(), b"", {}
    writer.write(stream.frame(stream.SETTINGS, 0, 0))
    await reader.readexactly(PREFACE)
    while True:
        header = await reader.readexactly(9)
        kind, flags = header[3], header[4]
        number = int.from_bytes(header[5:], "big")
        payload = await reader.readexactly(int.from_bytes(header[:3], "big"))
        if kind == stream.SETTINGS and not flags & 1:
            writer.write(stream.frame(stream.SETTINGS, 1, 0))
        if kind == stream.PING and not flags & 1:
            writer.write(stream.frame(stream.PING, 1, 0, payload))
        if kind in CLIENT_FIELDS:
            block += unpadded(payload, flags) if kind == stream.HEADERS else payload
            if flags & stream.END_HEADERS:
                fields = dict(decoder.decode(block))
                block, names[number] = b"", fields.get("form") or fields[":path"].rsplit("/", 1)[1]
        # Our clients send requests without a body, or with one frame.
        if kind in (stream.HEADERS, stream.DATA) and flags & stream.END_STREAM:
            form = forms.find(protocol, names.pop(number))
            writer.write(stream.http2(form.reply, number))
            if form.close:
                return


def tcp(handle):
    """A handler of connections that ends with them."""

    async def connection(reader, writer):
        try:
            await handle(reader, writer)
            await writer.drain()
            writer.write_eof()
            # A connection that is closed with unread bytes is reset, and the client loses the reply.
            await asyncio.wait_for(reader.read(-1), 1)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            writer.close()

    return connection


class Http3(QuicConnectionProtocol):
    http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        for received in self.http.handle_event(event) if self.http else ():
            if isinstance(received, HeadersReceived):
                path = dict(received.headers)[b":path"].decode()
                self.answer(received.stream_id, forms.find("http3", path.rsplit("/", 1)[1]))

    def answer(self, number, form):
        quic, is_open = self._quic, False
        for part in form.reply:
            if isinstance(part, stream.Reset):
                self.transmit()
                loop = asyncio.get_running_loop()
                loop.call_later(PAUSE, self.reset, number, part.http3)
                is_open = True
            elif isinstance(part, stream.Stop):
                quic.stop_stream(number, part.code)
            elif isinstance(part, stream.Open):
                is_open = True
            else:
                quic.send_stream_data(number, stream.http3(part))
        if not is_open:
            quic.send_stream_data(number, b"", end_stream=True)
        self.transmit()
        if form.close:
            asyncio.get_running_loop().call_later(PAUSE, self.end)

    def reset(self, number, code):
        self._quic.reset_stream(number, code)
        self.transmit()

    def end(self):
        self._quic.close(error_code=0x100)
        self.transmit()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def main():
    # Clients that reset a stream are no failure.
    logging.getLogger("quic").setLevel(logging.CRITICAL)
    places = [address(text) for text in sys.argv[1:5]]
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(*sys.argv[5:7])
    await serve(*places[2], configuration=configuration, create_protocol=Http3)
    await asyncio.start_server(tcp(lambda *ends: http2(*ends, "http2")), *places[1])
    await asyncio.start_server(tcp(lambda *ends: http2(*ends, "grpc")), *places[3])
    # The first address is the last to listen: it states that all do.
    await asyncio.start_server(tcp(http1), *places[0])
    await asyncio.Future()


asyncio.run(main())
