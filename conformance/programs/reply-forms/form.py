"""A form of a reply."""

from dataclasses import dataclass


@dataclass
class Form:
    """A name, a description for people, and the reply: bytes of HTTP/1.1, or parts of a stream.

    `close` ends the connection after the reply. `decode` asks the client to decode the body.
    """

    name: str
    description: str
    reply: object
    close: bool = False
    method: str = "GET"
    decode: bool = False
