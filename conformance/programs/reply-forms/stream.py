"""Parts of a reply on a stream of HTTP/2 or HTTP/3, and their bytes.

Fields are literals without compression, so that each byte of a name and a value can be chosen.
"""

from dataclasses import dataclass

# Frames of HTTP/2 (RFC 9113, section 6) and of HTTP/3 (RFC 9114, section 7.2).
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
# Bytes of a frame of HTTP/2 that a client accepts without SETTINGS.
FRAME = 16_384


@dataclass
class Fields:
    """A field block. `pieces` states the number of its frames over HTTP/2."""

    fields: list
    padding: int = 0
    pieces: int = 0


@dataclass
class Data:
    content: bytes
    padding: int = 0


@dataclass
class Frame:
    """A frame by type, flags and payload. `stream` is false for a frame of the connection (HTTP/2)."""

    kind: int
    payload: bytes
    flags: int = 0
    stream: bool = True


@dataclass
class Reset:
    """A reset. The codes of HTTP/2 and HTTP/3 differ."""

    http2: int
    http3: int


@dataclass
class Stop:
    """STOP_SENDING (HTTP/3)."""

    code: int


@dataclass
class Raw:
    """Bytes of the stream (HTTP/3)."""

    content: bytes


class Open:
    """The stream stays open."""


def integer(value, prefix, first=0):
    """An integer with a prefix of so many bits (RFC 7541, section 5.1)."""
    limit = (1 << prefix) - 1
    if value < limit:
        return bytes([first | value])
    out, value = bytearray([first | limit]), value - limit
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + bytes([value]))


def bytes_of(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def hpack(fields):
    out = b""
    for name, value in fields:
        name, value = bytes_of(name), bytes_of(value)
        out += b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value
    return out


def qpack(fields):
    out = [b"\0\0"]
    for name, value in fields:
        name, value = bytes_of(name), bytes_of(value)
        out.append(integer(len(name), 3, 0x20) + name + integer(len(value), 7) + value)
    return b"".join(out)


def frame(kind, flags, stream, payload=b""):
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def varint(value):
    return (value | 0x8000_0000).to_bytes(4, "big")


def http3_frame(kind, payload):
    return varint(kind) + varint(len(payload)) + payload


def block_frames(part, flags, stream):
    """The frames of a field block of HTTP/2."""
    block = hpack(part.fields)
    size = FRAME if part.pieces == 0 else -(-len(block) // part.pieces)
    pieces = [block[at : at + size] for at in range(0, len(block), size)] or [b""]
    out = b""
    for number, piece in enumerate(pieces):
        kind, own = (CONTINUATION, 0) if number else (HEADERS, flags)
        own |= END_HEADERS if number == len(pieces) - 1 else 0
        if part.padding and not number:
            own, piece = own | PADDED, bytes([part.padding]) + piece + bytes(part.padding)
        out += frame(kind, own, stream, piece)
    return out


def data_frames(part, flags, stream):
    if part.padding:
        payload = bytes([part.padding]) + part.content + bytes(part.padding)
        return frame(DATA, flags | PADDED, stream, payload)
    pieces = [part.content[at : at + FRAME] for at in range(0, len(part.content), FRAME)] or [b""]
    last = len(pieces) - 1
    return b"".join(frame(DATA, flags if n == last else 0, stream, piece) for n, piece in enumerate(pieces))


def http2(parts, stream):
    """The bytes of a reply on a stream of HTTP/2. The last part with fields or content ends the stream."""
    ending = [n for n, part in enumerate(parts) if isinstance(part, (Fields, Data))]
    is_open = any(isinstance(part, Open) for part in parts) or not ending
    out = b""
    for number, part in enumerate(parts):
        flags = END_STREAM if not is_open and number == ending[-1] else 0
        if isinstance(part, Fields):
            out += block_frames(part, flags, stream)
        elif isinstance(part, Data):
            out += data_frames(part, flags, stream)
        elif isinstance(part, Frame):
            payload = part.payload(stream) if callable(part.payload) else part.payload
            out += frame(part.kind, part.flags, stream if part.stream else 0, payload)
        elif isinstance(part, Reset):
            out += frame(RST_STREAM, 0, stream, part.http2.to_bytes(4, "big"))
    return out


def http3(part):
    """The bytes of a part of a reply over HTTP/3."""
    if isinstance(part, Fields):
        return http3_frame(HEADERS, qpack(part.fields))
    if isinstance(part, Data):
        return http3_frame(DATA, part.content)
    if isinstance(part, Frame):
        return http3_frame(part.kind, part.payload)
    return part.content if isinstance(part, Raw) else b""
