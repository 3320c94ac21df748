"""An HTTP/2 server with PyPI's h2 that serves each stream for a fixed time.

python server.py ADDRESS:PORT STREAMS SECONDS GOAWAY_EVERY

STREAMS: concurrent streams on a connection. SECONDS: time of each reply. GOAWAY_EVERY: a connection gets GOAWAY after
this many requests, and closes when they are answered; 0 for never. GET /count answers with the number of requests
served before.
"""

import asyncio
import sys

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, RequestReceived, StreamReset
from h2.settings import SettingCodes, Settings

ADDRESS, PORT = sys.argv[1].rsplit(":", 1)
STREAMS, SECONDS, GOAWAY_EVERY = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
BODY = b"x" * 1000
served = 0


class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.http = H2Connection(H2Configuration(client_side=False))
        limit = {SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS}
        self.http.local_settings = Settings(client=False, initial_values=limit)
        self.http.initiate_connection()
        self.requests, self.open, self.leaving = 0, set(), False
        self.flush()

    def flush(self):
        self.transport.write(self.http.data_to_send())

    def data_received(self, data):
        for event in self.http.receive_data(data):
            if isinstance(event, RequestReceived):
                self.request(event)
            elif isinstance(event, StreamReset):
                self.open.discard(event.stream_id)
            elif isinstance(event, ConnectionTerminated):
                self.transport.close()
                return
        self.flush()

    def request(self, event):
        if self.leaving:
            return  # above the last stream of the GOAWAY
        stream = event.stream_id
        self.requests += 1
        self.open.add(stream)
        path = dict(event.headers)[b":path"]
        loop = asyncio.get_running_loop()
        if path == b"/count":
            self.answer(stream, str(served).encode())
        else:
            loop.call_later(SECONDS, self.serve, stream)
        if GOAWAY_EVERY and self.requests == GOAWAY_EVERY:
            self.leaving = True
            # close_connection() of h2 would permit no further replies.
            payload = stream.to_bytes(4, "big") + int(ErrorCodes.NO_ERROR).to_bytes(4, "big")
            self.transport.write(self.http.data_to_send())
            self.transport.write(len(payload).to_bytes(3, "big") + b"\x07\x00" + bytes(4) + payload)

    def serve(self, stream):
        global served
        if stream in self.open and not self.transport.is_closing():
            served += 1
            self.answer(stream, BODY)

    def answer(self, stream, body):
        self.open.discard(stream)
        self.http.send_headers(stream, [(":status", "200"), ("content-length", str(len(body)))])
        self.http.send_data(stream, body, end_stream=True)
        self.flush()
        if self.leaving and not self.open:
            self.transport.close()


async def main():
    server = await asyncio.get_running_loop().create_server(Server, ADDRESS, int(PORT))
    async with server:
        await server.serve_forever()


asyncio.run(main())
