"""Forms of replies over HTTP/1.1: name, content, bytes on the wire."""

import gzip

from form import Form

OK = b"HTTP/1.1 200 OK\r\n"
TWO = b"Content-Length: 2\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"2\r\nok\r\n0\r\n\r\n"
ZIPPED = gzip.compress(b"ok" * 500)


def head(fields, body=b"ok"):
    """A reply with status 200, these field lines with their ends, and a body."""
    return OK + fields + b"\r\n" + body


def sized(fields=b"", body=b"ok"):
    """The same with the length of the body."""
    return head(fields + b"Content-Length: %d\r\n" % len(body), body)


def line(first):
    """A reply with another first line, which includes its end."""
    return first + TWO + b"\r\nok"


def interim(status):
    return b"HTTP/1.1 %d Interim\r\nLink: </a>\r\n\r\n" % status + sized()


STATUS = [
    Form("plain", "`200 OK`, `Content-Length: 2`, 2 bytes", sized()),
    Form("no-reason", "`HTTP/1.1 200` without a blank and reason", line(b"HTTP/1.1 200\r\n")),
    Form("empty-reason", "`HTTP/1.1 200 ` without a reason", line(b"HTTP/1.1 200 \r\n")),
    Form("reason-latin-1", "a reason with a byte beyond ASCII", line(b"HTTP/1.1 200 \xe9\r\n")),
    Form("status-999", "status 999", line(b"HTTP/1.1 999 Odd\r\n")),
    Form("status-700", "status 700", line(b"HTTP/1.1 700 Odd\r\n")),
    Form("status-099", "status 099", line(b"HTTP/1.1 099 Odd\r\n")),
    Form("status-000", "status 000", line(b"HTTP/1.1 000 Odd\r\n")),
    Form("status-20", "a status of two digits", line(b"HTTP/1.1 20 Odd\r\n")),
    Form("status-2000", "a status of four digits", line(b"HTTP/1.1 2000 Odd\r\n")),
    Form("status-two-blanks", "two blanks before the status", line(b"HTTP/1.1  200 OK\r\n")),
    Form("version-1.0", "`HTTP/1.0`, with a length", line(b"HTTP/1.0 200 OK\r\n")),
    Form("version-1.2", "`HTTP/1.2`", line(b"HTTP/1.2 200 OK\r\n")),
    Form("version-2", "`HTTP/2 200` as text", line(b"HTTP/2 200 OK\r\n")),
    Form("version-lower", "`http/1.1` in lower case", line(b"http/1.1 200 OK\r\n")),
    Form("version-0.9", "a body without a head, and the end", b"only a body\n", close=True),
    Form("icy", "`ICY 200 OK`", line(b"ICY 200 OK\r\n")),
    Form("empty-line-first", "an empty line before the reply", b"\r\n" + sized()),
    Form("nothing", "the end of the connection, without a byte", b"", close=True),
    Form("head-cut", "the end inside the head", OK + b"Content-Le", close=True),
]

INTERIM = [
    Form("interim-100", "100 before the reply", interim(100)),
    Form("interim-102", "102 before the reply", interim(102)),
    Form("interim-103", "103 before the reply", interim(103)),
    Form("interim-199", "199 before the reply", interim(199)),
    Form("interim-20", "twenty times 103 before the reply", interim(103)[: -len(sized())] * 20 + sized()),
    Form("interim-end", "100, and the end", b"HTTP/1.1 100 Continue\r\n\r\n", close=True),
    Form("switch", "101, and the end", b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", close=True),
]

BODY = [
    Form("empty", "`Content-Length: 0`", sized(body=b"")),
    Form("204-body", "204 and 2 bytes", b"HTTP/1.1 204 None\r\n" + TWO + b"\r\nok"),
    Form("204-chunks", "204 and an empty chunked body", b"HTTP/1.1 204 None\r\n" + CHUNKED + b"\r\n0\r\n\r\n"),
    Form("205-body", "205 with 2 bytes", line(b"HTTP/1.1 205 Reset\r\n")),
    Form("304-length", "304 with a length and no body", b"HTTP/1.1 304 Same\r\nContent-Length: 500\r\n\r\n"),
    Form("304-body", "304 and 2 bytes", b"HTTP/1.1 304 Same\r\n\r\nok"),
    Form("head-length", "a length, no body (HEAD)", head(b"Content-Length: 500\r\n", b""), method="HEAD"),
    Form("head-body", "a length and a body (HEAD)", sized(), method="HEAD"),
    Form("length-equal", "two equal `Content-Length`", head(TWO + TWO)),
    Form("length-list", "`Content-Length: 2, 2`", head(b"Content-Length: 2, 2\r\n")),
    Form("length-differs", "`Content-Length` 2 and 3", head(TWO + b"Content-Length: 3\r\n", b"ok!")),
    Form("length-below", "a length of 1, and 2 bytes", head(b"Content-Length: 1\r\n")),
    Form("length-above", "a length of 9, 2 bytes, and the end", head(b"Content-Length: 9\r\n"), close=True),
    Form("length-plus", "`Content-Length: +2`", head(b"Content-Length: +2\r\n")),
    Form("length-negative", "`Content-Length: -2`", head(b"Content-Length: -2\r\n"), close=True),
    Form("length-hex", "`Content-Length: 0x2`", head(b"Content-Length: 0x2\r\n"), close=True),
    Form("length-text", "`Content-Length: two`", head(b"Content-Length: two\r\n"), close=True),
    Form("length-unit", "`Content-Length: 2 bytes`", head(b"Content-Length: 2 bytes\r\n"), close=True),
    Form("length-empty", "an empty `Content-Length`, and the end", head(b"Content-Length:\r\n"), close=True),
    Form("length-huge", "a length of 20 digits", head(b"Content-Length: 99999999999999999999\r\n"), close=True),
    Form("no-length", "no length, 2 bytes, and the end", head(b""), close=True),
    Form("surplus-reply", "a second reply that nobody requested", sized() + sized()),
    Form("coding-unknown", "`Content-Encoding: odd`", sized(b"Content-Encoding: odd\r\n")),
    Form("coding-unknown-decode", "the same, decoded", sized(b"Content-Encoding: odd\r\n"), decode=True),
    Form("gzip", "a gzip body, decoded", sized(b"Content-Encoding: gzip\r\n", ZIPPED), decode=True),
    Form(
        "gzip-cut",
        "a gzip body without its end, decoded",
        sized(b"Content-Encoding: gzip\r\n", ZIPPED[:-12]),
        decode=True,
    ),
    Form(
        "gzip-sum",
        "a gzip body with a wrong checksum, decoded",
        sized(b"Content-Encoding: gzip\r\n", ZIPPED[:-8] + b"sum!" + ZIPPED[-4:]),
        decode=True,
    ),
    Form(
        "gzip-surplus",
        "a gzip body and zeros behind it, decoded",
        sized(b"Content-Encoding: gzip\r\n", ZIPPED + bytes(8)),
        decode=True,
    ),
    Form("gzip-plain", "`gzip` for a plain body, decoded", sized(b"Content-Encoding: gzip\r\n"), decode=True),
    Form("gzip-empty", "`gzip` for an empty body, decoded", sized(b"Content-Encoding: gzip\r\n", b""), decode=True),
]

CHUNKING = [
    Form("chunks", "a chunked body", head(CHUNKED, CHUNKS)),
    Form("chunk-extension", "a chunk extension", head(CHUNKED, b"2;a=b\r\nok\r\n0;c\r\n\r\n")),
    Form("chunk-trailers", "trailers", head(CHUNKED, CHUNKS[:-2] + b"X-Sum: 1\r\n\r\n")),
    Form("chunk-trailer-odd", "a trailer line without a colon", head(CHUNKED, CHUNKS[:-2] + b"odd\r\n\r\n")),
    Form("chunk-zeros", "a chunk size with zeros before it", head(CHUNKED, b"0002\r\nok\r\n000\r\n\r\n")),
    Form("chunk-size-blank", "a blank behind a chunk size", head(CHUNKED, b"2 \r\nok\r\n0\r\n\r\n")),
    Form("chunk-size-odd", "a chunk size that is no number", head(CHUNKED, b"zz\r\nok\r\n0\r\n\r\n")),
    Form("chunk-size-0x", "a chunk size of `0x2`", head(CHUNKED, b"0x2\r\nok\r\n0\r\n\r\n")),
    Form("chunk-size-huge", "a chunk size of 18 digits", head(CHUNKED, b"f" * 18 + b"\r\nok\r\n0\r\n\r\n")),
    Form("chunk-size-empty", "an empty line instead of a chunk size", head(CHUNKED, b"\r\nok\r\n0\r\n\r\n")),
    Form("chunk-long", "a chunk longer than its size", head(CHUNKED, b"1\r\nok\r\n0\r\n\r\n")),
    Form("chunk-lf", "lines of chunks that end with LF only", head(CHUNKED, CHUNKS.replace(b"\r\n", b"\n"))),
    Form("chunk-cut", "the end without a last chunk", head(CHUNKED, b"2\r\nok\r\n"), close=True),
    Form("chunk-cut-last", "the end inside the last chunk", head(CHUNKED, b"2\r\nok\r\n0\r\n"), close=True),
    Form("chunk-length", "`Content-Length` and `chunked`", head(TWO + CHUNKED, CHUNKS)),
    Form("chunk-upper", "`Transfer-Encoding: CHUNKED`", head(b"Transfer-Encoding: CHUNKED\r\n", CHUNKS)),
    Form("chunk-twice", "`chunked` in two fields", head(CHUNKED + CHUNKED, CHUNKS)),
    Form("chunk-list", "`chunked, chunked`", head(b"Transfer-Encoding: chunked, chunked\r\n", CHUNKS), close=True),
    Form("transfer-identity", "`Transfer-Encoding: identity`, a length", sized(b"Transfer-Encoding: identity\r\n")),
    Form(
        "transfer-gzip",
        "`Transfer-Encoding: gzip, chunked`",
        head(b"Transfer-Encoding: gzip, chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(ZIPPED), ZIPPED)),
    ),
    Form("transfer-odd", "`Transfer-Encoding: odd`", head(b"Transfer-Encoding: odd\r\n"), close=True),
    Form("chunk-1.0", "`HTTP/1.0` and `chunked`", b"HTTP/1.0 200 OK\r\n" + CHUNKED + b"\r\n" + CHUNKS, close=True),
]

FIELDS = [
    Form("fold", "a folded field", sized(b"X-A: a\r\n b\r\n")),
    Form("fold-first", "a folded line before any field", head(b" x\r\n" + TWO)),
    Form("lf", "lines that end with LF only", sized(b"X-A: a\r\n").replace(b"\r\n", b"\n")),
    Form("cr", "CR inside a value", sized(b"X-A: a\rb\r\n")),
    Form("nul", "NUL inside a value", sized(b"X-A: a\0b\r\n")),
    Form("control", "a control character (0x01) inside a value", sized(b"X-A: a\x01b\r\n")),
    Form("latin-1", "a byte beyond ASCII inside a value", sized(b"X-A: \xe9\r\n")),
    Form("blank-end", "blanks at both ends of a value", sized(b"X-A:  \ta \t\r\n")),
    Form("no-blank", "no blank before a value", sized(b"X-A:a\r\n")),
    Form("value-empty", "an empty value", sized(b"X-A:\r\n")),
    Form("name-empty", "an empty name", sized(b": a\r\n")),
    Form("name-blank", "a blank before the colon", sized(b"X-A : a\r\n")),
    Form("name-inner-blank", "a blank inside a name", sized(b"X A: a\r\n")),
    Form("name-latin-1", "a byte beyond ASCII in a name", sized(b"X-\xe9: a\r\n")),
    Form("name-odd", "`X(A)@` as a name", sized(b"X(A)@: a\r\n")),
    Form("length-name-blank", "`Content-Length : 2`", head(b"Content-Length : 2\r\n"), close=True),
    Form("no-colon", "a line without a colon", sized(b"odd\r\n")),
    Form("cookies-150", "150 `Set-Cookie`", sized(b"".join(b"Set-Cookie: c%d=v\r\n" % n for n in range(150)))),
    Form("fields-2000", "2,000 fields", sized(b"".join(b"X-%d: v\r\n" % n for n in range(2000)))),
    Form("field-90k", "a field of 90 kB", sized(b"X-A: " + b"a" * 90_000 + b"\r\n")),
    Form("head-400k", "a head of 400 kB", sized(b"".join(b"X-%d: %s\r\n" % (n, b"a" * 4000) for n in range(100)))),
    Form("connection-close", "`Connection: close`, and no end", sized(b"Connection: close\r\n")),
]

FORMS = STATUS + INTERIM + BODY + CHUNKING + FIELDS
