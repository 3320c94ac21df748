"""Forms of replies to a gRPC call with one message each way: name, content, parts over HTTP/2."""

import gzip

from form import Form
from stream import Data, Fields, Open, Reset
from streams import goaway

GRPC = ("content-type", "application/grpc")
OK = ("grpc-status", "0")
MISSING = ("grpc-status", "5")


def message(content=b"\x0a\2hi", flag=0, length=None):
    length = len(content) if length is None else length
    return Data(bytes([flag]) + length.to_bytes(4, "big") + content)


def head(*fields, status="200", kind=GRPC):
    return Fields([(":status", status), *([kind] if kind else []), *fields])


def trailers(*fields):
    return Fields(list(fields))


def reply(*parts, end=OK):
    """A reply with a head, these parts, and trailers."""
    return [head(), *parts, trailers(end)]


def failed(text, status="5"):
    """A reply without messages, with a status and its text."""
    return [head(("grpc-status", status), ("grpc-message", text))]


def typed(value):
    """A reply with this content type."""
    kind = value and ("content-type", value)
    return [head(kind=kind), message(), trailers(OK)]


STATUSES = [
    Form("plain", "one message, status 0", reply(message())),
    Form("trailers-only", "status 5 in a head that ends the stream", failed("none")),
    Form("trailers-only-ok", "status 0 in a head that ends the stream", [head(OK)]),
    Form("trailers-5", "no message, status 5 in trailers", reply(end=MISSING)),
    Form("message-then-5", "a message, status 5", reply(message(), end=MISSING)),
    Form("status-in-head", "a message, status 0 in the head, no trailers", [head(OK), message()]),
    Form("status-both", "status 0 in the head and in trailers", [head(OK), message(), trailers(OK)]),
    Form("status-differs", "status 5 in the head, 0 in trailers", [head(MISSING), message(), trailers(OK)]),
    Form("status-missing", "trailers without a status", reply(message(), end=("x-a", "a"))),
    Form("status-twice", "two fields with status 0", [head(), message(), trailers(OK, OK)]),
    Form("status-twice-5", "status 0, then status 5", [head(), message(), trailers(OK, MISSING)]),
    Form("no-trailers", "a message, and the end of the stream", [head(), message()]),
    Form("no-status", "a head, and the end of the stream", [head()]),
    Form("status-17", "status 17, which has no name", reply(message(), end=("grpc-status", "17"))),
    Form("status-99", "status 99, which has no name", failed("odd", "99")),
    Form("status-text", "`grpc-status: zero`", reply(message(), end=("grpc-status", "zero"))),
    Form("status-empty", "an empty `grpc-status`", reply(message(), end=("grpc-status", ""))),
    Form("status-negative", "`grpc-status: -1`", reply(message(), end=("grpc-status", "-1"))),
    Form("status-00", "`grpc-status: 00`", reply(message(), end=("grpc-status", "00"))),
    Form("status-huge", "a status of 20 digits", reply(message(), end=("grpc-status", "9" * 20))),
    Form("status-blank", "a blank behind status 0", reply(message(), end=("grpc-status", "0 "))),
    Form("status-blank-5", "a blank behind status 5", failed("none", "5 ")),
]

TEXTS = [
    Form("text-blank", "a text that ends with a blank", failed("Exception calling application: ")),
    Form("text-blank-trailers", "the same in trailers", [head(), trailers(MISSING, ("grpc-message", "calling: "))]),
    Form("text-blank-begin", "a text that begins with a blank", failed(" none")),
    Form("text-only-blank", "a text of one blank", failed(" ")),
    Form("text-percent", "a percent sign without digits", failed("100% none %z %4")),
    Form("text-utf-8", "UTF-8 that was not encoded", failed("n\xc3\xb6")),
    Form("text-broken-utf-8", "an encoded byte that is not UTF-8", failed("n%ff")),
    Form("text-long", "a text of 7 kB", failed("n" * 7_000)),
    Form("text-ok", "a text with status 0", [head(), message(), trailers(OK, ("grpc-message", "fine"))]),
    Form("binary-broken", "`x-bin` that is not base64", [head(), message(), trailers(OK, ("x-bin", "###"))]),
    Form(
        "metadata-blank",
        "metadata that ends with a blank",
        [head(("x-a", "a ")), message(), trailers(OK, ("x-b", "b "))],
    ),
    Form("metadata-upper", "metadata with upper-case letters", [head(("X-A", "a")), message(), trailers(OK)]),
    Form(
        "metadata-connection",
        "`connection: close` in the head",
        [head(("connection", "close")), message(), trailers(OK)],
    ),
    Form("trailers-pseudo", "`:status` in trailers", [head(), message(), trailers((":status", "200"), OK)]),
]

MESSAGES = [
    Form("no-message", "no message, status 0", reply()),
    Form("two-messages", "two messages, status 0", reply(message(), message())),
    Form("empty-message", "a message of no bytes", reply(message(b""))),
    Form("not-protobuf", "a message that the schema does not have", reply(message(b"\xff\xff"))),
    Form("compressed-no-coding", "a compressed message, no `grpc-encoding`", reply(message(flag=1))),
    Form(
        "compressed-identity",
        "a compressed message, `grpc-encoding: identity`",
        [head(("grpc-encoding", "identity")), message(flag=1), trailers(OK)],
    ),
    Form(
        "compressed-gzip",
        "a message with gzip and its `grpc-encoding`",
        [head(("grpc-encoding", "gzip")), message(gzip.compress(b"\x0a\2hi"), 1), trailers(OK)],
    ),
    Form(
        "coding-unused",
        "`grpc-encoding: gzip`, a plain message",
        [head(("grpc-encoding", "gzip")), message(), trailers(OK)],
    ),
    Form(
        "coding-odd", "`grpc-encoding: odd`, a plain message", [head(("grpc-encoding", "odd")), message(), trailers(OK)]
    ),
    Form("flag-2", "a message with the flag 2", reply(message(flag=2))),
    Form("length-above", "a length beyond the message", reply(message(length=9))),
    Form("length-below", "a length below the message", reply(message(length=3))),
    Form("length-4g", "a length of 4 GiB", reply(message(length=0xFFFF_FFFF))),
    Form("prefix-cut", "the end inside a prefix", reply(Data(b"\0\0\0"))),
    Form("above-4m", "a message of 5 MB", reply(message(b"\x0a" + b"\xc0\x96\xb1\x02" + b"a" * 5_000_000))),
    Form("message-pieces", "a DATA frame for each byte", reply(*[Data(bytes([b])) for b in message().content])),
    Form("empty-data", "empty DATA frames around a message", reply(Data(b""), message(), Data(b""))),
    Form("padding", "padding of a message", reply(Data(message().content, padding=99))),
]

HTTP = [
    Form("type-missing", "no content type", typed(None)),
    Form("type-html", "`text/html`, a message and status 0", typed("text/html")),
    Form("type-proto", "`application/grpc+proto`", typed("application/grpc+proto")),
    Form("type-parameter", "`application/grpc; a=b`", typed("application/grpc; a=b")),
    Form("type-upper", "`Application/GRPC`", typed("Application/GRPC")),
    Form("type-web", "`application/grpc-web`", typed("application/grpc-web")),
    Form("type-blank", "`application/grpc ` with a blank", typed("application/grpc ")),
    Form("page-200", "a page with status 200", [head(kind=("content-type", "text/html")), Data(b"<html>")]),
    Form(
        "http-404", "a page with status 404", [head(kind=("content-type", "text/html"), status="404"), Data(b"<html>")]
    ),
    Form("http-503", "503 without a gRPC status", [head(status="503")]),
    Form(
        "http-503-page",
        "a page with status 503",
        [head(kind=("content-type", "text/html"), status="503"), Data(b"<html>")],
    ),
    Form("http-503-14", "503 and status 14", [head(("grpc-status", "14"), status="503")]),
    Form("http-503-ok", "503, a message and status 0", [head(status="503"), message(), trailers(OK)]),
    Form("http-429", "429 without a gRPC status", [head(kind=None, status="429")]),
    Form("http-204", "204", [head(kind=None, status="204")]),
    Form("interim", "103 before the reply", [Fields([(":status", "103")]), *reply(message())]),
    Form("reset-after", "a reset without error behind the trailers", [*reply(message()), Reset(0, 0)]),
    Form("reset-cancel-after", "a reset with CANCEL behind the trailers", [*reply(message()), Reset(8, 0)]),
    Form("reset-instead", "a message, a reset without error", [head(), message(), Reset(0, 0), Open()]),
    Form("reset-cancel", "a message, a reset with CANCEL", [head(), message(), Reset(8, 0), Open()]),
    Form("reset-calm", "a reset with ENHANCE_YOUR_CALM", [Reset(11, 0)]),
    Form("reset-refused", "a rejection before the reply", [Reset(7, 0)]),
    Form("goaway", "GOAWAY that includes the stream, then the reply", [goaway(True, 0), *reply(message())]),
    Form("close", "a message, and the end of the connection", [head(), message(), Open()], close=True),
]

FORMS = STATUSES + TEXTS + MESSAGES + HTTP
