"""grpcio as a client of the bookshop: all four kinds, statuses, deadlines, health, reflection.

Takes ADDRESS SECURE_ADDRESS CERTIFICATE ISBN TITLE: the shop, the same over TLS, and one of its books. Knows no .proto
file: every message comes from server reflection. Prints a line for each check.
"""

import itertools
import queue
import sys
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

ADDRESS, SECURE, CERTIFICATE, ISBN, TITLE = sys.argv[1:6]
PATIENCE = 60
# Valid, and in no catalogue.
UNKNOWN = "0000000000"
WRONG = "0000000001"
failed = []


def check(what, holds, why=""):
    print(f"ok {what}" if holds else f"FAILED {what}: {why}")
    if not holds:
        failed.append(what)


def status_of(call):
    """The status of a call that must fail, and its details."""
    try:
        call()
        return grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        return error.code(), error.details()


class Shop:
    """The methods of the service, made from reflection."""

    def __init__(self, channel, reflection):
        self.database = ProtoReflectionDescriptorDatabase(reflection)
        self.pool = descriptor_pool.DescriptorPool(self.database)
        service = self.pool.FindServiceByName("bookshop.v1.Bookshop")
        makers = {
            (False, False): channel.unary_unary,
            (False, True): channel.unary_stream,
            (True, False): channel.stream_unary,
            (True, True): channel.stream_stream,
        }
        for method in service.methods:
            request, reply = (message_factory.GetMessageClass(one) for one in (method.input_type, method.output_type))
            make = makers[method.client_streaming, method.server_streaming]
            path = f"/{service.full_name}/{method.name}"
            call = make(path, request_serializer=request.SerializeToString, response_deserializer=reply.FromString)
            setattr(self, method.name, call)
            setattr(self, f"{method.name}Request", request)


def check_kinds(name, shop):
    """The four kinds of methods."""
    book = shop.GetBook(shop.GetBookRequest(isbn=ISBN), timeout=PATIENCE).books[0]
    check(f"{name}: unary", (book.isbn, book.title) == (ISBN, TITLE), book)
    # SIZE_HEAVY5
    large = shop.GetBook(shop.GetBookRequest(isbn=ISBN, size=6), timeout=PATIENCE)
    check(f"{name}: a large reply", len(large.books) == 5 and large.ByteSize() > 30_000, large.ByteSize())
    request = shop.ListBooksRequest(isbn=ISBN, count=200, gap="1ms")
    times = []
    for reply in shop.ListBooks(request, timeout=PATIENCE):
        times.append((reply.number, reply.due_ns, reply.sent_ns, time.monotonic_ns()))
    numbers = [number for number, *_ in times] == list(range(1, 201))
    check(f"{name}: server streaming", numbers, [number for number, *_ in times])
    gaps = {later[1] - earlier[1] for earlier, later in itertools.pairwise(times)}
    check(f"{name}: the law of its gaps", gaps == {1_000_000}, gaps)
    in_order = all(due <= sent <= here for _, due, sent, here in times)
    check(f"{name}: its times are on the clock of this machine", in_order, times[:3])
    delays = sorted(here - sent for _, _, sent, here in times)
    print(f"ok {name}: half of the messages are here within {delays[100] / 1000:.0f} us")
    lines = [shop.PlaceOrderRequest(isbn=ISBN, copies=1) for _ in range(100)]
    total = shop.PlaceOrder(iter(lines), timeout=PATIENCE)
    price = round(float(book.price) * 100)
    check(f"{name}: client streaming", (total.lines, total.total_cents) == (100, 100 * price), total)
    sent = queue.Queue()
    quotes = shop.QuoteLines(iter(sent.get, None), timeout=PATIENCE)
    turns = []
    for _ in range(100):
        # The next line depends on the quote of this one.
        sent.put(shop.QuoteLinesRequest(isbn=ISBN, copies=1))
        turns.append(next(quotes).total_cents)
    sent.put(None)
    rest = list(quotes)
    wanted = [turn * price for turn in range(1, 101)]
    check(f"{name}: bidirectional streaming", turns == wanted and not rest, (turns[:3], rest))
    with futures.ThreadPoolExecutor(32) as pool:
        ask = lambda _: shop.GetBook(shop.GetBookRequest(isbn=ISBN), timeout=PATIENCE).books[0].title
        titles = set(pool.map(ask, range(1000)))
    check(f"{name}: a thousand calls at once", titles == {TITLE}, titles)


def check_statuses(channel, shop):
    """Statuses of every sort, and deadlines."""
    wanted = [
        ("an unknown book", shop.GetBook, shop.GetBookRequest(isbn=UNKNOWN), "NOT_FOUND", "/isbns.csv"),
        ("an invalid ISBN", shop.GetBook, shop.GetBookRequest(isbn=WRONG), "INVALID_ARGUMENT", "not an ISBN"),
        ("a text beyond ASCII", shop.GetBook, shop.GetBookRequest(isbn="\u00fc%"), "INVALID_ARGUMENT", "\u00fc%"),
        ("a long message", shop.GetBook, shop.GetBookRequest(isbn="1" * 300_000), "RESOURCE_EXHAUSTED", "limit"),
    ]
    for what, method, request, code, words in wanted:
        found, details = status_of(lambda: method(request, timeout=PATIENCE))
        check(f"status: {what}", found.name == code and words in details, (found, details))
    line = shop.PlaceOrderRequest(isbn=ISBN, copies=1_000_000)
    code, details = status_of(lambda: shop.PlaceOrder(iter([line]), timeout=PATIENCE))
    check("status: too many copies", code is grpc.StatusCode.FAILED_PRECONDITION, (code, details))
    for path in ("/bookshop.v1.Bookshop/Nothing", "/nothing.Service/GetBook"):
        code, details = status_of(lambda: channel.unary_unary(path)(b"", timeout=PATIENCE))
        check(f"status: {path}", code is grpc.StatusCode.UNIMPLEMENTED, (code, details))
    request = shop.GetBookRequest(isbn=ISBN, size=2)
    packed = grpc.Compression.Gzip
    call = lambda: shop.PlaceOrder(iter([shop.PlaceOrderRequest(isbn=ISBN * 100)]), timeout=PATIENCE, compression=packed)
    code, details = status_of(call)
    check("status: a compressed message", code is grpc.StatusCode.UNIMPLEMENTED, (code, details))
    check("after it the connection serves on", shop.GetBook(request, timeout=PATIENCE).books[0].title == TITLE)
    stream = shop.ListBooks(shop.ListBooksRequest(isbn=ISBN, count=10, gap="60s"), timeout=2)
    first = next(stream)
    code, details = status_of(lambda: next(stream))
    check("deadline within a stream", first.number == 1 and code is grpc.StatusCode.DEADLINE_EXCEEDED, (code, details))
    stream = shop.ListBooks(shop.ListBooksRequest(isbn=ISBN, count=10, gap="60s"), timeout=PATIENCE)
    next(stream)
    stream.cancel()
    code, _ = status_of(lambda: next(stream))
    check("cancellation within a stream", code is grpc.StatusCode.CANCELLED, code)
    never = threading.Event()
    silent = (never.wait(PATIENCE) for _ in range(1))
    code, details = status_of(lambda: shop.PlaceOrder(silent, timeout=0.3))
    never.set()
    check("deadline of a silent client", code is grpc.StatusCode.DEADLINE_EXCEEDED, (code, details))


def check_health(channel):
    """Health, by the client of grpcio-health-checking."""
    health = health_pb2_grpc.HealthStub(channel)
    serving = health_pb2.HealthCheckResponse.SERVING
    for service in ("", "bookshop.v1.Bookshop"):
        reply = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
        check(f"health of {service!r}", reply.status == serving, reply)
    code, _ = status_of(lambda: health.Check(health_pb2.HealthCheckRequest(service="x"), timeout=PATIENCE))
    check("health of an unknown service", code is grpc.StatusCode.NOT_FOUND, code)
    watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
    check("watch of health", next(watch).status == serving)
    watch.cancel()


class NewReflection:
    """Version 1 of reflection under the interface of v1alpha: the messages are the same."""

    def __init__(self, channel):
        self.ServerReflectionInfo = channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )


def check_reflection(channel):
    """Both versions: names, extensions, errors."""
    old = reflection_pb2_grpc.ServerReflectionStub(channel)
    for name, reflection in (("v1", NewReflection(channel)), ("v1alpha", old)):
        ask = reflection_pb2.ServerReflectionRequest
        answers = list(
            reflection.ServerReflectionInfo(
                iter(
                    [
                        ask(list_services=""),
                        ask(file_containing_symbol="bookshop.v1.Size"),
                        ask(file_by_filename="grpc/health/v1/health.proto"),
                        ask(file_containing_symbol="nothing.Here"),
                        ask(all_extension_numbers_of_type="bookshop.v1.Book"),
                        ask(),
                    ]
                ),
                timeout=PATIENCE,
            )
        )
        kinds = [answer.WhichOneof("message_response") for answer in answers]
        file = "file_descriptor_response"
        numbers = "all_extension_numbers_response"
        wanted = ["list_services_response", file, file, "error_response", numbers, "error_response"]
        check(f"reflection {name}: answers", kinds == wanted, kinds)
        services = {service.name for service in answers[0].list_services_response.service}
        known = {
            "bookshop.v1.Bookshop",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        }
        check(f"reflection {name}: services", services == known, services)
        check_kinds(name, Shop(channel, channel_of(channel, reflection)))


class channel_of:
    """A channel whose only method is that of a version of reflection."""

    def __init__(self, channel, reflection):
        self.channel, self.reflection = channel, reflection

    def stream_stream(self, *_, **__):
        return self.reflection.ServerReflectionInfo

    def __getattr__(self, name):
        return getattr(self.channel, name)


def main():
    start = time.monotonic()
    with grpc.insecure_channel(ADDRESS) as channel:
        check_reflection(channel)
        check_statuses(channel, Shop(channel, channel))
        check_health(channel)
    with open(CERTIFICATE, "rb") as file:
        trusted = grpc.ssl_channel_credentials(file.read())
    named = (("grpc.ssl_target_name_override", "localhost"),)
    with grpc.secure_channel(SECURE, trusted, named) as channel:
        check_kinds("tls", Shop(channel, channel))
    print(f"ok all within {time.monotonic() - start:.0f} s")
    sys.exit(1 if failed else 0)


main()
