"""Forms of replies over HTTP/2 and HTTP/3: name, content, parts."""

import gzip

from form import Form
from stream import (
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    SETTINGS,
    WINDOW_UPDATE,
    Data,
    Fields,
    Frame,
    Open,
    Raw,
    Reset,
    Stop,
)

STATUS = (":status", "200")
OK = Data(b"ok")
ZIPPED = gzip.compress(b"ok" * 500)


def head(*fields, status="200"):
    return Fields([(":status", status), *fields])


def sized(length, *rest):
    return [head(("content-length", length)), *rest]


def with_field(name, value):
    """A reply with this field in its head."""
    return [head((name, value)), OK]


def with_trailer(*fields):
    return [head(), OK, Fields(list(fields))]


def interim(status):
    return [Fields([(":status", str(status)), ("link", "</a>")]), head(), OK]


def coded(coding, body):
    return [head(("content-encoding", coding)), Data(body)]


STATUSES = [
    Form("plain", "`:status` 200, 2 bytes", [head(), OK]),
    Form("status-999", "status 999", [head(status="999"), OK]),
    Form("status-700", "status 700", [head(status="700"), OK]),
    Form("status-099", "status 099", [head(status="099"), OK]),
    Form("status-000", "status 000", [head(status="000"), OK]),
    Form("status-20", "a status of two digits", [head(status="20"), OK]),
    Form("status-2000", "a status of four digits", [head(status="2000"), OK]),
    Form("status-blank", "a blank behind the status", [head(status="200 "), OK]),
    Form("status-reason", "`:status` `200 OK`", [head(status="200 OK"), OK]),
    Form("status-missing", "no `:status`", [Fields([("server", "x")]), OK]),
    Form("status-twice", "two `:status`", [head(STATUS), OK]),
    Form("status-late", "`:status` behind another field", [Fields([("server", "x"), STATUS]), OK]),
    Form("status-upper", "`:Status`", [Fields([(":Status", "200")]), OK]),
    Form("head-empty", "a head without fields", [Fields([]), OK]),
]

INTERIM = [
    Form("interim-100", "100 before the reply", interim(100)),
    Form("interim-102", "102 before the reply", interim(102)),
    Form("interim-103", "103 before the reply", interim(103)),
    Form("interim-199", "199 before the reply", interim(199)),
    Form("interim-20", "twenty times 103 before the reply", interim(103)[:1] * 20 + interim(103)[1:]),
    Form("interim-end", "103, and the end of the stream", interim(103)[:1]),
    Form("interim-body", "103, and 2 bytes", [interim(103)[0], OK]),
    Form(
        "interim-blank",
        "103 with a value that ends with a blank",
        [Fields([(":status", "103"), ("link", "a ")]), head(), OK],
    ),
    Form("switch", "101 before the reply", interim(101)),
]

BODY = [
    Form("empty", "a head, and the end of the stream", [head()]),
    Form("empty-data", "a head, and an empty DATA frame", [head(), Data(b"")]),
    Form("data-empty-first", "an empty DATA frame before the body", [head(), Data(b""), OK]),
    Form("data-empty-last", "an empty DATA frame behind the body", [head(), OK, Data(b"")]),
    Form("data-first", "DATA before HEADERS", [OK, head()]),
    Form("nothing", "the end of the stream, without a reply", [Data(b"")]),
    Form("204-body", "204 and 2 bytes", [head(status="204"), OK]),
    Form("204-empty-data", "204 and an empty DATA frame", [head(status="204"), Data(b"")]),
    Form("204-length", "204, `content-length: 2` and no body", [head(("content-length", "2"), status="204")]),
    Form("205-body", "205 and 2 bytes", [head(status="205"), OK]),
    Form("304-length", "304 with a length and no body", [head(("content-length", "500"), status="304")]),
    Form("304-body", "304 and 2 bytes", [head(status="304"), OK]),
    Form("head-length", "a length, no body (HEAD)", sized("500"), method="HEAD"),
    Form("head-body", "a length and a body (HEAD)", sized("2", OK), method="HEAD"),
    Form("length", "`content-length: 2`", sized("2", OK)),
    Form("length-equal", "two equal `content-length`", [head(("content-length", "2"), ("content-length", "2")), OK]),
    Form("length-list", "`content-length: 2, 2`", sized("2, 2", OK)),
    Form("length-differs", "`content-length` 2 and 3", [head(("content-length", "2"), ("content-length", "3")), OK]),
    Form("length-below", "a length of 1, and 2 bytes", sized("1", OK)),
    Form("length-above", "a length of 9, and 2 bytes", sized("9", OK)),
    Form("length-above-empty", "a length of 9, and no body", sized("9")),
    Form("length-plus", "`content-length: +2`", sized("+2", OK)),
    Form("length-negative", "`content-length: -2`", sized("-2", OK)),
    Form("length-blank", "a blank behind a length", sized("2 ", OK)),
    Form("length-empty", "an empty `content-length`", sized("", OK)),
    Form("length-huge", "a length of 20 digits", sized("99999999999999999999", OK)),
    Form("coding-unknown", "`content-encoding: odd`", coded("odd", b"ok")),
    Form("coding-unknown-decode", "the same, decoded", coded("odd", b"ok"), decode=True),
    Form("gzip", "a gzip body, decoded", coded("gzip", ZIPPED), decode=True),
    Form("gzip-blank", "`gzip ` with a blank, decoded", coded("gzip ", ZIPPED), decode=True),
    Form("gzip-cut", "a gzip body without its end, decoded", coded("gzip", ZIPPED[:-12]), decode=True),
]

FIELDS = [
    Form("blank-end", "a value that ends with a blank", with_field("x-a", "a ")),
    Form("blank-begin", "a value that begins with a blank", with_field("x-a", " a")),
    Form("blank-tab", "blanks and tabs at both ends", with_field("x-a", "\t a \t")),
    Form("blank-only", "a value of one blank", with_field("x-a", " ")),
    Form("value-empty", "an empty value", with_field("x-a", "")),
    Form("value-cr", "CR inside a value", with_field("x-a", "a\rb")),
    Form("value-lf", "LF inside a value", with_field("x-a", "a\nb")),
    Form("value-lf-end", "a value that ends with LF", with_field("x-a", "a\n")),
    Form("value-nul", "NUL inside a value", with_field("x-a", "a\0b")),
    Form("value-control", "a control character (0x01) inside a value", with_field("x-a", "a\x01b")),
    Form("value-latin-1", "a byte beyond ASCII inside a value", with_field("x-a", "\xe9")),
    Form("name-upper", "a name with upper-case letters", with_field("X-A", "a")),
    Form("name-empty", "an empty name", with_field("", "a")),
    Form("name-blank", "a blank inside a name", with_field("x a", "a")),
    Form("name-colon", "a colon inside a name", with_field("x:a", "a")),
    Form("name-latin-1", "a byte beyond ASCII in a name", with_field("x-\xe9", "a")),
    Form("name-odd", "`x(a)@` as a name", with_field("x(a)@", "a")),
    Form("connection", "`connection: keep-alive`", with_field("connection", "keep-alive")),
    Form("keep-alive", "`keep-alive: timeout=5`", with_field("keep-alive", "timeout=5")),
    Form("proxy-connection", "`proxy-connection: close`", with_field("proxy-connection", "close")),
    Form("transfer-encoding", "`transfer-encoding: chunked`", with_field("transfer-encoding", "chunked")),
    Form("upgrade", "`upgrade: h2c`", with_field("upgrade", "h2c")),
    Form("te", "`te: gzip`", with_field("te", "gzip")),
    Form("pseudo-request", "`:path` in a reply", with_field(":path", "/")),
    Form("pseudo-unknown", "`:odd` in a reply", with_field(":odd", "a")),
    Form("cookies-150", "150 `set-cookie`", [head(*[("set-cookie", f"c{n}=v") for n in range(150)]), OK]),
    Form("fields-2000", "2,000 fields", [head(*[(f"x-{n}", "v") for n in range(2000)]), OK]),
    Form("field-60k", "a field of 60 kB", with_field("x-a", "a" * 60_000)),
    Form("field-90k", "a field of 90 kB", with_field("x-a", "a" * 90_000)),
    Form("head-400k", "a head of 400 kB", [head(*[(f"x-{n}", "a" * 4000) for n in range(100)]), OK]),
]

TRAILERS = [
    Form("trailers", "trailers", with_trailer(("x-sum", "1"))),
    Form("trailers-empty", "trailers without fields", with_trailer()),
    Form("trailers-blank", "a trailer that ends with a blank", with_trailer(("x-sum", "1 "))),
    Form("trailers-pseudo", "`:path` in trailers", with_trailer((":path", "/"))),
    Form("trailers-status", "`:status` in trailers", with_trailer(STATUS)),
    Form("trailers-upper", "upper-case letters in trailers", with_trailer(("X-Sum", "1"))),
    Form("trailers-connection", "`connection` in trailers", with_trailer(("connection", "close"))),
    Form("trailers-length", "`content-length: 9` in trailers", with_trailer(("content-length", "9"))),
    Form("trailers-first", "trailers without a body", [head(), Fields([("x-sum", "1")])]),
    Form("trailers-data", "DATA behind trailers", [*with_trailer(("x-sum", "1")), OK]),
    Form("trailers-twice", "two blocks of trailers", [*with_trailer(("x-sum", "1")), Fields([("x-sum", "2")])]),
]

# CANCEL, REFUSED_STREAM, and their counterparts of HTTP/3 (RFC 9113, section 7; RFC 9114, section 8.1).
NO_ERROR, INTERNAL, CANCEL, REFUSED = (
    Reset(0, 0x100),
    Reset(2, 0x102),
    Reset(8, 0x10C),
    Reset(7, 0x10B),
)

RESETS = [
    Form(
        "reset-instead",
        "all bytes of a length, a reset without error instead of the end",
        [*sized("2", OK), NO_ERROR, Open()],
    ),
    Form("reset-unknown", "no length, a reset without error instead of the end", [head(), OK, NO_ERROR, Open()]),
    Form("reset-short", "a part of a length, a reset without error", [*sized("9", OK), NO_ERROR, Open()]),
    Form("reset-cancel", "all bytes of a length, a reset with CANCEL", [*sized("2", OK), CANCEL, Open()]),
    Form("reset-internal", "a reset with INTERNAL_ERROR before the reply", [INTERNAL]),
    Form("reset-refused", "a rejection before the reply", [REFUSED]),
    Form("reset-refused-late", "a rejection behind the head", [head(), REFUSED, Open()]),
]

COMMON = STATUSES + INTERIM + BODY + FIELDS + TRAILERS + RESETS


def goaway(last, code):
    def payload(stream):
        return (stream if last else 0).to_bytes(4, "big") + code.to_bytes(4, "big")

    return Frame(GOAWAY, payload, stream=False)


HTTP2 = COMMON + [
    Form("reset-after", "a reset without error behind the reply", [*sized("2", OK), NO_ERROR]),
    Form("reset-cancel-after", "a reset with CANCEL behind the reply", [*sized("2", OK), CANCEL]),
    Form("padding", "padding of both frames", [Fields([STATUS], padding=9), Data(b"ok", padding=200)]),
    Form("padding-only", "a DATA frame of padding", [head(), Data(b"", padding=50), OK]),
    Form("continuation", "a head in 5 frames", [Fields([STATUS, ("x-a", "a" * 99)], pieces=5), OK]),
    Form("continuation-200", "a head in 200 frames", [Fields([STATUS, ("x-a", "a" * 990)], pieces=200), OK]),
    Form("unknown-frame", "a frame of an unknown type", [Frame(0x42, b"odd", 0xFF), head(), OK]),
    Form("priority", "PRIORITY before the head", [Frame(PRIORITY, bytes(5)), head(), OK]),
    Form("ping", "PING before the head", [Frame(PING, bytes(8), stream=False), head(), OK]),
    Form("ping-size", "PING of 3 bytes", [Frame(PING, bytes(3), stream=False), head(), OK]),
    Form("window-0", "WINDOW_UPDATE of 0 bytes", [Frame(WINDOW_UPDATE, bytes(4)), head(), OK]),
    Form("settings-stream", "SETTINGS on the stream", [Frame(SETTINGS, b""), head(), OK]),
    Form("settings-again", "SETTINGS before the head", [Frame(SETTINGS, b"", stream=False), head(), OK]),
    Form("push", "PUSH_PROMISE, which was refused", [Frame(PUSH_PROMISE, bytes(3) + b"\2\x88", 4), head(), OK]),
    Form("block-broken", "a field block that cannot be decoded", [Frame(HEADERS, b"\xff" * 6, 4)]),
    Form("goaway-before", "GOAWAY that includes the stream, then the reply", [goaway(True, 0), head(), OK]),
    Form("goaway-after", "the reply, GOAWAY, and the end of the connection", [head(), OK, goaway(True, 0)], close=True),
    Form("goaway-error", "the reply, GOAWAY with an error, and the end", [head(), OK, goaway(True, 2)], close=True),
    Form("goaway-rejected", "GOAWAY that excludes the stream, and the end", [goaway(False, 0)], close=True),
    Form("close-cut", "the end of the connection inside the body", [*sized("9", OK), Open()], close=True),
    Form("close-known", "all bytes of a length, and the end of the connection", [*sized("2", OK), Open()], close=True),
    Form("close-unknown", "no length, and the end of the connection", [head(), OK, Open()], close=True),
    Form("close-first", "the end of the connection before the reply", [Open()], close=True),
]

HTTP3 = COMMON + [
    Form("unknown-frame", "a frame of an unknown type", [Frame(0x21, b"odd"), head(), OK]),
    Form("unknown-frame-last", "a frame of an unknown type at the end", [head(), OK, Frame(0x21, b"odd")]),
    Form("frame-of-http2", "a frame type of HTTP/2 (PING)", [Frame(PING, bytes(8)), head(), OK]),
    Form("settings-stream", "SETTINGS on the stream", [Frame(SETTINGS, b""), head(), OK]),
    Form("push", "PUSH_PROMISE, which was not permitted", [Frame(PUSH_PROMISE, b"\0\0\0"), head(), OK]),
    Form("frame-cut", "the end inside a DATA frame", [head(), Raw(b"\0\x09ok")]),
    Form("frame-head-cut", "the end inside the header of a frame", [head(), OK, Raw(b"\0")]),
    Form("block-broken", "a reference to the dynamic table", [Frame(HEADERS, b"\2\0\x80"), OK]),
    Form("block-index", "an index beyond the static table", [Frame(HEADERS, b"\0\0\xff\x7f"), OK]),
    Form("stop", "STOP_SENDING without error, and the reply", [Stop(0x100), head(), OK]),
    Form("close-cut", "the end of the connection inside the body", [*sized("9", OK), Open()], close=True),
    Form("close-first", "the end of the connection before the reply", [Open()], close=True),
]
