"""A server of grpcio whose log of calls is compared with the report of `posthaste load --grpc`.

Takes ADDRESS LOG [CERTIFICATE KEY]. Service peer.v1.Log, by server reflection (grpcio has v1alpha): each call appends a
line of JSON to LOG when it ends, with its method, status, time until its deadline, metadata and messages.
"""

import json
import sys
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection

ADDRESS, LOG = sys.argv[1:3]
CERTIFICATE, KEY = (sys.argv[3:5] + [None, None])[:2]
SERVICE = "peer.v1.Log"


def schema():
    """File peer/v1/log.proto. Question: text, status that the server ends with, messages of a stream, pause in ms."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="peer/v1/log.proto", package="peer.v1", syntax="proto3"
    )
    question = file.message_type.add(name="Question")
    for number, (name, type_) in enumerate(
        [
            ("text", kind.TYPE_STRING),
            ("status", kind.TYPE_INT32),
            ("count", kind.TYPE_INT32),
            ("pause_ms", kind.TYPE_INT32),
        ],
        1,
    ):
        question.field.add(name=name, number=number, type=type_, label=kind.LABEL_OPTIONAL)
    answer = file.message_type.add(name="Answer")
    answer.field.add(name="text", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    service = file.service.add(name="Log")
    for name, client, server in [
        ("Get", False, False),
        ("List", False, True),
        ("Collect", True, False),
        ("Talk", True, True),
    ]:
        service.method.add(
            name=name,
            input_type=".peer.v1.Question",
            output_type=".peer.v1.Answer",
            client_streaming=client,
            server_streaming=server,
        )
    return file


pool = descriptor_pool.Default()
pool.AddSerializedFile(schema().SerializeToString())
Question, Answer = (
    message_factory.GetMessageClass(pool.FindMessageTypeByName(f"peer.v1.{name}"))
    for name in ("Question", "Answer")
)
CODES = {code.value[0]: code for code in grpc.StatusCode}
lock = threading.Lock()
log = open(LOG, "a", encoding="utf-8")


def note(method, context, code, texts):
    metadata = dict(context.invocation_metadata())
    line = {
        "method": method,
        "status": code.name,
        "remaining": context.time_remaining(),
        "tenant": metadata.get("tenant"),
        "agent": metadata.get("user-agent"),
        "texts": texts,
    }
    with lock:
        log.write(json.dumps(line) + "\n")
        log.flush()


def end(method, context, question, texts):
    """Pauses, notes the call and ends it with the status that the question asks for."""
    code = CODES[question.status]
    note(method, context, code, texts)
    if question.pause_ms:
        time.sleep(question.pause_ms / 1000)
    if code != grpc.StatusCode.OK:
        context.abort(code, f"as asked: {question.text or 'nothing'}")


def get(question, context):
    end("Get", context, question, [question.text])
    return Answer(text=question.text)


def list_(question, context):
    for number in range(question.count):
        yield Answer(text=str(number))
        time.sleep(question.pause_ms / 1000)
    question.pause_ms = 0
    end("List", context, question, [question.text])


def collect(questions, context):
    texts, last = [], Question()
    for last in questions:
        texts.append(last.text)
    end("Collect", context, last, texts)
    return Answer(text=",".join(texts))


def talk(questions, context):
    for question in questions:
        yield Answer(text=question.text)


def handler(make, behaviour):
    return make(
        behaviour,
        request_deserializer=Question.FromString,
        response_serializer=Answer.SerializeToString,
    )


handlers = {
    "Get": handler(grpc.unary_unary_rpc_method_handler, get),
    "List": handler(grpc.unary_stream_rpc_method_handler, list_),
    "Collect": handler(grpc.stream_unary_rpc_method_handler, collect),
    "Talk": handler(grpc.stream_stream_rpc_method_handler, talk),
}
server = grpc.server(futures.ThreadPoolExecutor(max_workers=64))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), server)
if CERTIFICATE:
    files = [open(file, "rb").read() for file in (KEY, CERTIFICATE)]
    server.add_secure_port(ADDRESS, grpc.ssl_server_credentials((tuple(files),)))
else:
    server.add_insecure_port(ADDRESS)
server.start()
server.wait_for_termination()
