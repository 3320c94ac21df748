"""PyPI's websockets as client and upstream of a gateway, and PyPI's h2 as a client of RFC 8441.

Takes PLAIN TLS UPSTREAM CERTIFICATE: the addresses of two gateways, the address for the upstream of both, and a file
with the certificate of the second. Prints a line for each check.
"""

import asyncio
import ssl
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

PLAIN, TLS, UPSTREAM, CERTIFICATE = sys.argv[1:5]
PATIENCE = 20
failed = []
# Requests as the upstream gets them.
seen = []


def check(what, holds, why=""):
    print(f"ok {what}" if holds else f"FAILED {what}: {why}")
    if not holds:
        failed.append(what)


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def refuse(connection, request):
    seen.append(request)
    if request.path == "/secret":
        return connection.respond(403, "not you\n")
    return None


async def upstream(connection):
    async for message in connection:
        if message == "close":
            return await connection.close(4001, "as asked")
        elif message == "ping":
            await (await connection.ping())
            await connection.send("pong seen")
        else:
            await connection.send(message)


async def over_http1(name, url, context):
    opened = connect(url + "/chat", ssl=context, server_hostname=context and "localhost", subprotocols=["soap", "chat"], max_size=None)
    async with opened as client:
        check(f"{name}: the subprotocol is the upstream's choice", client.subprotocol == "chat", client.subprotocol)
        extensions = [extension.name for extension in client.protocol.extensions]
        check(f"{name}: frames are compressed", extensions == ["permessage-deflate"], extensions)
        for message in ["short", "ü" * 100_000, b"\0" * 70_000, bytes(range(256)) * 8192]:
            await client.send(message)
            back = await client.recv()
            check(f"{name}: {len(message)} of {type(message).__name__} come back", back == message)
        await (await client.ping())
        check(f"{name}: the upstream answers a ping", True)
        await client.send("ping")
        check(f"{name}: the client answers a ping", await client.recv() == "pong seen")
        await client.send("close")
        try:
            await client.recv()
            check(f"{name}: the upstream closes", False, "a message")
        except ConnectionClosed as closed:
            code = closed.rcvd and (closed.rcvd.code, closed.rcvd.reason)
            check(f"{name}: the upstream's code arrives", code == (4001, "as asked"), code)
    try:
        async with connect(url + "/secret", ssl=context, server_hostname=context and "localhost"):
            check(f"{name}: a refusal passes", False, "it was opened")
    except InvalidStatus as refused:
        found = (refused.response.status_code, refused.response.body)
        check(f"{name}: a refusal passes", found == (403, b"not you\n"), found)


async def many(url):
    clients = [await connect(url + "/chat", subprotocols=["chat"]) for _ in range(200)]
    await asyncio.gather(*(client.send(str(place)) for place, client in enumerate(clients)))
    back = await asyncio.gather(*(client.recv() for client in clients))
    check("each of 200 tunnels has its own bytes", back == [str(place) for place in range(200)])
    await asyncio.gather(*(client.close() for client in clients))


class Http2:
    """A client of HTTP/2 with one stream at a time."""

    async def open(self, address, context):
        host, port = split(address)
        name = context and "localhost"
        self.reader, self.writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.flush()
        self.events = []
        await self.until(lambda event: isinstance(event, h2.events.RemoteSettingsChanged))
        return self.h2.remote_settings.enable_connect_protocol

    def flush(self):
        self.writer.write(self.h2.data_to_send())

    async def until(self, wanted):
        """The next event of this kind. Data is acknowledged."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    self.flush()
                if wanted(event):
                    return event
            data = await self.reader.read(65536)
            if not data:
                raise EOFError("the gateway has closed")
            self.events += self.h2.receive_data(data)
            self.flush()

    async def connect(self, path, protocol="websocket"):
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", "http"), (":path", path), (":authority", "s")]
        self.h2.send_headers(stream, fields + [("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat")])
        self.flush()
        reply = await self.until(lambda event: isinstance(event, h2.events.ResponseReceived))
        return stream, {as_text(name): as_text(value) for name, value in reply.headers}

    async def data(self, stream, length):
        data = b""
        while len(data) < length:
            event = await self.until(lambda event: isinstance(event, h2.events.DataReceived) and event.stream_id == stream)
            data += event.data
        return data


def as_text(value):
    return value if isinstance(value, str) else value.decode()


async def over_http2(name, address, context):
    client = Http2()
    check(f"{name}: extended CONNECT is announced", await client.open(address, context) == 1)
    stream, fields = await client.connect("/chat")
    check(f"{name}: the stream is open", fields.get(":status") == "200", fields)
    check(f"{name}: the subprotocol arrives", fields.get("sec-websocket-protocol") == "chat", fields)
    check(f"{name}: the key's proof does not", "sec-websocket-accept" not in fields, fields)
    for text in [b"hello", b"x" * 10_000]:
        frame = Frame(Opcode.TEXT, text).serialize(mask=True)
        client.h2.send_data(stream, frame)
        client.flush()
        wanted = Frame(Opcode.TEXT, text).serialize(mask=False)
        back = await client.data(stream, len(wanted))
        check(f"{name}: {len(text)} bytes come back", back == wanted, back[:40])
    client.h2.send_data(stream, Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=True))
    client.flush()
    back = await client.data(stream, 4)
    check(f"{name}: the close is answered", back == b"\x88\x02\x03\xe8", back)
    await client.until(lambda event: isinstance(event, h2.events.StreamEnded))
    check(f"{name}: the stream ends", True)
    _, fields = await client.connect("/secret")
    check(f"{name}: a refusal passes", fields.get(":status") == "403", fields)
    _, fields = await client.connect("/chat", "chat")
    check(f"{name}: another protocol is refused", fields.get(":status") == "501", fields)
    client.writer.close()


async def main():
    trusted = ssl.create_default_context(cafile=CERTIFICATE)
    with_alpn = ssl.create_default_context(cafile=CERTIFICATE)
    with_alpn.set_alpn_protocols(["h2"])
    async with serve(upstream, *split(UPSTREAM), process_request=refuse, subprotocols=["chat"], max_size=None):
        await over_http1("plain", f"ws://{PLAIN}", None)
        await over_http1("TLS", f"wss://{TLS}", trusted)
        last = seen[-1].headers
        check("the upstream learns of the client", last["X-Forwarded-For"] == "127.0.0.1", last)
        check("and of its scheme", last["X-Forwarded-Proto"] == "https", last)
        await many(f"ws://{PLAIN}")
        await over_http2("HTTP/2", PLAIN, None)
        await over_http2("HTTP/2, TLS", TLS, with_alpn)


asyncio.run(asyncio.wait_for(main(), 5 * PATIENCE))
sys.exit(1 if failed else 0)
